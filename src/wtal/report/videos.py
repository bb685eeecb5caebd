"""Timelines of single videos, of which the reader chooses: what the model sees, what is found, and what is true."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from wtal.data.store import Store
from wtal.errors import InputError, MissingExtraError
from wtal.figures.page import OneOf, PageBlock, Plot, Text
from wtal.figures.style import GREEN, series
from wtal.figures.timeline import Row, timeline
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.maps import ActivationMap, mean_map
from wtal.report.decided import Decided
from wtal.report.measures import Measurements, clocks, mean_by_video
from wtal.report.runs import LoadedRun, SeedGroup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: more than so many videos make a page heavy; then they are taken evenly from the worst to the best
MOST_VIDEOS = 24
#: classes of one video that have a row of their own
MOST_CLASSES = 6


def evenly(ranked: Sequence[str], most: int = MOST_VIDEOS) -> list[str]:
    """So many of the names, the first and the last among them, in their order.

    >>> evenly(["a", "b", "c", "d", "e"], 3)
    ['a', 'c', 'e']
    """
    chosen = np.unique(np.linspace(0, len(ranked) - 1, min(most, len(ranked))).round().astype(int))
    return [ranked[number] for number in chosen]


def videos(measures: Measurements) -> list[PageBlock]:
    """Timelines of test videos: against the truth where it is known, the worst first; otherwise the most doubtful."""
    if measures.loaded.store is None:
        return []
    if measures.measured and measures.truth is not None:
        return _against_truth(measures, measures.loaded.store)
    return _as_found(measures, measures.loaded.store)


def _against_truth(measures: Measurements, store: Store) -> list[PageBlock]:
    truth = measures.truth
    assert truth is not None
    scores = mean_by_video(measures.measured.values())
    chosen = evenly(sorted(scores, key=lambda name: (scores[name], name)))
    # the first run of each group that has predictions
    runs = {next(one for one in group.runs if one.name in measures.measured): group for group in measures.by_group}
    maps, problems = _maps(runs, store, chosen)
    options = []
    for number, name in enumerate(chosen, start=1):
        true = truth.videos[name].instances
        label = int(np.bincount(true.class_ids).argmax())
        found = {one: measures.measured[one.name].predictions[name].of_class(label) for one in runs}
        figure = _figure(runs, maps, store, name, label, found, true.of_class(label))
        said = f"{name}, {store.classes[label]}: average precision in the video {scores[name]:.0f} %."
        title = f"{name}, {store.classes[label]} ({scores[name]:.0f} %)"
        options.append((title, (Plot(f"video-{number}", figure, said),)))
    text = (
        f"{_how_many(chosen, scores)}, the worst first, by the average precision within the video (mean over its "
        "classes, tIoU 0.3, 0.5 and 0.7, and all runs). Bars are as strong as their scores."
    )
    return [Text(text), *(Text(problem, "warning") for problem in problems), OneOf("Video", tuple(options))]


def _as_found(measures: Measurements, store: Store) -> list[PageBlock]:
    group = next((group for group in measures.loaded.groups if group.name in measures.decided), None)
    if group is None:
        return []
    one = measures.decided[group.name]
    chosen = evenly(one.doubtful_first())
    maps, problems = _maps([one.run], store, chosen)
    options = []
    for number, name in enumerate(chosen, start=1):
        figure = _decided_figure(group, one, maps.get((one.run, name)), store, name)
        options.append((name, (Plot(f"video-{number}", figure, _said(one, store, name)),)))
    text = (
        f"{_how_many(chosen, one.videos)}, the most doubtful first: what {group.name} decides for. Bars are as strong "
        "as they are sure."
    )
    return [Text(text), *(Text(problem, "warning") for problem in problems), OneOf("Video", tuple(options))]


def _how_many(chosen: Sequence[str], there: Mapping[str, object]) -> str:
    return f"{len(chosen)} of {len(there)} videos" if len(chosen) < len(there) else f"All {len(there)} videos"


def _said(one: Decided, store: Store, name: str) -> str:
    decision, tags = one.videos[name], one.tags[name]
    carries = f"tagged {', '.join(store.classes[tag] for tag in tags)}" if tags else "without a tag"
    if not len(decision):
        return f"{name}, {carries}: nothing is found."
    surest = "" if decision.confidence is None else f", the surest with {100 * decision.confidence.max():.0f} %"
    return f"{name}, {carries}: {len(decision)} found{surest}."


def _decided_figure(group: SeedGroup, one: Decided, seen: ActivationMap | None, store: Store, name: str) -> "Figure":
    """The activation of the class that is found best, and what is found of each class."""
    found = one.videos[name].written()
    labels = list(dict.fromkeys(found.class_ids.tolist()))[:MOST_CLASSES] or one.tags[name][:1] or [0]
    clock = clocks(store, group.recipe.test.offset_snippets)[name]
    rows: dict[str, Row] = {}
    edges = None
    if seen is not None:
        rows[f"activation,\n{store.classes[labels[0]]}"] = seen.tcam[:, labels[0]]
        edges = clock.to_seconds(np.arange(len(seen.tcam) + 1.0))
    rows |= {store.classes[label]: found.of_class(label) for label in labels}
    colours = {row: series(number) for number, row in enumerate(rows)}
    return timeline(rows, edges=edges, unit="second", colours=colours)


def _maps(
    runs: Iterable[LoadedRun], store: Store, names: list[str]
) -> tuple[dict[tuple[LoadedRun, str], ActivationMap], list[str]]:
    """The activation maps of these videos by run and video, and what kept others from being made."""
    found, problems = {}, []
    for one in runs:
        try:
            localizer = Localizer.load(one.run.path)
        except (InputError, MissingExtraError) as error:
            problems.append(f"{one.name}: no activation curves, since its model cannot be used: {error}")
            continue
        for name in names:
            found[one, name] = mean_map(localizer.maps(name, store.features(name)))
    return found, problems


def _figure(
    runs: Mapping[LoadedRun, SeedGroup],
    maps: Mapping[tuple[LoadedRun, str], ActivationMap],
    store: Store,
    name: str,
    label: int,
    found: Mapping[LoadedRun, Instances],
    truth: Instances,
) -> "Figure":
    curves: dict[str, Row] = {}
    bars: dict[str, Row] = {"truth": truth}
    colours = {"truth": GREEN}
    edges = None
    for one, group in runs.items():
        bar, curve = (group.name, f"{group.name}\nTCAM") if len(runs) > 1 else ("found", "TCAM")
        colours |= dict.fromkeys((bar, curve), series(group.number))
        bars[bar] = found[one]
        if (one, name) in maps:
            curves[curve] = maps[one, name].tcam[:, label]
            clock = clocks(store, group.recipe.test.offset_snippets)[name]
            edges = clock.to_seconds(np.arange(len(maps[one, name].tcam) + 1.0))
    return timeline({**curves, **bars}, truth=truth, edges=edges, unit="second", colours=colours)
