"""How many activation levels the test needs: not in the paper, which has one set of them."""

from dataclasses import replace

from wtal.figures.page import Section
from wtal.figures.table import Cell, Column, Table, measured
from wtal.paper import variants
from wtal.paper.finished import Finished
from wtal.paper.plan import Variant
from wtal.paper.setting import Experiment, Setting
from wtal.propose import Nms
from wtal.report.measures import average


def wanted(setting: Setting) -> list[Variant]:
    """The recipe as it is."""
    return [variants.full(setting.stem, setting.recipe)]


def chosen_levels(levels: tuple[float, ...], n: int) -> tuple[float, ...]:
    """`n` of the levels, spread evenly with both ends; the middle one alone.

    >>> chosen_levels((0.1, 0.2, 0.3, 0.4, 0.5), 3), chosen_levels((0.1, 0.2, 0.3), 1)
    ((0.1, 0.3, 0.5), (0.2,))
    """
    if n == 1:
        return (levels[len(levels) // 2],)
    return tuple(levels[round(k * (len(levels) - 1) / (n - 1))] for k in range(n))


def section(setting: Setting, finished: Finished) -> Section:
    """NMS and fusion with fewer and fewer levels: what fusion gains, it gains from many candidates."""
    test = setting.recipe.test.proposer
    levels = test.cut.thresholds
    name = wanted(setting)[0].name
    counts = [n for n in (1, 2, 5, 10) if n < len(levels)] + [len(levels)]
    rows: list[tuple[Cell, ...]] = []
    for n in counts:
        fewer = replace(test, cut=replace(test.cut, thresholds=chosen_levels(levels, n)))
        row: list[Cell] = [str(n)]
        for protocol in setting.protocols:
            for proposer in (fewer.by(Nms), fewer):
                row.append(measured(map(average, finished.scores(name, proposer, protocol))))
        rows.append(tuple(row))
    heads = [Column(how, protocol) for protocol in setting.protocols for how in ("NMS", variants.way_of(test))]
    said = f"Recipe {setting.stem}, {finished.conditions}. Levels from {min(levels):g} to {max(levels):g}."
    table = Table(
        "thresholds", "Activation levels at test, average mAP in %", (Column("levels"), *heads), tuple(rows), said
    )
    return Section("thresholds", "Thresholds", (table,))


EXPERIMENT = Experiment("thresholds", "Fewer activation levels", wanted, section)
