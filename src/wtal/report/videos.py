"""Timelines of single videos: the best, the worst and the ones between."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from wtal.data.store import Store
from wtal.errors import InputError, MissingExtraError
from wtal.figures.page import PageBlock, Plot, Text
from wtal.figures.style import GREEN, series
from wtal.figures.timeline import Row, timeline
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.maps import ActivationMap, mean_map
from wtal.report.measures import Measurements, clocks, mean_by_video
from wtal.report.runs import LoadedRun, SeedGroup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def typical_videos(scores: Mapping[str, float], n: int = 2) -> dict[str, list[str]]:
    """The names of the n best, n typical (next to the median) and n worst videos; none stands twice.

    >>> typical_videos({"a": 90.0, "b": 70.0, "c": 50.0, "d": 10.0, "e": 0.0}, n=1)
    {'best': ['a'], 'typical': ['c'], 'worst': ['e']}
    """
    ranked = sorted(scores, key=lambda name: (-scores[name], name))
    n = min(n, max(1, len(ranked) // 3))
    best, worst = ranked[:n], ranked[n:][-n:]
    median = float(np.median(list(scores.values())))
    between = sorted(ranked[n:-n], key=lambda name: (abs(scores[name] - median), name))[:n]
    return {"best": best, "typical": between, "worst": worst}


def videos(measures: Measurements) -> list[PageBlock]:
    """Timelines of chosen test videos: what the model sees, what is found, what is true."""
    store = measures.loaded.store
    if not measures.measured or store is None or measures.truth is None:
        return []
    scores = mean_by_video(measures.measured.values())
    chosen = typical_videos(scores)
    # the first run of each group that has predictions
    runs = {next(one for one in group.runs if one.name in measures.measured): group for group in measures.by_group}
    maps, problems = _maps(runs, store, [name for names in chosen.values() for name in names])
    blocks: list[PageBlock] = [
        Text(
            "Chosen by the average precision within the video (mean over its classes, tIoU 0.3, 0.5 and 0.7, and "
            "all runs). Bars are as strong as their scores."
        ),
        *(Text(problem, "warning") for problem in problems),
    ]
    for number, (kind, name) in enumerate(((kind, name) for kind, names in chosen.items() for name in names), start=1):
        true = measures.truth.videos[name].instances
        label = int(np.bincount(true.class_ids).argmax())
        found = {one: measures.measured[one.name].predictions[name].of_class(label) for one in runs}
        figure = _figure(runs, maps, store, name, label, found, true.of_class(label))
        said = (
            f"{kind.capitalize()}: {name}, {store.classes[label]}; average precision in the video {scores[name]:.0f} %."
        )
        blocks.append(Plot(f"video-{number}", figure, said))
    return blocks


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
