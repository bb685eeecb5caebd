"""A timeline: one class of one video, from the activation curve to its pseudo labels, row under row."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float

from wtal.errors import MissingExtraError
from wtal.files import written_whole
from wtal.instances import Instances

#: Okabe and Ito's palette: told apart by the colour-blind, and in grey by lightness.
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"


def draw_timeline(
    path: Path | str,
    *,
    title: str,
    curves: Mapping[str, Float[np.ndarray, " t"]],
    segments: Mapping[str, Instances],
    truth: Instances | None = None,
) -> None:
    """Write a picture of curves over snippets and, below each other, sets of instances on the same axis.

    `truth` is shaded behind everything. Bars of a set are as dark as their scores are high, against the set's best.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None

    rows = len(curves) + len(segments)
    figure = Figure(figsize=(11, 0.6 + 1.25 * len(curves) + 0.75 * len(segments)), layout="constrained")
    heights = [1.6] * len(curves) + [0.8] * len(segments)
    axes = figure.subplots(rows, 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    for axis, (name, curve) in zip(axes, curves.items(), strict=False):
        # a snippet's value holds from its start to the next one's
        axis.stairs(curve, np.arange(len(curve) + 1), color=BLUE, fill=True, alpha=0.35)
        axis.stairs(curve, np.arange(len(curve) + 1), color=BLUE, linewidth=1)
        axis.set_ylabel(name, rotation=0, ha="right", va="center")
        axis.margins(x=0)
    for axis, (name, found) in zip(axes[len(curves) :], segments.items(), strict=True):
        best = max(float(found.scores.max(initial=0.0)), 1e-12)
        overlapping = _lanes(found)
        lanes = max(overlapping, default=0) + 1
        for (start, end), score, lane in zip(found.segments, found.scores, overlapping, strict=True):
            strength = 0.25 + 0.75 * max(0.0, float(score) / best)
            axis.barh(-lane, end - start, left=start, height=0.8, color=ORANGE, alpha=strength, linewidth=0)
        axis.set_ylim(-lanes + 0.4, 0.6)
        axis.set_yticks([])
        axis.set_ylabel(f"{name} ({len(found)})", rotation=0, ha="right", va="center")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        for start, end in truth.segments if truth is not None else ():
            axis.axvspan(start, end, color=GREEN, alpha=0.18, linewidth=0, zorder=0)
    axes[-1].set_xlabel("snippet" + ("      (shaded: the true instances)" if truth is not None else ""))
    figure.suptitle(title)
    with written_whole(Path(path), "wb") as file:
        figure.savefig(file, format=Path(path).suffix.lstrip(".") or "png", dpi=130)


def _lanes(found: Instances) -> list[int]:
    """The lane of each bar, so that none covers another: the first that is free at its start."""
    free_from: list[float] = []
    lanes = [0] * len(found)
    for index in np.lexsort((found.ends, found.starts)):
        start, end = found.segments[index]
        lane = next((k for k, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[lane : lane + 1] = [end]
        lanes[index] = lane
    return lanes
