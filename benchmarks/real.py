"""Input for the benchmarks: the real activation maps where they are at hand, else generated ones of the same shape."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wtal.formats.maps import read_maps
from wtal.maps import ActivationMap

GOLDEN = Path(os.environ.get("WTAL_SHARED", Path(__file__).parents[2] / "shared")) / "golden" / "tcam_a.npz"


def activation_maps() -> tuple[str, list[ActivationMap]]:
    """What they are, and the maps: 99 THUMOS14 test videos, or as many generated ones."""
    if GOLDEN.exists():
        return "TCAMs of 99 THUMOS14 test videos", [streams[0] for streams in read_maps(GOLDEN).videos.values()]
    rng = np.random.default_rng(0)
    maps = []
    for number in range(99):
        curve = np.concatenate([generated_curve(rng) for _ in range(2)]) * 0.05
        maps.append(ActivationMap(f"generated {number}", curve, np.ones(1)))
    return "99 generated TCAMs (no real ones at hand: set WTAL_SHARED)", maps


def generated_curve(rng: np.random.Generator) -> np.ndarray:
    """An activation curve (t, 1) as weakly trained models give it.

    Only a part of each action is salient, so that high thresholds cut actions short; what lies around is half active,
    so that low thresholds run over. No single threshold is right, which is why combining many pays.
    """
    n = int(rng.integers(3, 7))
    lengths, gaps = rng.uniform(6, 24, n), rng.uniform(6, 20, n + 1)
    starts = np.cumsum(gaps[:-1]) + np.cumsum(np.concatenate([[0.0], lengths[:-1]]))
    t = int(starts[-1] + lengths[-1] + gaps[-1])
    centres = np.arange(t) + 0.5
    curve = np.zeros(t)
    for start, length in zip(starts, lengths, strict=True):
        salient = start + length * rng.uniform(0.3, 0.7)
        near = np.exp(-0.5 * ((centres - salient) / (0.35 * length)) ** 2)
        inside = (centres >= start) & (centres < start + length)
        curve = np.maximum(curve, rng.uniform(0.6, 1.0) * np.where(inside, 0.35 + 0.65 * near, 0.5 * near))
    for bump in rng.uniform(0, t, n):  # context that looks like the action for a moment
        curve = np.maximum(curve, rng.uniform(0.3, 0.8) * np.exp(-0.5 * ((centres - bump) / 1.5) ** 2))
    curve = np.convolve(curve + 0.25 * rng.standard_normal(t), [0.25, 0.5, 0.25], mode="same")
    return np.clip(curve, 0.0, 1.0)[:, None]


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Best wall time of several runs: the one the machine disturbed least."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
