"""A run that is killed, stopped or out of disk goes on to the same bits; one that should not go on says so."""

import json
import resource
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from small import outcome
from wtal.data.store import Store
from wtal.errors import InputError, Interrupted
from wtal.training import Execution, checkpoint, read_recipe, train

Start = Callable[..., "Popen[str]"]

KILL_ITSELF = """
import os, signal, sys
from wtal.training import Execution, train
recipe, data, run, epoch = sys.argv[1:]
def hear(step, completed, total, detail):
    if step == "targets" and detail["epoch"] == int(epoch) and completed == 7:
        os.kill(os.getpid(), signal.SIGKILL)
train(recipe, data, run, resume=True, progress=hear, execution=Execution(checkpoint_every_s=0))
"""


def wait_for(happened: Callable[[], bool], process: "Popen[str]") -> None:
    end = time.monotonic() + 120
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.001)


def test_kill_9_and_resume_give_the_same_bits(
    store: Store, recipe: Path, tmp_path: Path, whole_run: Path, wtal: Start, start: Start
) -> None:
    run = tmp_path / "run"
    first = wtal("train", recipe, "--data", store.path, "--run", run, "--checkpoint-every-s", 0)
    wait_for(lambda: (run / "checkpoints" / "epoch-0000-step-0002").exists(), first)
    first.kill()
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    for entry in (run / "checkpoints").glob(".*.partial"):  # where the kill may have come, too
        assert entry.is_dir()
    second = start("-c", KILL_ITSELF, recipe, store.path, run, 4)
    second.communicate()
    assert second.returncode == -signal.SIGKILL
    assert (run / "targets" / "epoch-0002.npz").exists()
    assert not (run / "targets" / "epoch-0004.npz").exists()
    assert not (run / "model").exists()
    train(recipe, store, run, resume=True)
    assert outcome(run) == outcome(whole_run)
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names == ["epoch-0004-step-0000", "epoch-0005-step-0000"]


def test_ctrl_c_finishes_the_step_saves_and_says_how_to_go_on(
    store: Store, recipe: Path, tmp_path: Path, whole_run: Path, wtal: Start
) -> None:
    run = tmp_path / "run"
    process = wtal("train", recipe, "--data", store.path, "--run", run)
    wait_for(lambda: (run / "metrics.jsonl").exists() and (run / "metrics.jsonl").stat().st_size > 0, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert f"wtal train {recipe} --data {store.path} --run {run} --resume" in said
    assert "Traceback" not in said
    saved = checkpoint.newest(run / "checkpoints")
    assert saved is not None
    train(recipe, store, run, resume=True)
    assert outcome(run) == outcome(whole_run)


def test_a_stop_in_the_middle_of_an_epoch_keeps_order_position_and_sums(
    store: Store, recipe: Path, tmp_path: Path, whole_run: Path
) -> None:
    def stop(step: str, _completed: float, _total: float, at: Mapping[str, Any]) -> None:
        if step == "training" and (at["epoch"], at["step"]) == (3, 2):
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted):
        train(recipe, store, tmp_path / "run", progress=stop, execution=Execution(threads=1))
    assert signal.getsignal(signal.SIGTERM) == before
    last = checkpoint.newest(tmp_path / "run" / "checkpoints")
    assert last is not None
    state = json.loads((last / "state.json").read_text())
    assert (state["epoch"], sorted(state["order"]), state["targets_epoch"]) == (3, list(range(13)), 2)
    assert set(state["totals"]) == {"fore", "back", "attention", "spl", "pseudo"}
    train(recipe, store, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(whole_run)


def test_resuming_a_run_that_has_ended_changes_nothing(store: Store, recipe: Path, whole_run: Path) -> None:
    before = outcome(whole_run)
    train(recipe, store, whole_run, resume=True)
    assert outcome(whole_run) == before


def test_a_run_of_other_data_or_another_recipe_is_refused(
    store: Store, other_store: Store, recipe: Path, whole_run: Path
) -> None:
    with pytest.raises(InputError, match=r"was trained on another data set .*start anew in another folder: `run=DIR`"):
        train(recipe, other_store, whole_run, resume=True)
    recipe.write_text(recipe.read_text().replace("batch_videos: 3", "batch_videos: 4"))
    with pytest.raises(InputError, match=r"another recipe: batch_videos \(3, now 4\)\. Resume with its own"):
        train(recipe, store, whole_run, resume=True)
    with pytest.raises(InputError, match=r"another recipe: seed \(0, now 7\)"):
        train(whole_run / "config.yaml", store, whole_run, resume=True, seed=7)
    with pytest.raises(InputError, match="holds a run already: `resume=True` goes on"):
        train(recipe, store, whole_run)


def test_resume_takes_the_seed_that_the_run_began_with(store: Store, recipe: Path, tmp_path: Path) -> None:
    recipe.write_text("model: rskp\nepochs: 1\nlearning_rate: [[1, 1e-3]]\n")
    run = train(recipe, store, tmp_path / "run", seed=5, execution=Execution(threads=1))
    train(recipe, store, tmp_path / "run", resume=True)
    assert read_recipe(run.path / "config.yaml").seed == 5
    assert run.environment()["seed"] == 5  # type: ignore[index]


def test_a_full_disk_leaves_the_checkpoint_before_and_no_half_one(
    store: Store, recipe: Path, tmp_path: Path, whole_run: Path
) -> None:
    run = tmp_path / "run"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_the_disk(step: str, _completed: float, _total: float, at: Mapping[str, Any]) -> None:
        if step == "training" and (at["epoch"], at["step"]) == (1, 2):
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))

    try:
        with pytest.raises(
            InputError, match=r"cannot write the checkpoint .*epoch-0001-step-0001, is whole: make room"
        ):
            train(recipe, store, run, progress=fill_the_disk, execution=Execution(threads=1, checkpoint_every_s=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names == ["epoch-0001-step-0000", "epoch-0001-step-0001"]
    train(recipe, store, run, resume=True)
    assert outcome(run) == outcome(whole_run)


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_serves(
    store: Store, recipe: Path, tmp_path: Path, whole_run: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole_run, run)
    last = checkpoint.newest(run / "checkpoints")
    assert last is not None
    weights = last / "state.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(InputError, match=r"damaged .*delete that folder"):
        train(recipe, store, run, resume=True)
    shutil.rmtree(last)
    train(recipe, store, run, resume=True)
    assert outcome(run) == outcome(whole_run)


def test_what_a_kill_leaves_among_checkpoints_is_tidied_and_the_one_set_aside_is_back(tmp_path: Path) -> None:
    """A kill may come right before old ones are removed, or between the two renames that replace one."""
    for name in ("epoch-0001-step-0000", "epoch-0002-step-0000", ".epoch-0003-step-0000.replaced"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_text(name)
    (tmp_path / ".epoch-0003-step-0000.partial").mkdir()
    checkpoint.tidy(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch-0002-step-0000", "epoch-0003-step-0000"]
    last = checkpoint.newest(tmp_path)
    assert last is not None
    assert (last / "state.json").read_text() == ".epoch-0003-step-0000.replaced"
