"""The first section: scores by every protocol, with their spread over seeds."""

from collections.abc import Sequence
from typing import Any

from wtal.figures.page import Block, Folded, Picture, Section, Tile, Tiles
from wtal.figures.plots import Panel, small_multiples
from wtal.figures.table import Cell, Column, Measure, Table, measured
from wtal.report.content import Content, over_seeds
from wtal.report.runs import Group, LoadedRun


def summary(content: Content) -> Section:
    """The scores, with ± over seeds, by every protocol that a run was scored by."""
    protocols = list(dict.fromkeys(p for one in content.loaded.runs for p in one.recipe.test.protocols))
    tiles = [
        Tile(str(value), f"{group.name}, {protocol}", f"mAP {name}, {_seeds(group)}", group.number)
        for group in content.groups
        for protocol in protocols
        if (scored := _scores(group.runs, protocol))
        and (name := list(scored[0]["average"])[-1])
        and (value := measured(one["average"][name] for one in scored))
    ]
    blocks: list[Block] = [Tiles(tuple(tiles))] if tiles else []
    blocks += [_score_table(content.groups, protocol) for protocol in protocols]
    panels = [
        Panel(protocol, lines)
        for protocol in protocols
        if (
            lines := [
                over_seeds(group.name, group.number, scored[0]["tiou"], [one["map"] for one in scored])
                for group in content.groups
                if (scored := _scores(group.runs, protocol))
            ]
        )
    ]
    if panels:
        figure = small_multiples(panels, columns=2, height=2.7, x="tIoU", same_x=False)
        spread = any(line.spread for panel in panels for line in panel.lines)
        said = "mAP (%) at each tIoU threshold." + " Bars are one standard deviation over seeds." * spread
        blocks.append(Picture("map-over-tiou", figure, said))
    if any(len(group.runs) > 1 for group in content.groups):
        each = tuple(_runs_table(content.groups, protocol) for protocol in protocols)
        blocks.append(Folded("Each run", each))
    return Section("summary", "Summary", tuple(blocks))


def _scores(runs: Sequence[LoadedRun], protocol: str) -> list[dict[str, Any]]:
    return [one.evaluation[protocol] for one in runs if one.evaluation and protocol in one.evaluation]


def _seeds(group: Group) -> str:
    ended = [one.recipe.seed for one in group.runs if one.evaluation]
    return f"seed {ended[0]}" if len(ended) == 1 else f"{len(ended)} seeds"


def _score_columns(groups: Sequence[Group], protocol: str) -> tuple[list[float], list[str]]:
    scored = [one for group in groups for one in _scores(group.runs, protocol)]
    return (scored[0]["tiou"], list(scored[0]["average"])) if scored else ([], [])


def _score_row(
    runs: Sequence[LoadedRun], protocol: str, tiou: Sequence[float], averages: Sequence[str]
) -> list[Measure | None]:
    scored = _scores(runs, protocol)
    at = [dict(zip(one["tiou"], one["map"], strict=True)) for one in scored]
    return [
        *(measured(one.get(t) for one in at) for t in tiou),
        *(measured(one["average"].get(name) for one in scored) for name in averages),
    ]


def _heads(first: str, tiou: Sequence[float], averages: Sequence[str]) -> tuple[Column, ...]:
    return (
        Column(first),
        *(Column(f"{t:g}", "mAP at tIoU, %") for t in tiou),
        *(Column(name, "average") for name in averages),
    )


def _score_table(groups: Sequence[Group], protocol: str) -> Table:
    tiou, averages = _score_columns(groups, protocol)
    heads = _heads("recipe", tiou, averages)
    columns = (heads[0], Column("seeds"), *heads[1:])
    rows = []
    for group in groups:
        done = [str(one.recipe.seed) for one in group.runs if one.evaluation and protocol in one.evaluation]
        rows.append((group.name, ", ".join(done) or None, *_score_row(group.runs, protocol, tiou, averages)))
    about = next(
        (
            one.evaluation[protocol]
            for group in groups
            for one in group.runs
            if one.evaluation and protocol in one.evaluation
        ),
        None,
    )
    said = (
        f"{about['n_videos']} test videos, {about['n_truth']} true instances, ambiguity list "
        f"{'on' if about.get('ambiguous_list') else 'off'}. Last epoch; ± is one standard deviation over seeds."
        if about
        else "No run has been scored by it."
    )
    return Table(f"scores-{protocol}", protocol, columns, tuple(rows), said)


def _runs_table(groups: Sequence[Group], protocol: str) -> Table:
    tiou, averages = _score_columns(groups, protocol)
    rows: list[tuple[Cell, ...]] = []
    starts = set()
    for group in groups:
        starts.add(len(rows))
        rows += [(one.name, *_score_row([one], protocol, tiou, averages)) for one in group.runs]
    heads = _heads("run", tiou, averages)
    return Table(f"runs-{protocol}", f"{protocol}, run by run", heads, tuple(rows), sections=dict.fromkeys(starts, ""))
