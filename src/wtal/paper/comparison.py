"""The comparison tables: published figures, and ours among them."""

from collections.abc import Sequence

from wtal.figures.page import Section
from wtal.figures.table import Cell, Column, Table, measured
from wtal.paper import variants
from wtal.paper.finished import Finished
from wtal.paper.plan import Variant
from wtal.paper.published import cells, published
from wtal.paper.setting import Experiment, Setting

#: the data sets of the paper, and what a table calls them
DATA_SETS = {"thumos14": "THUMOS14", "activitynet13": "ActivityNet1.3"}


def wanted(setting: Setting) -> list[Variant]:
    """The recipe as it is."""
    return [variants.full(setting.stem, setting.recipe)]


def section(setting: Setting, finished: Finished) -> Section:
    """One table per data set of the paper that the recipe is scored on."""
    chosen = [name for name in DATA_SETS if set(published(name)["protocols"]) & set(setting.protocols)]
    return Section("comparison", "Comparison", tuple(_table(name, setting, finished) for name in chosen))


def _table(data_set: str, setting: Setting, finished: Finished) -> Table:
    paper = published(data_set)
    tiou, averages = paper["tiou"], paper["averages"]
    rows: list[tuple[Cell, ...]] = []
    parts = {}
    for title, methods in paper["sections"].items():
        parts[len(rows)] = title
        rows += [(f"{name} ({where})", *cells(figures, len(tiou))) for name, where, *figures in methods]
    n = len(finished.seeds)
    parts[len(rows)] = f"ours, trained with tags: {setting.stem}, {n} seed{'s' if n > 1 else ''}"
    ours = range(len(rows), len(rows) + len(setting.protocols))
    for protocol in setting.protocols:
        rows.append((f"scored by {protocol}", *_ours(setting, finished, protocol, tiou, averages)))
    heads = (
        Column("method"),
        *(Column(f"{t:g}", "mAP at tIoU, %") for t in tiou),
        *(Column(name, "average") for name in averages),
    )
    return Table(
        f"comparison-{data_set}",
        f"{DATA_SETS[data_set]}, test videos",
        heads,
        tuple(rows),
        f"Published: {paper['source']}. Ours: last epoch, {finished.ambiguity}, on the videos of this data set.",
        strong=frozenset(ours),
        sections=parts,
    )


def _ours(
    setting: Setting, finished: Finished, protocol: str, tiou: Sequence[float], averages: Sequence[str]
) -> list[Cell]:
    name = wanted(setting)[0].name
    scores = finished.scores(name, setting.recipe.test.proposer, protocol)
    at = [dict(zip(one.tiou, one.map.tolist(), strict=True)) for one in scores]
    return [
        *(measured(one.get(t) for one in at) for t in tiou),
        *(measured(one.average.get(span) for one in scores) for span in averages),
    ]


EXPERIMENT = Experiment("comparison", "The comparison tables", wanted, section)
