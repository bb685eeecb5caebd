"""How training went: losses and scores over epochs, with the epochs at which labels were made."""

from collections.abc import Callable

from wtal.figures.page import Block, Picture, Section, Text
from wtal.figures.plots import Line, Panel, small_multiples
from wtal.report.content import Content
from wtal.report.runs import Group, LoadedRun


def training(content: Content) -> Section:
    """Losses and scores over epochs, with the epochs at which labels were made."""
    runs = [(group, one) for group in content.groups for one in group.runs if one.epochs]
    if not runs:
        return Section("training", "Training", (Text("No run has logged an epoch.", "warning"),))
    skipped = {"epoch", "learning_rate", "seconds", "loss"}
    parts = list(dict.fromkeys(k for _, one in runs for line in one.epochs for k in line if k not in skipped))
    shown = {
        "loss": "loss, all parts",
        **{part: part.replace("_", " ") for part in parts},
        "learning_rate": "learning rate",
    }
    panels = [
        Panel(title, [_run_line(group, one, lambda line, key=key: line.get(key)) for group, one in runs])  # type: ignore[misc]
        for key, title in shown.items()
    ]
    generations = sorted({epoch for _, one in runs for epoch in one.generations})
    marked = " Dashed lines: epochs at which new pseudo labels were made." if generations else ""
    blocks: list[Block] = []
    protocols = dict.fromkeys(p for one in content.loaded.runs for p in one.recipe.test.protocols)
    curves = [Panel(protocol, lines) for protocol in protocols if (lines := _score_curves(content, protocol))]
    if curves:
        figure = small_multiples(curves, columns=2, height=2.7, marks=generations, x="epoch")
        said = f"Average mAP (%) of the test videos on the way; nothing is chosen by it.{marked}"
        blocks.append(Picture("map-over-epochs", figure, said))
    figure = small_multiples(panels, columns=4, height=1.6, marks=generations, x="epoch")
    blocks.append(Picture("losses", figure, f"Means per video and epoch, weights included.{marked}"))
    if not curves:
        blocks.append(Text("Scores over epochs are there if a run was trained with --evaluate-every N."))
    return Section("training", "Training", tuple(blocks))


def _run_line(group: Group, one: LoadedRun, value: Callable[[dict[str, float]], float | None]) -> Line:
    points = [(line["epoch"], got) for line in one.epochs if (got := value(line)) is not None]
    first = one is group.runs[0]
    return Line(group.name, [p[0] for p in points], [p[1] for p in points], group.number, faint=not first)


def _score_curves(content: Content, protocol: str) -> list[Line]:
    lines = []
    for group in content.groups:
        for one in group.runs:
            scores = [(line["epoch"] + 1, line["average"].get(protocol)) for line in one.events("evaluation")]
            if scores and one.evaluation and protocol in one.evaluation:
                scores.append((one.recipe.epochs, one.evaluation[protocol]["average"]))
            points = [(epoch, list(averages.values())[-1]) for epoch, averages in scores if averages]
            if points:
                x, y = zip(*points, strict=True)
                lines.append(Line(group.name, x, y, group.number, faint=one is not group.runs[0], marker="o"))
    return lines
