"""How training went: losses and scores over epochs, with the epochs at which labels were made."""

from wtal.evaluate import headline
from wtal.figures.page import PageBlock, Plot, Text
from wtal.figures.plots import Line, Panel, small_multiples
from wtal.report.measures import Measurements
from wtal.report.runs import LoadedRun, SeedGroup


def training(measures: Measurements) -> list[PageBlock]:
    """Losses and scores over epochs, with the epochs at which labels were made."""
    runs = [(group, one) for group in measures.loaded.groups for one in group.runs if one.log.epochs]
    if not runs:
        return [Text("No run has logged an epoch.", "warning")]
    parts = dict.fromkeys(key for _, one in runs for line in one.log.epochs for key in line)
    shown = {
        "loss": "loss, all parts",
        **{k: k.replace("_", " ") for k in parts if k not in ("epoch", "learning_rate", "seconds", "loss")},
        "learning_rate": "learning rate",
    }
    generations = sorted({epoch for _, one in runs for epoch in one.log.generations})
    marked = " Dashed lines: epochs at which new pseudo labels were made." if generations else ""
    blocks: list[PageBlock] = []
    curves = [
        Panel(protocol, lines)
        for protocol in measures.loaded.protocols
        if (lines := [line for group, one in runs if (line := _score_line(group, one, protocol))])
    ]
    if curves:
        figure = small_multiples(curves, columns=2, height=2.7, marks=generations, x="epoch")
        said = f"Average mAP (%) of the test videos on the way; nothing is chosen by it.{marked}"
        blocks.append(Plot("map-over-epochs", figure, said))
    panels = [Panel(title, [_loss_line(group, one, key) for group, one in runs]) for key, title in shown.items()]
    figure = small_multiples(panels, columns=4, height=1.6, marks=generations, x="epoch")
    blocks.append(Plot("losses", figure, f"Means per video and epoch, weights included.{marked}"))
    if not curves:
        blocks.append(Text("Scores over epochs are there if a run was trained with --evaluate-every N."))
    return blocks


def _loss_line(group: SeedGroup, one: LoadedRun, key: str) -> Line:
    points = {line["epoch"]: line[key] for line in one.log.epochs if line.get(key) is not None}
    return Line(group.name, list(points), list(points.values()), group.number, faint=one is not group.runs[0])


def _score_line(group: SeedGroup, one: LoadedRun, protocol: str) -> Line | None:
    """The scores on the way and, if the run has ended, the last one."""
    scores = [(line["epoch"] + 1, line["average"].get(protocol)) for line in one.log.events("evaluation")]
    if scores and protocol in one.evaluation:
        scores.append((one.recipe.epochs, one.evaluation[protocol]["average"]))
    points = {epoch: headline(averages)[1] for epoch, averages in scores if averages}
    if not points:
        return None
    faint = one is not group.runs[0]
    return Line(group.name, list(points), list(points.values()), group.number, faint=faint, marker="o")
