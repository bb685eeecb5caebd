"""How good the pseudo labels were, generation by generation."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from wtal.figures.page import PageBlock, Plot, Side
from wtal.figures.plots import Line, calibration_plot, line_over_seeds, line_plot
from wtal.figures.table import Cell, Column, Table, measured
from wtal.report.measures import GenerationQuality, Measurements
from wtal.report.runs import SeedGroup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: a share of fewer snippets than this is noise
ENOUGH_SNIPPETS = 50


def targets(measures: Measurements) -> list[PageBlock]:
    """How good each generation of pseudo labels is."""
    known = {
        group: runs
        for group in measures.loaded.groups
        if (runs := [made for one in group.runs if (made := measures.targets.get(one.name))])
    }
    if not known:
        return []
    several = len(known) > 1
    rows: list[tuple[Cell, ...]] = []
    sections, calibrated = {}, []
    for group, runs in known.items():
        sections[len(rows)] = ""
        epochs = [made.epoch for made in runs[0]]
        for epoch in epochs:
            same = [made for run in runs for made in run if made.epoch == epoch]
            rows.append(
                (
                    f"{group.name}, epoch {epoch}" if several else f"epoch {epoch}",
                    measured((made.n_instances for made in same), digits=0),
                    measured(made.targets for made in same),
                    measured(made.delta for made in same),
                    measured(made.instances for made in same),
                )
            )
        calibrated.append(_calibration(group, runs[0][0], "first", several))
        calibrated.append(_calibration(group, runs[0][-1], "last", several))
    heads = (
        Column("generation"),
        Column("instances"),
        Column("labels G", "snippet average precision"),
        Column("change ΔG", "snippet average precision"),
        Column("mAP of the instances"),
    )
    note = "Against the training videos' annotations, which training never sees."
    over_epochs = quality_over_epochs([(group.name, group.number, runs) for group, runs in known.items()])
    said = (
        "Share of snippets that are inside an action, by the size of their label, in bins of at least "
        f"{ENOUGH_SNIPPETS} snippets. On the dashed line a label is a probability."
    )
    plots = (
        Plot("labels", over_epochs, "How well labels rank snippets inside an action above those outside."),
        Plot("calibration", calibration_plot(calibrated), said),
    )
    table = Table("labels", "Quality of the pseudo labels, %", heads, tuple(rows), note, sections=sections)
    return [table, Side(plots)]


def quality_over_epochs(compared: Iterable[tuple[str, int, Sequence[Sequence[GenerationQuality]]]]) -> "Figure":
    """How well labels rank snippets, generation by generation: a line for each name, number and runs of one recipe."""
    lines = []
    for name, number, runs in compared:
        epochs = [made.epoch for made in runs[0]]
        whole = [[made.targets for made in run] for run in runs if [made.epoch for made in run] == epochs]
        lines.append(line_over_seeds(name, number, epochs, whole))
    return line_plot(lines, x="epoch at which the labels were made", y="snippet AP of G, %", ticks=lines[0].x)


def _calibration(group: SeedGroup, made: GenerationQuality, place: str, several: bool) -> Line:
    mean, share, n = made.calibration
    enough = n >= ENOUGH_SNIPPETS
    return Line(
        f"{group.name}, {place} generation" if several else f"{place} generation",
        mean[enough].tolist(),
        (100 * share[enough]).tolist(),
        group.number if several else int(place == "last"),
        faint=several and place == "first",
        marker="o",
    )
