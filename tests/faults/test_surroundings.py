"""Full disks, read-only folders, files that vanish, clocks that go backwards: a clear error, and nothing is lost."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from small import RECIPE, make_store, outcome
from videos import write_video
from wtal.cli import main
from wtal.data.store import Store
from wtal.errors import InputError
from wtal.extract import extract
from wtal.localize import Localizer
from wtal.training import Execution, Run, train
from wtal.video.extractor import ExtractorOptions

ONE = Execution(threads=1, checkpoint_every_s=0)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("data") / "store", n_train=5, n_test=2)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "tiny.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def undisturbed(store: Store, recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(recipe, store, tmp_path_factory.mktemp("whole") / "run", execution=ONE).path


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Callable[..., None]]:
    """A file system at `folder`; what is given mounts it again with other options."""

    def mount(*more: str) -> None:
        subprocess.run(["mount", *more, str(folder)], check=True, capture_output=True, text=True)

    if os.geteuid():
        pytest.skip("only root may mount a file system")
    folder.mkdir(exist_ok=True)
    try:
        mount(*options)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no mounts here: {error.stderr.strip()}")
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def whole(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_training_that_fills_a_disk_goes_on_once_there_is_room(
    store: Store, recipe: Path, undisturbed: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    pages = sum(-(-path.stat().st_size // 4096) for path in undisturbed.rglob("*") if path.is_file())
    with mounted(disk, "-t", "tmpfs", "-o", f"size={4096 * (pages * 2 // 3)}", "tmpfs") as mount:
        with pytest.raises(InputError, match=r"cannot write .*(disk is full|No space left)"):
            train(recipe, store, disk / "run", execution=ONE)
        left = sorted(path.name for path in (disk / "run" / "checkpoints").iterdir())
        assert left
        assert not any(name.startswith(".") for name in left)
        mount("-o", "remount,size=32m")
        train(recipe, store, disk / "run", resume=True, execution=ONE)
        assert outcome(disk / "run") == outcome(undisturbed)


def test_a_store_that_does_not_fit_leaves_nothing_and_the_one_before_stays(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with mounted(disk, "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        make_store(disk / "small", n_train=2, n_test=1)
        before = whole(disk)
        with pytest.raises(InputError, match="the disk is full"):
            make_store(disk / "large", n_train=60)
        assert whole(disk) == before


def test_a_read_only_folder_is_named_and_nothing_is_tried(
    store: Store, recipe: Path, undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    shutil.copytree(undisturbed, fixed / "run")
    with mounted(fixed, "--bind", str(fixed)) as mount:
        mount("-o", "remount,ro,bind")
        commands = {
            "run": ["train", str(recipe), "--data", str(store.path), "--run", str(fixed / "run"), "--resume"],
            "new": ["train", str(recipe), "--data", str(store.path), "--run", str(fixed / "new")],
            "store": ["data", "synthesize", "-o", str(fixed / "store"), "--train-videos", "2", "--test-videos", "1"],
            "found.json": ["localize", str(fixed / "run"), "--features", str(store.path), "-o", f"{fixed}/found.json"],
        }
        for name, command in commands.items():
            with pytest.raises(SystemExit) as ended:
                main(command)
            said = capsys.readouterr().err
            assert ended.value.code == 2
            assert "Read-only file system" in said, name
            assert str(fixed) in said
        assert Localizer.load(fixed / "run")  # it may be read all the same
    assert outcome(fixed / "run") == outcome(undisturbed)


def test_a_store_that_vanishes_in_training_is_missed_and_back_it_ends_the_same(
    store: Store, recipe: Path, undisturbed: Path, tmp_path: Path
) -> None:
    place, away = tmp_path / "store", tmp_path / "away"
    shutil.copytree(store.path, place)

    def vanish(step: str, _done: float, _total: float, at: Mapping[str, Any]) -> None:
        if step == "training" and at["epoch"] == 4 and place.exists():
            place.rename(away)

    with pytest.raises(InputError, match=rf"{place} holds no true instances"):
        train(recipe, place, tmp_path / "run", execution=ONE, progress=vanish)
    assert not Run(tmp_path / "run").ended
    away.rename(place)
    train(recipe, place, tmp_path / "run", resume=True, execution=ONE)
    assert outcome(tmp_path / "run") == outcome(undisturbed)


def test_a_video_that_vanishes_in_extraction_is_named_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vanishing_extractor.py").write_text(
        "def mean(frames):\n    return [frames.mean(), 1.0]\nmean.short_side = 16\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    videos = tmp_path / "videos"
    for name in ("a", "b"):
        write_video(videos / f"{name}.mp4", np.arange(200) % 120, size=(32, 24))
    kept = (videos / "b.mp4").read_bytes()
    options = ExtractorOptions("vanishing_extractor:mean")

    monkeypatch.setattr("wtal.extract.probe", _probe_then(videos / "b.mp4"))
    with pytest.raises(InputError, match=r"b\.mp4.*what is done is kept"):
        extract([videos], tmp_path / "store", options, workers=1)
    monkeypatch.undo()
    monkeypatch.syspath_prepend(tmp_path)
    (videos / "b.mp4").write_bytes(kept)
    extract([videos], tmp_path / "store", options, workers=1)
    assert Store.open(tmp_path / "store").names() == ("a", "b")


def _probe_then(gone: Path) -> Callable[[Path], Any]:
    """The usual look at a video's header, after which one of the videos is gone."""
    from wtal.video.decode import probe

    def look(path: Path) -> Any:
        seen = probe(path)
        if path == gone:
            path.unlink()
        return seen

    return look


def test_a_clock_that_goes_backwards_changes_nothing(
    store: Store, recipe: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.time()]

    def backwards() -> float:
        now[0] -= 3600
        return now[0]

    monkeypatch.setattr(time, "time", backwards)
    train(recipe, store, tmp_path / "run", execution=ONE)
    assert outcome(tmp_path / "run") == outcome(undisturbed)
