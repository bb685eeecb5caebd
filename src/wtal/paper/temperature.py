"""The temperature figure: how sharp the fusion's weights are, in training and at test."""

from collections.abc import Mapping

from wtal.figures.page import Plot, Section, Side
from wtal.figures.plots import Line, line_plot
from wtal.figures.table import Cell, Column, Measure, Table
from wtal.paper import variants
from wtal.paper.experiment import Experiment, Setting
from wtal.paper.plan import Variant
from wtal.paper.published import cells, published
from wtal.paper.trained import TrainedRuns
from wtal.propose import Fusion, Nms

TRAINING = (0.02, 0.05, 0.1, 0.2, 0.5)
TEST = (0.003, 0.01, 0.03, 0.1, 0.3)

Averages = dict[float, list[Measure | None]]
"""Average mAP by each protocol, by temperature."""


def wanted(setting: Setting) -> list[Variant]:
    """The recipe as it is for the test, and with each temperature in training."""
    stem, recipe = setting.stem, setting.recipe
    return [variants.full(stem, recipe), *(variants.label_temperature(stem, recipe, t) for t in TRAINING)]


def section(setting: Setting, trained: TrainedRuns) -> Section:
    """Two figures and their table: training with NMS at test, and test with the recipe's own training."""
    full, *others = (variant.name for variant in wanted(setting))
    test, protocols = setting.recipe.test.proposer, setting.protocols
    training: Averages = {
        t: [trained.average(name, test.by(Nms), protocol) for protocol in protocols]
        for t, name in zip(TRAINING, others, strict=True)
    }
    testing: Averages = {
        t: [trained.average(full, test.by(Fusion, temperature=t), protocol) for protocol in protocols] for t in TEST
    }
    paper = published("temperature")
    own = sorted({stage.temperature or 0.0 for stage in setting.recipe.targets.stages if stage.relabel})
    own_at_test = f"{test.combine.temperature:g}" if isinstance(test.combine, Fusion) else "none, by suppression"
    said = trained.conditions
    plots = (
        _plot(
            "training", training, {}, protocols,
            f"Temperature of the labels' fusion, NMS at test; {said}. The recipe's own: "
            f"{', '.join(f'{t:g}' if t else 'that of targets.proposer' for t in own)}.",
        ),
        _plot(
            "test", testing, paper["testing"], protocols,
            f"Temperature of the fusion at test; {said}. The recipe's own: {own_at_test}.",
        ),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [(f"{t:g}", "training", None, *ours) for t, ours in training.items()]
    rows += [(f"{t:g}", "test", *cells([paper["testing"].get(t)], 1), *ours) for t, ours in testing.items()]
    table = Table(
        "temperature",
        "Temperature, average mAP in %",
        (Column("T"), Column("used in"), Column("paper"), *(Column(p, "ours") for p in protocols)),
        tuple(rows),
        f"Recipe {setting.stem}, {said}. Paper: {paper['source']}.",
        sections={len(TRAINING): ""},
    )
    return Section("temperature", "Temperature", (Side(plots), table))


def _plot(used: str, ours: Averages, paper: Mapping[float, float], protocols: tuple[str, ...], said: str) -> Plot:
    lines = []
    for number, protocol in enumerate(protocols):
        known = {t: value for t, averages in ours.items() if (value := averages[number]) is not None}
        several = any(len(value.values) > 1 for value in known.values())
        spread = [value.spread or 0.0 for value in known.values()] if several else None
        y = [value.mean for value in known.values()]
        lines.append(Line(protocol, list(known), y, number, spread, marker="o"))
    ticks = lines[0].x
    if paper:
        lines.append(Line("paper", list(paper), list(paper.values()), len(lines), marker="D"))
    figure = line_plot(lines, x="temperature T", y="average mAP, %", ticks=ticks, logarithmic=True)
    return Plot(f"temperature-{used}", figure, said)


EXPERIMENT = Experiment("temperature", "The temperature figure", wanted, section)
