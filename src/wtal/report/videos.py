"""Timelines of single videos, of which the reader chooses: what the model sees, what is found, and what is true.

Where a detector and its teachers have found it together, what each of them finds by itself stands below.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wtal.data.store import Store
from wtal.decide import standing
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


@dataclass(frozen=True, eq=False)
class Seen:
    """What a model sees in a video; of a detector with teachers also what each would choose by itself, in seconds."""

    map: ActivationMap
    alone: Mapping[str, Instances]


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
    seen, problems = _seen(runs, store, chosen)
    options = []
    for number, name in enumerate(chosen, start=1):
        true = truth.videos[name].instances
        label = int(np.bincount(true.class_ids).argmax())
        found = {one: measures.measured[one.name].predictions[name].of_class(label) for one in runs}
        figure = _figure(runs, seen, store, name, label, found, true.of_class(label))
        said = f"{name}, {store.classes[label]}: average precision in the video {scores[name]:.0f} %."
        title = f"{name}, {store.classes[label]} ({scores[name]:.0f} %)"
        options.append((title, (Plot(f"video-{number}", figure, said),)))
    text = (
        f"{_how_many(chosen, scores)}, the worst first, by the average precision within the video (mean over its "
        f"classes, tIoU 0.3, 0.5 and 0.7, and all runs). Bars are as strong as their scores.{_each(seen.values())}"
    )
    return [Text(text), *(Text(problem, "warning") for problem in problems), OneOf("Video", tuple(options))]


def _as_found(measures: Measurements, store: Store) -> list[PageBlock]:
    group = next((group for group in measures.loaded.groups if group.name in measures.decided), None)
    if group is None:
        return []
    one = measures.decided[group.name]
    chosen = evenly(one.doubtful_first())
    seen, problems = _seen([one.run], store, chosen)
    options = []
    for number, name in enumerate(chosen, start=1):
        figure = _decided_figure(group, one, seen.get((one.run, name)), store, name)
        options.append((name, (Plot(f"video-{number}", figure, _said(one, store, name)),)))
    text = (
        f"{_how_many(chosen, one.videos)}, the most doubtful first: what {group.name} decides for. Bars are as strong "
        f"as they are sure.{_each(seen.values())}"
    )
    return [Text(text), *(Text(problem, "warning") for problem in problems), OneOf("Video", tuple(options))]


def _each(seen: Iterable[Seen]) -> str:
    together = any(one.alone for one in seen)
    return " What several models have found together is followed by what each would choose alone." if together else ""


def _how_many(chosen: Sequence[str], there: Mapping[str, object]) -> str:
    return f"{len(chosen)} of {len(there)} videos" if len(chosen) < len(there) else f"All {len(there)} videos"


def _said(one: Decided, store: Store, name: str) -> str:
    decision, tags = one.videos[name], one.tags[name]
    carries = f"tagged {', '.join(store.classes[tag] for tag in tags)}" if tags else "without a tag"
    if not len(decision):
        return f"{name}, {carries}: nothing is found."
    surest = "" if decision.confidence is None else f", the surest with {100 * decision.confidence.max():.0f} %"
    return f"{name}, {carries}: {len(decision)} found{surest}."


def _decided_figure(group: SeedGroup, one: Decided, seen: Seen | None, store: Store, name: str) -> "Figure":
    """The activation of the class that is found best, what is found of each class, and of the first by each model."""
    found = one.videos[name].written()
    labels = list(dict.fromkeys(found.class_ids.tolist()))[:MOST_CLASSES] or one.tags[name][:1] or [0]
    clock = clocks(store, group.recipe.test.offset_snippets)[name]
    rows: dict[str, Row] = {}
    edges = None
    if seen is not None:
        rows[f"activation,\n{store.classes[labels[0]]}"] = seen.map.tcam[:, labels[0]]
        edges = clock.to_seconds(np.arange(len(seen.map.tcam) + 1.0))
    rows |= {store.classes[label]: found.of_class(label) for label in labels}
    if seen is not None:
        rows |= {f"{store.classes[labels[0]]},\n{by} alone": own.of_class(labels[0]) for by, own in seen.alone.items()}
    colours = {row: series(number) for number, row in enumerate(rows)}
    return timeline(rows, edges=edges, unit="second", colours=colours)


def _seen(
    runs: Iterable[LoadedRun], store: Store, names: list[str]
) -> tuple[dict[tuple[LoadedRun, str], Seen], list[str]]:
    """What is seen in these videos by run and video, and what kept more from being seen."""
    seen, problems = {}, []
    for one in runs:
        try:
            localizer = Localizer.load(one.run.path)
        except (InputError, MissingExtraError) as error:
            problems.append(f"{one.name}: no activation curves, since its model cannot be used: {error}")
            continue
        for name in names:
            features, alone = store.features(name), {}
            if localizer.teachers:
                clock, sight = store.timebase(name).at(localizer.card.offset_snippets), localizer.look(name, features)
                each = sight.opinions(sight()).items()
                alone = {model: clock.instances_to_seconds(standing(found)) for model, found in each}
            seen[one, name] = Seen(mean_map(localizer.maps(name, features)), alone)
    return seen, problems


def _figure(
    runs: Mapping[LoadedRun, SeedGroup],
    seen: Mapping[tuple[LoadedRun, str], Seen],
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
        if (one, name) in seen:
            curve_of_run, alone = seen[one, name].map.tcam[:, label], seen[one, name].alone
            curves[curve] = curve_of_run
            clock = clocks(store, group.recipe.test.offset_snippets)[name]
            edges = clock.to_seconds(np.arange(len(curve_of_run) + 1.0))
            of_group = f"{bar},\n" if len(runs) > 1 else ""
            lanes = {f"{of_group}{model} alone": own.of_class(label) for model, own in alone.items()}
            bars |= lanes
            colours |= dict.fromkeys(lanes, series(group.number))
    return timeline({**curves, **bars}, truth=truth, edges=edges, unit="second", colours=colours)
