"""Data that are broken or extreme, and disks that are full: a clear error or a sound result, never half a file."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wtal.cli import main
from wtal.data.store import Store
from wtal.data.video_record import VideoRecord
from wtal.data.writer import new_store
from wtal.errors import InputError
from wtal.localize import Localizer
from wtal.pseudo.delta import Stage
from wtal.training import Execution, Recipe, train
from wtal.training.config import TargetSettings

LABELLED = Recipe("rskp", 2, ((2, 1e-3),), {"hidden": 8}, targets=TargetSettings(stages=(Stage(1),)), batch_videos=2)


def features(t: int) -> np.ndarray:
    return np.random.default_rng(t).standard_normal((t, 8)).astype(np.float32)


def test_features_cut_in_half_are_named_before_anything_is_written(
    store: Store, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "store"
    broken.mkdir()
    for name in ("index.sqlite", "features-00000.npy"):
        content = (store.path / name).read_bytes()
        (broken / name).write_bytes(content if name == "index.sqlite" else content[: len(content) // 2])
    with pytest.raises(SystemExit) as ended:
        main(["train", str(recipe), "--data", str(broken), "--run", str(tmp_path / "run")])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"{broken / 'features-00000.npy'} is missing, cut off or damaged" in said
    assert "convert again" in said
    assert not (tmp_path / "run").exists()


def test_one_snippet_and_twenty_thousand_are_trained_labelled_and_localized(tmp_path: Path) -> None:
    lengths = {"one": 1, "usual": 50, "long": 20_000}
    with new_store(tmp_path / "store", classes=("Run",)) as writer:
        for name, t in lengths.items():
            writer.add(VideoRecord(name, "train", ("Run",)), features(t))
            writer.add(VideoRecord(f"test-{name}", "test", ()), features(t))
    run = train(LABELLED, tmp_path / "store", tmp_path / "run", execution=Execution(threads=1))
    with np.load(run.targets(1)) as made:
        assert made["lengths"].tolist() == list(lengths.values())
        assert np.isfinite(made["label_values"]).all()
    found = Localizer.load(run.path).store(Store.open(tmp_path / "store"), "test")
    assert len(found["test-one"]) == 0
    assert len(found["test-long"]) > 0
    assert found["test-long"].ends.max() <= 20_000 * 16 / 25


def test_features_that_are_zero_everywhere_do_not_come_into_a_store(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="black: features are zero everywhere"),
        new_store(tmp_path / "store", classes=("Run",)) as writer,
    ):
        writer.add(VideoRecord("black", "train", ("Run",)), np.zeros((9, 8), np.float32))
    assert not list(tmp_path.iterdir())


@pytest.fixture
def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """From now on, no room is left for files whose path contains these words."""

    def fill(words: str) -> None:
        really = os.fsync

        def fsync(descriptor: int) -> None:
            if words in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            really(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)

    return fill


@pytest.mark.parametrize(
    "words", ["config.yaml", "epoch-0001.npz", "model.safetensors", "predictions.json", "evaluation.json"]
)
def test_whatever_a_full_disk_hits_is_named_and_left_out_and_the_run_goes_on(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill_the_disk: Callable[[str], None], words: str
) -> None:
    run = tmp_path / "run"
    fill_the_disk(words)
    with pytest.raises(InputError, match=f"cannot write .*{words}: No space left on device"):
        train(LABELLED, store, run, execution=Execution(threads=1))
    assert not [path for path in run.rglob("*") if words in path.name]
    monkeypatch.undo()
    train(LABELLED, store, run, resume=True, execution=Execution(threads=1))
    assert [path for path in run.rglob("*") if path.name == words]
