"""Where the score comes from: class by class, precision over recall, and the kinds of error."""

from collections.abc import Sequence

import numpy as np

from wtal.evaluate.diagnosis import KINDS
from wtal.figures.page import Block, Folded, Picture, Section
from wtal.figures.plots import Line, Panel, bars_by_class, small_multiples
from wtal.figures.table import Column, Measure, Table, count, measured
from wtal.report.content import Content, nothing
from wtal.report.runs import Group

#: more classes than this in one picture are only the best and the worst
MANY_CLASSES = 40


def classes(content: Content) -> Section:
    """Average precision class by class."""
    known = content.known
    if not known:
        return nothing("classes", "Classes")
    names = content.of(known[0])[0].score.classes
    tiou = content.of(known[0])[0].score.tiou
    middle = tiou.index(0.5) if 0.5 in tiou else 0
    ap = {group.name: np.stack([one.score.ap for one in content.of(group)]) for group in known}
    overall = next(iter(ap.values())).mean(axis=(0, 2))
    order = np.argsort(-overall, kind="stable")
    shown = order if len(order) <= MANY_CLASSES else np.concatenate([order[:20], order[-20:]])
    values = {name: [measured(per_run[:, c].mean(axis=1)) for c in shown] for name, per_run in ap.items()}
    figure = bars_by_class([names[c] for c in shown], values, x="average precision, mean over tIoU, %")
    left_out = "" if len(shown) == len(order) else f" Of {len(order)} classes the best and the worst 20."
    columns = [Column("class"), Column("instances")]
    for group in known:
        columns += [Column(f"tIoU {tiou[middle]:g}", group.name), Column("average", group.name)]
    counts = _instances_of(content, names)
    rows = []
    for c in order:
        row: list[Measure | str | None] = [names[c], count(counts[c])]
        for per_run in ap.values():
            row += [measured(per_run[:, c, middle]), measured(per_run[:, c].mean(axis=1))]
        rows.append(tuple(row))
    table = Table("classes", "Average precision by class, %", tuple(columns), tuple(rows), f"{content.protocol}.")
    picture = Picture("classes", figure, f"Average precision by class, {content.protocol}.{left_out}")
    return Section("classes", "Classes", (picture, Folded("The same as a table", (table,))))


def _instances_of(content: Content, names: Sequence[str]) -> list[int]:
    truth = content.truth
    assert truth is not None
    split = content.groups[0].recipe.test_split
    number = {name: label for label, name in enumerate(truth.classes)}
    labels = np.concatenate([v.instances.class_ids for v in truth.videos.values() if v.split == split])
    return [int((labels == number[name]).sum()) for name in names]


def precision(content: Content) -> Section:
    """Precision over recall, mean over classes and class by class."""
    known = content.known
    if not known:
        return nothing("precision", "Precision and recall")
    recall = np.linspace(0.0, 100.0, 101).tolist()
    thresholds = list(content.of(known[0])[0].curves)
    panels = [
        Panel(
            f"tIoU {t:g}",
            [_mean_line(group, [one.curves[t].mean(axis=0) for one in content.of(group)], recall) for group in known],
        )
        for t in thresholds
    ]
    figure = small_multiples(panels, x="recall, %", limits=(0, 100), height=2.5)
    blocks: list[Block] = [
        Picture("precision-recall", figure, f"Precision (%) over recall, mean over classes, {content.protocol}.")
    ]
    names = content.of(known[0])[0].score.classes
    middle = thresholds[len(thresholds) // 2]
    if len(names) <= MANY_CLASSES:
        by_class = [
            Panel(
                name,
                [_mean_line(group, [one.curves[middle][c] for one in content.of(group)], recall) for group in known],
            )
            for c, name in enumerate(names)
        ]
        figure = small_multiples(by_class, columns=4, x="recall, %", limits=(0, 100), height=1.6)
        said = f"Precision (%) over recall at tIoU {middle:g}, class by class."
        blocks.append(Folded("Class by class", (Picture("precision-recall-classes", figure, said),)))
    return Section("precision", "Precision and recall", tuple(blocks))


def _mean_line(group: Group, curves: Sequence[np.ndarray], x: Sequence[float]) -> Line:
    return Line(group.name, x, np.mean(curves, axis=0).tolist(), group.number)


_KIND_MEANS = {
    "double_detection": "of an instance that a better one found",
    "wrong_label": "right place, other class",
    "bad_boundary": "right class, too little overlap",
    "wrong_label_and_boundary": "other class and too little overlap",
    "background": "where nothing happens",
    "missed": "true instances that nothing finds",
}


def errors(content: Content) -> Section:
    """What goes wrong, what it costs, and at which lengths."""
    known = content.known
    if not known:
        return nothing("errors", "Errors")
    why = {group: [one.diagnosis for one in content.of(group)] for group in known}
    first = why[known[0]][0]
    kinds = [*KINDS[1:], "missed"]
    gains = {group.name: [measured(one.gains[kind] for one in found) for kind in kinds] for group, found in why.items()}
    figure = bars_by_class([kind.replace("_", " ") for kind in kinds], gains, x="points of mAP that it costs", bar=0.22)
    said = (
        f"What each kind of error costs at tIoU {first.tiou:g}, {content.protocol}: points of mAP gained if all "
        "predictions of the kind were gone, or what is missed were not there."
    )
    columns = [Column("kind"), Column("means")]
    for group in known:
        columns += [Column("number", group.name), Column("costs", group.name)]
    rows: list[tuple[Measure | str | None, ...]] = []
    for kind in (*KINDS, "missed"):
        row: list[Measure | str | None] = [kind.replace("_", " "), _KIND_MEANS.get(kind, "found")]
        for found in why.values():
            numbers = [one.n_missed if kind == "missed" else one.counts[kind] for one in found]
            row += [measured(numbers, digits=0), measured(one.gains.get(kind) for one in found)]
        rows.append(tuple(row))
    table = Table(
        "errors", f"Errors at tIoU {first.tiou:g}", tuple(columns), tuple(rows),
        "Among each class's best predictions, ten per true instance.",
    )  # fmt: skip
    return Section("errors", "Errors", (Picture("errors", figure, said), table, _lengths_table(known, content)))


def _lengths_table(known: Sequence[Group], content: Content) -> Table:
    bins = content.of(known[0])[0].diagnosis.lengths
    columns = [Column("length"), Column("instances")]
    for group in known:
        columns += [Column("found, %", group.name), Column("normalised mAP", group.name)]
    rows = []
    for number, each in enumerate(bins):
        upto = f"to {each.up_to_s:g} s" if np.isfinite(each.up_to_s) else "s and more"
        row: list[Measure | str | None] = [f"{each.name}, {each.over_s:g} {upto}", count(each.n_truth)]
        for group in known:
            same = [one.diagnosis.lengths[number] for one in content.of(group)]
            row.append(measured(100 * b.n_found / b.n_truth if b.n_truth else None for b in same))
            row.append(measured(b.normalised_map for b in same))
        rows.append(tuple(row))
    said = "Normalised mAP makes bins of different size comparable (DETAD)."
    return Table("lengths", "By length of the true instance", tuple(columns), tuple(rows), said)
