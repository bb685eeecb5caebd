"""Many classes and many videos: what ActivityNet asks of training."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from wtal.data.store import Store
from wtal.data.synthetic_annotations import random_annotations
from wtal.data.video_record import VideoRecord
from wtal.data.writer import new_store
from wtal.formats import write_annotations
from wtal.training import Execution, Recipe, train
from wtal.training.config import SegmentSampling


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    return importlib.import_module("benchmarks.activitynet")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux how much memory there is")
def test_memory_does_not_grow_with_the_videos_seen(tmp_path: Path, benchmark: ModuleType) -> None:
    """120 videos are 120 MB in memory if they stay there; a step needs 4 of them, 50 snippets each."""
    rng = np.random.default_rng(0)
    with new_store(tmp_path / "store", classes=("Run", "Jump"), dtype="float16") as writer:
        for number in range(120):
            features = rng.random((1000, 256), dtype=np.float32)
            writer.add(VideoRecord(f"v{number}", "train", (("Run", "Jump")[number % 2],)), features)
    seen: list[float] = []

    def hear(*_: Any) -> None:
        seen.append(benchmark.anonymous_memory())

    recipe = Recipe("stpn", 2, ((2, 1e-3),), batch_videos=4, sampling=SegmentSampling(50))
    train(recipe, Store.open(tmp_path / "store"), tmp_path / "run", progress=hear, execution=Execution(threads=1))
    assert len(seen) == 1 + 60  # at the start, and after each step
    assert seen[-1] - seen[3] < 25


def test_the_activitynet_benchmark_on_a_few_videos(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], benchmark: ModuleType
) -> None:
    made = random_annotations(np.random.default_rng(0), n_train=24, n_test=8, n_classes=4, duration_s=30.0)
    write_annotations(tmp_path / "gt.json", made)
    where = [str(tmp_path / name) for name in ("gt.json", "store", "runs")]
    options = ["--epochs", "4", "--dims", "16", "--threads", "1"]
    benchmark.main([*where, *options, "--recipe", "activitynet13-rskp", "activitynet13-gaufuse"])
    said = capsys.readouterr().out
    assert "{'train': 24, 'test': 8}, 4 classes" in said
    assert "activitynet13-rskp" in said
    rows = [line.split() for line in said.splitlines() if "activitynet13-" in line]
    assert len(rows) == 2
