"""The comparison tables: published figures, and ours among them."""

from wtal.figures.page import Section
from wtal.figures.table import Cell, Column, Table, measured_at, score_columns
from wtal.paper.experiment import Experiment, Setting, as_it_is
from wtal.paper.published import cells, published
from wtal.paper.trained import TrainedRuns

#: the data sets of the paper, and what a table calls them
DATA_SETS = {"thumos14": "THUMOS14", "activitynet13": "ActivityNet1.3"}


def section(setting: Setting, trained: TrainedRuns) -> Section:
    """One table per data set of the paper that the recipe is scored on."""
    chosen = [name for name in DATA_SETS if set(published(name)["protocols"]) & set(setting.protocols)]
    return Section("comparison", "Comparison", tuple(_table(name, setting, trained) for name in chosen))


def _table(data_set: str, setting: Setting, trained: TrainedRuns) -> Table:
    paper = published(data_set)
    tiou, averages = paper["tiou"], paper["averages"]
    rows: list[tuple[Cell, ...]] = []
    parts = {}
    for title, methods in paper["sections"].items():
        parts[len(rows)] = title
        rows += [(f"{name} ({where})", *cells(figures, len(tiou))) for name, where, *figures in methods]
    n, n_published = len(trained.seeds), len(rows)
    parts[n_published] = f"ours, trained with tags: {setting.stem}, {n} seed{'s' if n > 1 else ''}"
    (variant,) = as_it_is(setting)
    for protocol in setting.protocols:
        scores = trained.scores(variant.name, setting.recipe.test.proposer, protocol)
        ours = measured_at(tiou, [one.at for one in scores]), measured_at(averages, [one.average for one in scores])
        rows.append((f"scored by {protocol}", *ours[0], *ours[1]))
    return Table(
        f"comparison-{data_set}",
        f"{DATA_SETS[data_set]}, test videos",
        (Column("method"), *score_columns(tiou, averages)),
        tuple(rows),
        f"Published: {paper['source']}. Ours: last epoch, {trained.ambiguity}, on the videos of this data set.",
        strong=frozenset(range(n_published, len(rows))),
        sections=parts,
    )


EXPERIMENT = Experiment("comparison", "The comparison tables", as_it_is, section)
