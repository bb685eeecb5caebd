"""The plots of a report: each takes numbers and gives a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from wtal.figures.style import (
    DASHES,
    GROUND,
    HATCHES,
    LINE,
    MUTED,
    TEXT,
    new_figure,
    series,
    styled,
    without_grid,
)
from wtal.figures.table import Measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE_WIDTH = 11.0


@dataclass(frozen=True, eq=False)
class Line:
    """Points of a line, how far each may be off, and the name that the legend shows; `number` is what it belongs to."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    number: int = 0
    spread: Sequence[float] | None = None
    faint: bool = False
    marker: str = ""


def line_over_seeds(name: str, number: int, x: Sequence[float], curves: Sequence[Sequence[float]]) -> Line:
    """A line through the means over seeds, with their spread."""
    values = np.array(curves, dtype=np.float64)
    spread = values.std(axis=0, ddof=1).tolist() if len(values) > 1 else None
    return Line(name, x, values.mean(axis=0).tolist(), number, spread, marker="o")


def draw_lines(axis: "Axes", lines: Sequence[Line]) -> None:
    """Draw lines that differ in colour and dashes; points with a spread get bars."""
    for line in lines:
        colour: Any = series(line.number).light
        how: dict[str, Any] = {"color": colour, "linestyle": DASHES[line.number % len(DASHES)], "marker": line.marker}
        if line.faint:
            how |= {"alpha": 0.55, "linewidth": 1.0}
        label = line.name if not line.faint else None
        axis.plot(line.x, line.y, label=label, markersize=4.5, **how)
        if line.spread is not None:
            axis.errorbar(line.x, line.y, line.spread, fmt="none", ecolor=colour, elinewidth=1.1, capsize=3)


def line_plot(
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    ticks: Sequence[float] | None = None,
    logarithmic: bool = False,
) -> "Figure":
    """One panel of lines, half as wide as a page."""
    figure = new_figure(PAGE_WIDTH * 0.5, 3.3)
    with styled():
        axis = figure.subplots()
        if logarithmic:
            axis.set_xscale("log")
        draw_lines(axis, lines)
        if ticks is not None:
            axis.set_xticks(list(ticks), [f"{tick:g}" for tick in ticks])
            axis.minorticks_off()
        axis.set_xlabel(x)
        axis.set_ylabel(y)
        _legend(figure, axis)
    return figure


def _legend(figure: "Figure", axis: "Axes") -> None:
    """A legend under the plot, where it covers nothing; none if there is nothing to tell apart."""
    handles, labels = axis.get_legend_handles_labels()
    if len(handles) > 1:
        figure.legend(handles, labels, loc="outside lower left", ncols=min(len(handles), 4))


@dataclass(frozen=True, eq=False)
class Panel:
    """One of several small plots."""

    title: str
    lines: Sequence[Line]


def small_multiples(
    panels: Sequence[Panel],
    *,
    columns: int = 3,
    height: float = 1.75,
    marks: Sequence[int] = (),
    x: str = "",
    limits: tuple[float, float] | None = None,
    same_x: bool = True,
) -> "Figure":
    """Small plots in a grid, with one legend; `marks` are dashed lines on all of them, `limits` their common height."""
    columns = min(columns, len(panels))
    rows = ceil(len(panels) / columns)
    figure = new_figure(PAGE_WIDTH * (0.5 if columns == 1 else 1.0), 0.5 + height * rows)
    with styled():
        axes = figure.subplots(rows, columns, squeeze=False, sharex=same_x).ravel()
        for axis, panel in zip(axes, panels, strict=False):
            draw_lines(axis, panel.lines)
            for mark in marks:
                axis.axvline(mark, color=MUTED.light, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
            axis.set_title(panel.title)
            axis.locator_params(axis="y", nbins=4)
            if limits is not None:
                axis.set_ylim(*limits)
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        for number, axis in enumerate(axes[: len(panels)]):
            if number + columns >= len(panels):  # nothing below it
                axis.set_xlabel(x)
                axis.tick_params(axis="x", labelbottom=True)
        _legend(figure, max(axes[: len(panels)], key=lambda a: len(a.get_legend_handles_labels()[1])))
    return figure


def bars_by_class(
    names: Sequence[str], values: Mapping[str, Sequence[Measure | None]], *, x: str, bar: float = 0.2
) -> "Figure":
    """One horizontal bar per class and thing that is compared, the first class on top; lines show the spread."""
    n = len(values)
    figure = new_figure(PAGE_WIDTH, 0.9 + len(names) * (0.1 + bar * n))
    with styled():
        axis = figure.subplots()
        places = np.arange(len(names), dtype=np.float64)
        thick = 0.82 / n
        for number, (name, measures) in enumerate(values.items()):
            at = places + (number - (n - 1) / 2) * thick
            _bars(axis, at, measures, thick, number, name)
        axis.set_yticks(places, list(names))
        axis.set_ylim(len(names) - 0.5, -0.5)
        axis.tick_params(axis="y", labelcolor=TEXT.light)
        axis.set_xlabel(x)
        axis.margins(x=0.06)
        known = [measure.mean for measures in values.values() for measure in measures if measure is not None]
        low = min(
            [0.0, *known]
        )  # a bar begins at 0, however far its spread goes; one below 0 has its number to the left
        axis.set_xlim(left=low - 0.05 * (max(known) - low) if low < 0 else 0.0)
        without_grid(axis)
        axis.grid(True, axis="x")
        _legend(figure, axis)
    return figure


def _bars(
    axis: "Axes", at: Float[np.ndarray, " n"], measures: Sequence[Measure | None], thick: float, number: int, name: str
) -> None:
    known = [(place, measure) for place, measure in zip(at, measures, strict=True) if measure is not None]
    means, spreads = [measure.mean for _, measure in known], [measure.spread or 0.0 for _, measure in known]
    bars = axis.barh(
        [place for place, _ in known],
        means,
        height=thick * 0.9,
        facecolor=series(number).light,
        edgecolor=GROUND.light,
        hatch=HATCHES[number % len(HATCHES)],
        label=name,
        linewidth=0,
        xerr=spreads if any(spreads) else None,
        error_kw={"ecolor": TEXT.light, "elinewidth": 0.9, "capsize": 1.5},
    )
    texts = [f"{mean:.0f}" if abs(mean) >= 10 else f"{mean:.1f}" for mean in means]
    axis.bar_label(bars, texts, padding=4, fontsize=7.5, color=MUTED.light)


def calibration_plot(
    lines: Sequence[Line], *, x: str = "mean label in the bin", y: str = "snippets inside an action, %"
) -> "Figure":
    """How often snippets with labels of a size are right: on the diagonal, a label is a probability."""
    figure = line_plot(lines, x=x, y=y)
    with styled():
        axis = figure.axes[0]
        axis.plot([0, 1], [0, 100], color=LINE.light, linewidth=1.2, linestyle=(0, (2, 2)), zorder=1)
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 100)
    return figure
