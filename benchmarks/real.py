"""Input for the benchmarks: the real activation maps where they are at hand, else generated ones of the same shape."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wtal.cli.demo import generate
from wtal.formats.tcam import VideoMap, read_tcams

GOLDEN = Path(os.environ.get("WTAL_SHARED", Path(__file__).parents[2] / "shared")) / "golden" / "tcam_a.npz"


def activation_maps() -> tuple[str, list[VideoMap]]:
    """What they are, and the maps: 99 THUMOS14 test videos, or as many generated ones."""
    if GOLDEN.exists():
        return "TCAMs of 99 THUMOS14 test videos", list(read_tcams(GOLDEN).videos)
    rng = np.random.default_rng(0)
    maps = []
    for number in range(99):
        curve = np.concatenate([generate(rng)[0] for _ in range(2)]) * 0.05
        maps.append(VideoMap(f"generated {number}", curve, np.ones(1)))
    return "99 generated TCAMs (no real ones at hand: set WTAL_SHARED)", maps


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Best wall time of several runs: the one the machine disturbed least."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
