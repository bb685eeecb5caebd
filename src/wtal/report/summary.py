"""The first section: scores by every protocol, with their spread over seeds."""

from collections.abc import Sequence
from typing import Any

from wtal.evaluate import headline
from wtal.figures.page import Folded, PageBlock, Plot, Tile, Tiles
from wtal.figures.plots import Panel, line_over_seeds, small_multiples
from wtal.figures.table import Cell, Column, Measure, Table, measured, measured_at, score_columns
from wtal.report.measures import Measurements
from wtal.report.runs import LoadedRun, SeedGroup


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
    blocks: list[PageBlock] = [Tiles(tuple(tiles))] if tiles else []
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
        for protocol in dict.fromkeys(by for by, _ in scored)
    ]
    if panels:
        figure = small_multiples(panels, columns=2, height=2.7, x="tIoU", same_x=False)
        spread = any(line.spread for panel in panels for line in panel.lines)
        said = "mAP (%) at each tIoU threshold." + " Bars are one standard deviation over seeds." * spread
        blocks.append(Plot("map-over-tiou", figure, said))
    if any(len(group.runs) > 1 for group in groups):
        blocks.append(Folded("Each run", tuple(_runs_table(groups, protocol) for protocol in protocols)))
    return blocks


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
    rows = []
    for group in groups:
        done = ", ".join(str(one.recipe.seed) for one in group.runs if protocol in one.evaluation)
        rows.append((group.name, done or None, *_score_row(group.runs, protocol, first)))
    said = "No run has been scored by it."
    if first:
        said = (
            f"{first['n_videos']} test videos, {first['n_truth']} true instances, ambiguity list "
            f"{'on' if first.get('ambiguous', {}).get('used') else 'off'}. Last epoch; ± is one standard deviation "
            "over seeds."
        )
    columns = (Column("recipe"), Column("seeds"), *_columns(first))
    return Table(f"scores-{protocol}", protocol, columns, tuple(rows), said)


def _runs_table(groups: Sequence[SeedGroup], protocol: str) -> Table:
    first = _first(groups, protocol)
    rows: list[tuple[Cell, ...]] = []
    sections = {}
    for group in groups:
        sections[len(rows)] = ""
        rows += [(one.name, *_score_row([one], protocol, first)) for one in group.runs]
    columns = (Column("run"), *_columns(first))
    return Table(f"runs-{protocol}", f"{protocol}, run by run", columns, tuple(rows), sections=sections)
