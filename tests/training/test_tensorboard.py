"""Curves for TensorBoard, read back by TensorBoard's own reader."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from wtal.data.store import Store
from wtal.errors import MissingExtraError
from wtal.training import Execution, checkpoint, train


def drawn(run: Path, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in EventAccumulator(str(run / "tensorboard")).Reload().Scalars(tag)]


def logged(run: Path, name: str, *, event: str | None = None) -> list[tuple[int, float]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(line["epoch"], pytest.approx(line[name])) for line in lines if line.get("event") == event]


def test_the_curves_are_those_of_the_log_also_after_a_resume(store: Store, recipe: Path, tmp_path: Path) -> None:
    run = train(
        recipe, store, tmp_path / "run", execution=Execution(threads=1, tensorboard=True, checkpoint_every_s=0)
    ).path
    last = checkpoint.newest(run / "checkpoints")
    assert last is not None
    shutil.rmtree(last)  # so that the last epoch is done, and drawn, again
    train(recipe, store, run, resume=True, execution=Execution(tensorboard=True))
    for name in ("loss", "fore", "learning_rate"):
        assert drawn(run, f"training/{name}") == logged(run, name)
    assert drawn(run, "labels/instances") == logged(run, "instances", event="labels")
    score = json.loads((run / "evaluation.json").read_text())["thumos14"]["average"]["0.1:0.7"]
    assert drawn(run, "mAP/thumos14/0.1:0.7") == [(5, pytest.approx(score))]


def test_nothing_is_drawn_unless_asked(whole_run: Path) -> None:
    assert not (whole_run / "tensorboard").exists()


def test_without_the_package_the_error_names_the_extra_and_nothing_is_written(
    store: Store, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'wtal\[tb\]'"):
        train(recipe, store, tmp_path / "run", execution=Execution(tensorboard=True))
    assert not (tmp_path / "run").exists()
