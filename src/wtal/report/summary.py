"""The first section: scores by every protocol, with their spread over seeds."""

from collections.abc import Sequence
from math import hypot
from typing import Any

from wtal.evaluate import headline
from wtal.figures.page import Folded, PageBlock, Plot, Text, Tile, Tiles
from wtal.figures.plots import Panel, line_over_seeds, small_multiples
from wtal.figures.table import Cell, Column, Measure, Table, measured, measured_at, score_columns
from wtal.report.measures import Measurements
from wtal.report.runs import LoadedRun, SeedGroup
from wtal.report.tags import n_instances, precision_recall_of_tags


def summary(measures: Measurements) -> list[PageBlock]:
    """The scores, with ± over seeds, by every protocol that a run was scored by."""
    groups, protocols = measures.loaded.groups, measures.loaded.protocols
    scored = {(p, group): scores for p in protocols for group in groups if (scores := _scores(group.runs, p))}
    tiles = [
        _tile(group, protocol, scored[protocol, group])
        for group in groups
        for protocol in protocols
        if (protocol, group) in scored
    ]
    tiles += _decided_tiles(measures)
    blocks: list[PageBlock] = [Tiles(tuple(tiles))] if tiles else []
    if not scored and measures.decided:
        blocks.append(
            Text(
                "The true times of these videos are not known, so there is no mAP. What follows is what was found, "
                "against the tags that videos carry."
            )
        )
    protocols = tuple(dict.fromkeys(by for by, _ in scored))
    blocks += [_score_table(groups, protocol) for protocol in protocols]
    panels = [
        Panel(
            protocol,
            [
                line_over_seeds(group.name, group.number, scores[0]["tiou"], [one["map"] for one in scores])
                for (by, group), scores in scored.items()
                if by == protocol
            ],
        )
        for protocol in protocols
    ]
    if panels:
        figure = small_multiples(panels, columns=2, height=2.7, x="tIoU", same_x=False)
        spread = any(line.spread for panel in panels for line in panel.lines)
        said = "mAP (%) at each tIoU threshold." + " Bars are one standard deviation over seeds." * spread
        blocks.append(Plot("map-over-tiou", figure, said))
    if protocols and any(len(group.runs) > 1 for group in groups):
        blocks.append(Folded("Each run", tuple(_runs_table(groups, protocol) for protocol in protocols)))
    return blocks


def _decided_tiles(measures: Measurements) -> list[Tile]:
    """What tags tell of each recipe, where the true times are not known."""
    tiles = []
    for group in measures.loaded.groups:
        one = measures.decided.get(group.name)
        if one is None or measures.by_group:
            continue
        where = "held-out training videos" if one.held_out else "test videos"
        said = f"in {len(one.videos)} {where}"
        tiles.append(Tile(f"{n_instances(one):,}", f"{group.name}, instances found", said, group.number))
        if (compared := precision_recall_of_tags(one)) is not None:
            value = f"{compared[0]:.0f} / {compared[1]:.0f} %"
            said = f"precision / recall, {len(one.tagged)} tagged videos"
            tiles.append(Tile(value, f"{group.name}, classes against tags", said, group.number))
    return tiles


def _tile(group: SeedGroup, protocol: str, scores: Sequence[dict[str, Any]]) -> Tile:
    over, _ = headline(scores[0]["average"])
    ended = [one.recipe.seed for one in group.runs if one.evaluation]
    seeds = f"seed {ended[0]}" if len(ended) == 1 else f"{len(ended)} seeds"
    value = str(measured(one["average"][over] for one in scores))
    return Tile(value, f"{group.name}, {protocol}", f"mAP {over}, {seeds}", group.number)


def _scores(runs: Sequence[LoadedRun], protocol: str) -> list[dict[str, Any]]:
    return [one.evaluation[protocol] for one in runs if protocol in one.evaluation]


def _first(groups: Sequence[SeedGroup], protocol: str) -> dict[str, Any] | None:
    """The first of all scores, which says what the table's columns are."""
    return next(iter(_scores([one for group in groups for one in group.runs], protocol)), None)


def _score_row(runs: Sequence[LoadedRun], protocol: str, first: dict[str, Any] | None) -> list[Measure | None]:
    if first is None:
        return []
    scores = _scores(runs, protocol)
    at = [dict(zip(one["tiou"], one["map"], strict=True)) for one in scores]
    return [*measured_at(first["tiou"], at), *measured_at(first["average"], [one["average"] for one in scores])]


def _columns(first: dict[str, Any] | None) -> list[Column]:
    return score_columns(first["tiou"], first["average"]) if first else []


def _score_table(groups: Sequence[SeedGroup], protocol: str) -> Table:
    first = _first(groups, protocol)
    assert first is not None
    over, _ = headline(first["average"])
    place = 2 + len(first["tiou"]) + list(first["average"]).index(over)
    compared = len(groups) > 1
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        done = ", ".join(str(one.recipe.seed) for one in group.runs if protocol in one.evaluation)
        row: list[Cell] = [group.name, done or None, *_score_row(group.runs, protocol, first)]
        if compared:
            row.append(_difference(row[place], rows[0][place]) if rows else None)
        rows.append(tuple(row))
    said = (
        f"{first['n_videos']} test videos, {first['n_truth']} true instances, ambiguity list "
        f"{'on' if first.get('ambiguous', {}).get('used') else 'off'}. Last epoch; ± is one standard deviation "
        "over seeds."
    )
    columns = [Column("recipe"), Column("seeds"), *_columns(first)]
    if compared:
        columns.append(Column("Δ"))
        said += (
            f" Δ is the difference in {over} to {groups[0].name}; ≈ marks one that is within the spread of seeds, "
            "and ? one whose spread is not known, since there is one seed."
        )
    return Table(f"scores-{protocol}", protocol, tuple(columns), tuple(rows), said, compared=compared)


def _difference(mine: Cell, other: Cell) -> str | None:
    """The difference of two measures, and whether the spread over seeds alone would explain it.

    >>> _difference(Measure((46.0, 47.0)), Measure((45.0, 46.0))), _difference(Measure((46.0,)), Measure((45.0,)))
    ('+1.0 ≈', '+1.0 ?')
    """
    if not isinstance(mine, Measure) or not isinstance(other, Measure):
        return None
    difference = mine.mean - other.mean
    if mine.spread is None or other.spread is None:
        return f"{difference:+.1f} ?"
    within = abs(difference) <= hypot(mine.spread, other.spread)
    return f"{difference:+.1f}" + " ≈" * within


def _runs_table(groups: Sequence[SeedGroup], protocol: str) -> Table:
    first = _first(groups, protocol)
    rows: list[tuple[Cell, ...]] = []
    sections = {}
    for group in groups:
        sections[len(rows)] = ""
        rows += [(one.name, *_score_row([one], protocol, first)) for one in group.runs]
    columns = (Column("run"), *_columns(first))
    return Table(f"runs-{protocol}", f"{protocol}, run by run", columns, tuple(rows), sections=sections)
