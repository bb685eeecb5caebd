"""Where the score comes from: class by class, precision over recall, and the kinds of error."""

from collections.abc import Iterable, Sequence

import numpy as np

from wtal.evaluate.diagnosis import KINDS
from wtal.figures.page import Folded, PageBlock, Plot
from wtal.figures.plots import Line, Panel, bars_by_class, small_multiples
from wtal.figures.table import Cell, Column, Table, count, measured
from wtal.report.measures import Measured, Measurements
from wtal.report.runs import SeedGroup

#: more classes than this in one picture are only the best and the worst
MANY_CLASSES = 40

ByGroup = dict[SeedGroup, list[Measured]]


def classes(measures: Measurements) -> list[PageBlock]:
    """Average precision class by class."""
    known = measures.by_group
    if not known:
        return []
    first = next(iter(known.values()))[0].score
    middle = first.tiou.index(0.5) if 0.5 in first.tiou else 0
    ap = {group.name: np.stack([one.score.ap for one in found]) for group, found in known.items()}
    order = np.argsort(-next(iter(ap.values())).mean(axis=(0, 2)), kind="stable")
    shown = order if len(order) <= MANY_CLASSES else np.concatenate([order[:20], order[-20:]])
    values = {name: [measured(per_run[:, c].mean(axis=1)) for c in shown] for name, per_run in ap.items()}
    figure = bars_by_class([first.classes[c] for c in shown], values, x="average precision, mean over tIoU, %")
    left_out = "" if len(shown) == len(order) else f" Of {len(order)} classes the best and the worst 20."
    counts = _instances_of(measures, first.classes)
    rows: list[list[Cell]] = []
    for c in order:
        rows.append([first.classes[c], count(counts[c])])
        for per_run in ap.values():
            rows[-1] += [measured(per_run[:, c, middle]), measured(per_run[:, c].mean(axis=1))]
    heads = ("class", "instances"), (f"tIoU {first.tiou[middle]:g}", "average")
    table = _table("classes", "Average precision by class, %", *heads, known, rows, f"{measures.protocol}.")
    picture = Plot("classes", figure, f"Average precision by class, {measures.protocol}.{left_out}")
    return [picture, Folded("The same as a table", (table,))]


def _table(
    name: str,
    title: str,
    first: Sequence[str],
    each: Sequence[str],
    groups: Iterable[SeedGroup],
    rows: Iterable[Sequence[Cell]],
    note: str,
) -> Table:
    """A table with columns for all, then the same columns for each recipe."""
    columns = (*map(Column, first), *(Column(head, group.name) for group in groups for head in each))
    return Table(name, title, columns, tuple(map(tuple, rows)), note)


def _instances_of(measures: Measurements, names: Sequence[str]) -> list[int]:
    truth = measures.truth
    assert truth is not None
    split = measures.loaded.groups[0].recipe.test_split
    number = {name: label for label, name in enumerate(truth.classes)}
    labels = np.concatenate([v.instances.class_ids for v in truth.videos.values() if v.split == split])
    return [int((labels == number[name]).sum()) for name in names]


def precision(measures: Measurements) -> list[PageBlock]:
    """Precision over recall, mean over classes and class by class."""
    known = measures.by_group
    if not known:
        return []
    first = next(iter(known.values()))[0]
    thresholds = list(first.curves)
    panels = [Panel(f"tIoU {t:g}", _precision_lines(known, t)) for t in thresholds]
    figure = small_multiples(panels, x="recall, %", limits=(0, 100), height=2.5)
    said = f"Precision (%) over recall, mean over classes, {measures.protocol}."
    blocks: list[PageBlock] = [Plot("precision-recall", figure, said)]
    middle = thresholds[len(thresholds) // 2]
    if len(first.score.classes) <= MANY_CLASSES:
        panels = [Panel(name, _precision_lines(known, middle, c)) for c, name in enumerate(first.score.classes)]
        figure = small_multiples(panels, columns=4, x="recall, %", limits=(0, 100), height=1.6)
        said = f"Precision (%) over recall at tIoU {middle:g}, class by class."
        blocks.append(Folded("Class by class", (Plot("precision-recall-classes", figure, said),)))
    return blocks


def _precision_lines(known: ByGroup, tiou: float, label: int | None = None) -> list[Line]:
    """Each recipe's precision over recall, mean over its runs: of one class, or mean over all."""
    lines = []
    for group, found in known.items():
        curves = [one.curves[tiou].mean(axis=0) if label is None else one.curves[tiou][label] for one in found]
        recall = np.linspace(0.0, 100.0, 101).tolist()
        lines.append(Line(group.name, recall, np.mean(curves, axis=0).tolist(), group.number))
    return lines


_KIND_MEANS = {
    "double_detection": "of an instance that a better one found",
    "wrong_label": "right place, other class",
    "bad_boundary": "right class, too little overlap",
    "wrong_label_and_boundary": "other class and too little overlap",
    "background": "where nothing happens",
    "missed": "true instances that nothing finds",
}


def errors(measures: Measurements) -> list[PageBlock]:
    """What goes wrong, what it costs, and at which lengths."""
    known = measures.by_group
    if not known:
        return []
    why = {group: [one.diagnosis for one in found] for group, found in known.items()}
    tiou = next(iter(why.values()))[0].tiou
    kinds = [*KINDS[1:], "missed"]
    gains = {group.name: [measured(one.gains[kind] for one in found) for kind in kinds] for group, found in why.items()}
    figure = bars_by_class([kind.replace("_", " ") for kind in kinds], gains, x="points of mAP that it costs", bar=0.22)
    said = (
        f"What each kind of error costs at tIoU {tiou:g}, {measures.protocol}: points of mAP gained if all "
        "predictions of the kind were gone, or what is missed were not there."
    )
    rows: list[list[Cell]] = []
    for kind in (*KINDS, "missed"):
        rows.append([kind.replace("_", " "), _KIND_MEANS.get(kind, "found")])
        for found in why.values():
            numbers = [one.n_missed if kind == "missed" else one.counts[kind] for one in found]
            rows[-1] += [measured(numbers, digits=0), measured(one.gains.get(kind) for one in found)]
    note = "Among each class's best predictions, ten per true instance."
    heads = ("kind", "means"), ("number", "costs")
    table = _table("errors", f"Errors at tIoU {tiou:g}", *heads, known, rows, note)
    return [Plot("errors", figure, said), table, _lengths_table(known)]


def _lengths_table(known: ByGroup) -> Table:
    rows: list[list[Cell]] = []
    for number, each in enumerate(next(iter(known.values()))[0].diagnosis.lengths):
        upto = f"to {each.up_to_s:g} s" if np.isfinite(each.up_to_s) else "s and more"
        rows.append([f"{each.name}, {each.over_s:g} {upto}", count(each.n_truth)])
        for found in known.values():
            same = [one.diagnosis.lengths[number] for one in found]
            rows[-1].append(measured(100 * b.n_found / b.n_truth if b.n_truth else None for b in same))
            rows[-1].append(measured(b.normalised_map for b in same))
    heads = ("length", "instances"), ("found, %", "normalised mAP")
    note = "Normalised mAP makes bins of different size comparable (DETAD)."
    return _table("lengths", "By length of the true instance", *heads, known, rows, note)
