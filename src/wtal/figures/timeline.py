"""A timeline: one class of one video, from the activation curve to its pseudo labels, row under row."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from wtal.figures.style import BLUE, GREEN, LINE, VERMILLION, Colour, new_figure, save_figure, styled, without_grid
from wtal.instances import Instances

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Float[np.ndarray, " t"] | Instances
"""A curve over snippets, or a set of instances."""


def draw_timeline(
    path: Path | str,
    *,
    title: str,
    curves: Mapping[str, Float[np.ndarray, " t"]],
    segments: Mapping[str, Instances],
    truth: Instances | None = None,
) -> None:
    """Write a picture of curves over snippets and, below each other, sets of instances on the same axis."""
    save_figure(path, timeline({**curves, **segments}, title=title, truth=truth))


def timeline(
    rows: Mapping[str, Row],
    *,
    truth: Instances | None = None,
    title: str = "",
    edges: Float[np.ndarray, " t1"] | None = None,
    unit: str = "snippet",
    colours: Mapping[str, Colour] | None = None,
    curve_height: float = 0.85,
) -> "Figure":
    """Curves and sets of instances on one axis, row under row.

    `truth` is shaded behind everything. Bars of a set are as dark as their scores are high, against the set's best.
    `edges` are where snippets begin and the last one ends, by default 0, 1, …; a row's colour may be given by its name.
    """
    lanes = {name: _lanes(row) for name, row in rows.items() if isinstance(row, Instances)}
    # every lane of bars is as high, so that a set of many overlapping candidates gets the room it needs
    heights = [0.25 + 0.1 * min(max(lanes[name], default=0), 12) if name in lanes else curve_height for name in rows]
    figure = new_figure(11.0, 0.55 + 0.3 * bool(title) + sum(heights))
    chosen = colours or {}
    with styled():
        axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
        for axis, (name, row) in zip(axes, rows.items(), strict=True):
            if isinstance(row, Instances):
                _draw_bars(axis, row, lanes[name], chosen.get(name, VERMILLION))
            else:
                _draw_curve(axis, row, edges, chosen.get(name, BLUE))
            says = f"{name} ({len(row)})" if isinstance(row, Instances) else name
            axis.set_ylabel(says, rotation=0, ha="right", va="center")
            without_grid(axis)
            for start, end in truth.segments if truth is not None else ():
                axis.axvspan(start, end, color=GREEN.light, alpha=0.2, linewidth=0, zorder=0)
        for axis in axes[:-1]:
            axis.tick_params(axis="x", length=0)
        axes[-1].set_xlabel(unit + (", true instances shaded" if truth is not None else ""))
        if title:
            figure.suptitle(title, x=0.01, ha="left")
        figure.align_ylabels(axes)
    return figure


def _draw_curve(
    axis: "Axes", curve: Float[np.ndarray, " t"], edges: Float[np.ndarray, " t1"] | None, colour: Colour
) -> None:
    # a snippet's value holds from its start to the next one's
    steps = np.arange(len(curve) + 1) if edges is None else edges
    axis.stairs(curve, steps, color=colour.light, fill=True, alpha=0.3, linewidth=0)
    axis.stairs(curve, steps, color=colour.light, linewidth=1)
    if len(curve) and curve.min() < 0:  # changes of labels go both ways
        axis.axhline(0.0, color=LINE.light, linewidth=0.8)
    axis.margins(x=0)
    axis.locator_params(axis="y", nbins=3)


def _draw_bars(axis: "Axes", found: Instances, lanes: list[int], colour: Colour) -> None:
    best = max(float(found.scores.max(initial=0.0)), 1e-12)
    for (start, end), score, lane in zip(found.segments, found.scores, lanes, strict=True):
        strength = 0.25 + 0.75 * max(0.0, float(score) / best)
        axis.barh(-lane, end - start, left=start, height=0.8, color=colour.light, alpha=strength, linewidth=0)
    axis.set_ylim(-max(lanes, default=0) - 0.6, 0.6)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)


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
