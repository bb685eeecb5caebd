"""What was asked and on which machine: recipes, where they differ, environments."""

from collections.abc import Sequence

import yaml

from wtal.figures.page import Block, Code, Folded, Section
from wtal.figures.table import Column, Table, count
from wtal.report.content import Content
from wtal.report.runs import LoadedRun
from wtal.typed import differences, plain


def configuration(content: Content) -> Section:
    """The recipes, where they differ, and the machines."""
    blocks: list[Block] = []
    first = content.groups[0]
    if len(content.groups) > 1:
        rows = []
        for group in content.groups[1:]:
            changes = differences(plain(first.recipe.with_seed(0)), plain(group.recipe.with_seed(0)))
            said = "; ".join(map(_brief, changes))
            rows.append((group.name, said))
        title = f"What differs from {first.name}"
        blocks.append(Table("differences", title, (Column("recipe"), Column("keys")), tuple(rows)))
    for group in content.groups:
        text = yaml.safe_dump(
            plain(group.recipe), sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
        )
        blocks.append(Folded(f"Recipe of {group.name}", (Code(text),)))
    blocks.append(_environments(content.loaded.runs))
    return Section("configuration", "Configuration", tuple(blocks))


def _brief(change: str) -> str:
    """A change in few words; whole lists of stages are better read in the recipes.

    >>> _brief("batch_videos (3, now 4)")
    'batch_videos (3 → 4)'
    """
    text = change.replace(", now ", " → ")
    return text if len(text) < 100 else f"{change.partition(' ')[0]} (see the recipes)"


def _environments(runs: Sequence[LoadedRun]) -> Table:
    rows = []
    for one in runs:
        about = one.environment
        versions = about.get("versions", {})
        spent = sum(line.get("seconds", 0.0) for line in one.epochs)
        rows.append(
            (
                one.name,
                count(one.recipe.seed),
                f"{len(one.epochs)} of {one.recipe.epochs}",
                f"{spent / 3600:.1f} h",
                f"{about.get('device')}, {about.get('threads')} threads × {about.get('processes')}",
                f"{about.get('python')} / {versions.get('torch')}",
                str(about.get("commit") or "unknown")[:10],
            )
        )
    names = ("run", "seed", "epochs", "time in epochs", "computed on", "Python / torch", "commit")
    return Table("environment", "Environment", tuple(map(Column, names)), tuple(rows))
