"""How good the pseudo labels were, generation by generation."""

from wtal.figures.page import Picture, Section, Side
from wtal.figures.plots import Line, calibration_plot, line_plot
from wtal.figures.table import Column, Measure, Table, measured
from wtal.report.content import Content, nothing, over_seeds

#: a share of fewer snippets than this is noise
ENOUGH_SNIPPETS = 50


def labels(content: Content) -> Section | None:
    """How good each generation of pseudo labels is; None if no run has any."""
    with_labels = [group for group in content.groups if any(content.targets.get(one.name) for one in group.runs)]
    if not any(one.generations for one in content.loaded.runs):
        return None
    if not with_labels:
        return nothing("labels", "Pseudo labels")
    rows: list[tuple[Measure | str | None, ...]] = []
    starts, lines, calibrated = set(), [], []
    for group in with_labels:
        runs = [content.targets[one.name] for one in group.runs if content.targets.get(one.name)]
        starts.add(len(rows))
        epochs = [g.epoch for g in runs[0]]
        for epoch in epochs:
            same = [g for run in runs for g in run if g.epoch == epoch]
            rows.append(
                (
                    f"{group.name}, epoch {epoch}" if len(with_labels) > 1 else f"epoch {epoch}",
                    measured((g.n_instances for g in same), digits=0),
                    measured(g.targets for g in same),
                    measured(g.delta for g in same),
                    measured(g.instances for g in same),
                )
            )
        whole = [run for run in runs if [g.epoch for g in run] == epochs]
        curves = [[g.targets for g in run] for run in whole]
        lines.append(over_seeds(group.name, group.number, epochs, curves))
        for generation, place in ((runs[0][0], "first"), (runs[0][-1], "last")):
            mean, share, n = generation.calibration
            mean, share = mean[n >= ENOUGH_SNIPPETS], share[n >= ENOUGH_SNIPPETS]
            name = f"{group.name}, {place} generation" if len(with_labels) > 1 else f"{place} generation"
            number = group.number if len(with_labels) > 1 else int(place == "last")
            faint = len(with_labels) > 1 and place == "first"
            calibrated.append(Line(name, mean.tolist(), (100 * share).tolist(), number, faint=faint, marker="o"))
    table = Table(
        "labels",
        "Quality of the pseudo labels, %",
        (
            Column("generation"),
            Column("instances"),
            Column("labels G", "snippet average precision"),
            Column("change ΔG", "snippet average precision"),
            Column("mAP of the instances"),
        ),
        tuple(rows),
        "Against the training videos' annotations, which training never sees.",
        sections=dict.fromkeys(starts, ""),
    )
    over_epochs = line_plot(lines, x="epoch at which the labels were made", y="snippet AP of G, %", ticks=lines[0].x)
    return Section(
        "labels",
        "Pseudo labels",
        (
            table,
            Side(
                (
                    Picture(
                        "labels", over_epochs, "How well labels rank snippets inside an action above those outside."
                    ),
                    Picture(
                        "calibration",
                        calibration_plot(calibrated),
                        "Share of snippets that are inside an action, by the size of their label, in bins of at least "
                        f"{ENOUGH_SNIPPETS} snippets. On the dashed line a label is a probability.",
                    ),
                )
            ),
        ),
    )
