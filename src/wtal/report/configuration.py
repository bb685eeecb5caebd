"""What was asked and on which machine: recipes, where they differ, environments."""

from collections.abc import Sequence

import yaml

from wtal.figures.page import Code, Folded, PageBlock
from wtal.figures.table import Cell, Column, Table, count
from wtal.report.measures import Measurements
from wtal.report.runs import LoadedRun
from wtal.typed import differences, plain


def configuration(measures: Measurements) -> list[PageBlock]:
    """The recipes, where they differ, and the machines."""
    blocks: list[PageBlock] = []
    first, *others = measures.loaded.groups
    if others:
        own = plain(first.recipe.with_seed(0))
        rows = [
            (group.name, "; ".join(map(_brief, differences(own, plain(group.recipe.with_seed(0)))))) for group in others
        ]
        title = f"What differs from {first.name}"
        blocks.append(Table("differences", title, (Column("recipe"), Column("keys")), tuple(rows)))
    for group in measures.loaded.groups:
        text = yaml.safe_dump(
            plain(group.recipe), sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
        )
        blocks.append(Folded(f"Recipe of {group.name}", (Code(text),)))
    return [*blocks, _environments(measures.loaded.runs)]


def _brief(change: str) -> str:
    """A change in few words; whole lists of stages are better read in the recipes.

    >>> _brief("batch_videos (3, now 4)")
    'batch_videos (3 → 4)'
    """
    text = change.replace(", now ", " → ")
    return text if len(text) < 100 else f"{change.partition(' ')[0]} (see the recipes)"


def _environments(runs: Sequence[LoadedRun]) -> Table:
    names = ("run", "seed", "epochs", "time in epochs", "computed on", "Python / torch", "commit")
    rows: list[tuple[Cell, ...]] = []
    for one in runs:
        about, epochs = one.environment, one.log.epochs
        rows.append(
            (
                one.name,
                count(one.recipe.seed),
                f"{len(epochs)} of {one.recipe.epochs}",
                f"{sum(line.get('seconds', 0.0) for line in epochs) / 3600:.1f} h",
                f"{about.get('device')}, {about.get('threads')} threads × {about.get('processes')}",
                f"{about.get('python')} / {about.get('versions', {}).get('torch')}",
                str(about.get("commit") or "unknown")[:10],
            )
        )
    return Table("environment", "Environment", tuple(map(Column, names)), tuple(rows))
