"""How many activation levels the test needs: not in the paper, which has one set of them."""

from dataclasses import replace

from wtal.figures.page import Section
from wtal.paper.experiment import Experiment, Setting, as_it_is, nms_and_own
from wtal.paper.trained import TrainedRuns


def chosen_levels(levels: tuple[float, ...], n: int) -> tuple[float, ...]:
    """`n` of the levels, spread evenly with both ends; the middle one alone.

    >>> chosen_levels((0.1, 0.2, 0.3, 0.4, 0.5), 3), chosen_levels((0.1, 0.2, 0.3), 1)
    ((0.1, 0.3, 0.5), (0.2,))
    """
    if n == 1:
        return (levels[len(levels) // 2],)
    return tuple(levels[round(k * (len(levels) - 1) / (n - 1))] for k in range(n))


def section(setting: Setting, trained: TrainedRuns) -> Section:
    """NMS and fusion with fewer and fewer levels: what fusion gains, it gains from many candidates."""
    test = setting.recipe.test.proposer
    (variant,) = as_it_is(setting)
    levels = test.cut.thresholds
    counts = [*(n for n in (1, 2, 5, 10) if n < len(levels)), len(levels)]
    rows = [
        (str(n), variant.name, replace(test, cut=replace(test.cut, thresholds=chosen_levels(levels, n))))
        for n in counts
    ]
    table = nms_and_own("thresholds", "levels", rows, setting, trained, "Activation levels at test")
    table = replace(table, caption=f"{table.caption} Levels from {min(levels):g} to {max(levels):g}.")
    return Section("thresholds", "Thresholds", (table,))


EXPERIMENT = Experiment("thresholds", "Fewer activation levels", as_it_is, section)
