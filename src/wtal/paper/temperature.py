"""The temperature figure: how sharp the fusion's weights are, in training and at test."""

from typing import TYPE_CHECKING

from wtal.figures.page import Picture, Section, Side
from wtal.figures.plots import Line, line_plot
from wtal.figures.table import Cell, Column, Measure, Table, measured
from wtal.paper import variants
from wtal.paper.finished import Finished
from wtal.paper.plan import Variant
from wtal.paper.published import published
from wtal.paper.setting import Experiment, Setting
from wtal.propose import Fusion, Nms, Proposer
from wtal.report.measures import average

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAINING = (0.02, 0.05, 0.1, 0.2, 0.5)
TEST = (0.003, 0.01, 0.03, 0.1, 0.3)


def wanted(setting: Setting) -> list[Variant]:
    """The recipe as it is for the test, and with each temperature in training."""
    stem, recipe = setting.stem, setting.recipe
    return [variants.full(stem, recipe), *(variants.label_temperature(stem, recipe, t) for t in TRAINING)]


def section(setting: Setting, finished: Finished) -> Section:
    """Two figures and their table: training with NMS at test, and test with the recipe's own training."""
    full, *trained = (variant.name for variant in wanted(setting))
    test = setting.recipe.test.proposer
    training = dict(zip(TRAINING, ((name, test.by(Nms)) for name in trained), strict=True))
    testing = {t: (full, test.by(Fusion, temperature=t)) for t in TEST}
    paper = published("temperature")
    own = sorted({stage.temperature for stage in setting.recipe.targets.stages if stage.relabel})
    own_at_test = f"{test.combine.temperature:g}" if isinstance(test.combine, Fusion) else "none, by suppression"
    said = finished.conditions
    pictures = (
        Picture(
            "temperature-training",
            _figure(_lines(setting, finished, training), {}),
            f"Temperature of the labels' fusion, NMS at test; {said}. The recipe's own: "
            f"{', '.join(f'{t:g}' for t in own)}.",
        ),
        Picture(
            "temperature-test",
            _figure(_lines(setting, finished, testing), paper["testing"]),
            f"Temperature of the fusion at test; {said}. The recipe's own: {own_at_test}.",
        ),
    )
    rows = [_row(setting, finished, "training", t, *training[t], None) for t in TRAINING]
    rows += [_row(setting, finished, "test", t, *testing[t], paper["testing"].get(t)) for t in TEST]
    table = Table(
        "temperature",
        "Temperature, average mAP in %",
        (Column("T"), Column("used in"), Column("paper"), *(Column(p, "ours") for p in setting.protocols)),
        tuple(rows),
        f"Recipe {setting.stem}, {said}. Paper: {paper['source']}.",
        sections={len(TRAINING): ""},
    )
    return Section("temperature", "Temperature", (Side(pictures), table))


def _averages(finished: Finished, variant: str, proposer: Proposer, protocol: str) -> Measure | None:
    return measured(map(average, finished.scores(variant, proposer, protocol)))


def _row(
    setting: Setting,
    finished: Finished,
    used: str,
    temperature: float,
    variant: str,
    proposer: Proposer,
    paper: float | None,
) -> tuple[Cell, ...]:
    ours = [_averages(finished, variant, proposer, protocol) for protocol in setting.protocols]
    return (f"{temperature:g}", used, None if paper is None else Measure((paper,)), *ours)


def _lines(setting: Setting, finished: Finished, points: dict[float, tuple[str, Proposer]]) -> list[Line]:
    lines = []
    for number, protocol in enumerate(setting.protocols):
        values = [_averages(finished, *point, protocol) for point in points.values()]
        known = [(t, value) for t, value in zip(points, values, strict=True) if value is not None]
        spread = [value.spread or 0.0 for _, value in known] if len(finished.seeds) > 1 else None
        x, y = [t for t, _ in known], [value.mean for _, value in known]
        lines.append(Line(protocol, x, y, number, spread, marker="o"))
    return lines


def _figure(lines: list[Line], paper: dict[float, float]) -> "Figure":
    if paper:
        lines = [*lines, Line("paper", list(paper), list(paper.values()), len(lines), marker="D")]
    ticks = lines[0].x
    return line_plot(lines, x="temperature T", y="average mAP, %", ticks=ticks, logarithmic=True)


EXPERIMENT = Experiment("temperature", "The temperature figure", wanted, section)
