"""Small data sets on disk in the published layouts, made to be broken by the tests."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

RNG = np.random.default_rng(7)


def features(t: int, d: int = 8) -> np.ndarray:
    return RNG.standard_normal((t, d)).astype(np.float32)


def write_gt(path: Path, videos: dict[str, tuple[str, list[str]]], durations: dict[str, float] | None = None) -> Path:
    database = {}
    for name, (subset, labels) in videos.items():
        notes = [{"label": label, "segment": [str(i), str(i + 1.5)]} for i, label in enumerate(labels)]
        database[name] = {"subset": subset, "annotations": notes}
        if durations and name in durations:
            database[name]["duration"] = durations[name]
    path.write_text(json.dumps({"database": database}))
    return path


VIDEOS = {"a": ("train", ["Run"]), "b": ("train", ["Jump", "Run"]), "c": ("test", ["Jump"])}


@pytest.fixture
def cola(tmp_path: Path) -> Path:
    """A whole CoLA tree: a and b for training, c for testing, 10 to 12 snippets of 8 + 8 dimensions."""
    root = tmp_path / "cola"
    for i, (name, (split, _)) in enumerate(VIDEOS.items()):
        for stream in ("rgb", "flow"):
            folder = root / "features" / split / stream
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{name}.npy", features(10 + i))
    (root / "split_train.txt").write_text("a\nb\n")
    (root / "split_test.txt").write_text("c\n")
    write_gt(root / "gt.json", VIDEOS)
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder of joined features for these names, with a CSV of this text."""

    def make(csv: str, names: str = "abc", t: int = 10) -> Path:
        root = tmp_path / "own"
        root.mkdir()
        for name in names:
            np.save(root / f"{name}.npy", features(t))
        (root / "tags.csv").write_text(csv)
        return root

    return make


@pytest.fixture
def make_gt() -> Callable[..., Path]:
    """The writer of small annotation files."""
    return write_gt


@pytest.fixture
def make_features() -> Callable[..., np.ndarray]:
    """Random features of t snippets."""
    return features
