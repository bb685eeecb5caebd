"""Processes that train together, on one machine or on several, learn what one learns alone."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from small import DETECTOR, make_store
from wtal.data.store import Store
from wtal.training import Execution, read_recipe, train
from wtal.training import relabel as relabelling
from wtal.training.distributed import Group
from wtal.training.session import _fresh_state
from wtal.training.videos import Videos

WTAL = "from wtal.cli import main; main()"


def logged(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_learned_the_same(run: Path, alone: Path) -> None:
    """The same losses and weights but for the rounding of sums, and the same events."""
    ours, theirs = logged(run), logged(alone)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.get("event") == other.get("event")
        for name in other.keys() - {"event", "seconds"}:
            assert one[name] == pytest.approx(other[name], rel=1e-3, abs=1e-4), (name, other["epoch"])
    weights, expected = (load_file(folder / "model" / "model.safetensors") for folder in (run, alone))
    for name, value in expected.items():
        assert (weights[name].float() - value.float()).abs().max() < 1e-2, name


def test_two_processes_train_to_the_same_losses_as_one(
    store: Store, recipe: Path, whole_run: Path, tmp_path: Path, start: Callable[..., "Popen[str]"]
) -> None:
    """Dropout is on: its masks follow the video. The last step of an epoch has one video, fewer than processes."""
    run = tmp_path / "run"
    code = tmp_path / "command.py"
    code.write_text(WTAL)
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "--", code)
    process = start(*launch, "train", recipe, "--data", store.path, "--run", run)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert_learned_the_same(run, whole_run)
    assert json.loads((run / "environment.json").read_text())["processes"] == 2


def together(n: int, folders: list[Path], *arguments: object) -> list["Popen[str]"]:
    """So many training processes, as torchrun starts them, each in a folder of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [
        Popen(
            [sys.executable, "-c", WTAL, "train", *map(str, arguments)],
            cwd=folders[rank],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(n)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(n)
    ]


def ended(processes: list["Popen[str]"]) -> list[str]:
    said = [process.communicate(timeout=600)[1] for process in processes]
    assert not any(process.returncode for process in processes), said
    return said


def test_killed_with_three_processes_it_resumes_with_two_that_do_not_see_the_run(
    store: Store, recipe: Path, whole_run: Path, tmp_path: Path
) -> None:
    """Each process has its own working folder, as on machines of their own: only the leading one's has the run."""
    folders = [tmp_path / f"machine{number}" for number in range(3)]
    for folder in folders:
        folder.mkdir()
    command = (recipe, "--data", store.path, "--run", "run", "--checkpoint-every-s", 0)
    first = together(3, folders, *command)
    end = time.monotonic() + 300
    while not (folders[0] / "run" / "checkpoints" / "epoch-0002-step-0002").exists():
        assert first[0].poll() is None, first[0].communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    for process in first:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    ended(together(2, folders, *command, "--resume"))
    assert_learned_the_same(folders[0] / "run", whole_run)
    assert not any((folder / "run").exists() for folder in folders[1:])


def test_a_steps_videos_are_each_taken_once_and_no_process_has_much_more_than_another() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        lengths = rng.integers(1, 900, size=rng.integers(1, 12)).tolist()
        n, numbers = int(rng.integers(1, 5)), rng.permutation(100)[: len(lengths)].tolist()
        shares = [Group(rank, n).share(numbers, lengths) for rank in range(n)]
        real = [share for share in shares if share.counts]
        assert sorted(number for share in real for number in share.videos) == sorted(numbers)
        assert all(numbers[place] == video for s in shares for place, video in zip(s.places, s.videos, strict=True))
        loads = [sum(lengths[place] for place in share.places) for share in real] + [0] * (n - len(real))
        assert max(loads) - min(loads) <= max(lengths)


def test_consecutive_work_is_divided_as_evenly_as_it_can() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = rng.integers(1, 100, size=rng.integers(1, 12)).tolist()
        n = int(rng.integers(1, 5))
        parts = [sizes[Group(rank, n).part(sizes)] for rank in range(n)]
        assert [size for part in parts for size in part] == sizes
        assert max(map(sum, parts)) == _least_longest(tuple(sizes), n)


def _least_longest(sizes: tuple[int, ...], n: int) -> int:
    """By trying every cut."""
    if n == 1:
        return sum(sizes)
    return min(max(sum(sizes[:cut]), _least_longest(sizes[cut:], n - 1)) for cut in range(len(sizes) + 1))


@pytest.mark.parametrize("n", [2, 3])
def test_targets_made_in_parts_are_those_of_one_process_to_the_byte(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store", n_train=33, n_test=1)
    (tmp_path / "r.yaml").write_text(
        "model: rskp\nepochs: 2\nlearning_rate: [[2, 1e-3]]\nmodel_options: {hidden: 8}\n"
        "targets: {dropout: true, stages: [{from_epoch: 1}]}\n"
    )
    recipe = read_recipe(tmp_path / "r.yaml")
    videos = Videos(store, "train", torch.device("cpu"))
    model = _fresh_state(recipe, store, videos.device).model
    stage = recipe.schedule.stages[0]
    monkeypatch.setattr(Group, "gathered", lambda _, mine: [mine])
    parts = [relabelling.relabel(model, videos, recipe, stage, group=Group(rank, n)) for rank in range(n)]
    lengths = [part.targets.shape[0] for part in parts]
    assert min(lengths) > sum(lengths) / n / 2
    made = [one for part in parts for one in part.instances]
    whole = relabelling.relabel(model, videos, recipe, stage)
    assert len(made) == len(whole.instances) == 33
    joined = np.concatenate([part.targets.toarray() for part in parts])
    assert joined.tobytes() == whole.targets.toarray().tobytes()
    for one, other in zip(made, whole.instances, strict=True):
        assert one.segments.tobytes() == other.segments.tobytes()
        assert one.scores.tobytes() == other.scores.tobytes()


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """Two network namespaces joined by a cable, with the addresses 10.77.0.1 and 10.77.0.2."""
    if os.geteuid() or shutil.which("ip") is None:
        pytest.skip("two hosts on one machine need root and iproute2")
    names = tuple(f"wtal{os.getpid()}{end}" for end in "ab")

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)

    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("-n", names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", names[1])
            for number, name in enumerate(names, start=1):
                ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
                ip("-n", name, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
        yield names[0], names[1]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def test_a_detector_trains_on_two_hosts_as_on_one(
    hosts: tuple[str, str], store: Store, whole_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "detector.yaml").write_text(DETECTOR)
    code = tmp_path / "command.py"
    code.write_text(WTAL)
    how = Execution(threads=1)
    alone = train(tmp_path / "detector.yaml", store, tmp_path / "alone", teacher=whole_run, execution=how)
    launch = ["-m", "torch.distributed.run", "--nnodes", "2", "--rdzv-backend", "c10d"]
    launch += ["--rdzv-endpoint", "10.77.0.1:29400"]
    processes = []
    for number, host in enumerate(hosts, start=1):
        folder = tmp_path / f"host{number}"
        folder.mkdir()
        command = ["train", tmp_path / "detector.yaml", "--data", store.path, "--run", "run", "--teacher", whole_run]
        processes.append(
            Popen(
                [
                    *("ip", "netns", "exec", host, sys.executable, *launch),
                    # both hosts have the machine's name, which is looked up unless it is said who is who
                    *("--rdzv-conf", f"is_host={int(number == 1)},join_timeout=900,read_timeout=900"),
                    *("--local-addr", f"10.77.0.{number}", "--", *map(str, (code, *command))),
                ],
                cwd=folder,
                env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    ended(processes)
    runs = [tmp_path / f"host{number}" / "run" for number in (1, 2)]
    (led,) = [run for run in runs if run.exists()]
    assert (led / "boxes.json").read_bytes() == (alone.path / "boxes.json").read_bytes()
    assert_learned_the_same(led, alone.path)
