"""Timelines of single videos: the best, the worst and the ones between."""

from collections.abc import Mapping

import numpy as np

from wtal.data.store import Store
from wtal.errors import InputError, MissingExtraError
from wtal.figures.page import Block, Picture, Section, Text
from wtal.figures.style import GREEN, series
from wtal.figures.timeline import Row, timeline
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.maps import ActivationMap, mean_map
from wtal.report.content import Content, nothing
from wtal.report.measures import clocks, mean_by_video
from wtal.report.runs import Group


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


def videos(content: Content) -> Section:
    """Timelines of chosen test videos: what the model sees, what is found, what is true."""
    store, truth = content.loaded.store, content.truth
    if not content.measured or store is None or truth is None:
        return nothing("videos", "Videos")
    scores = mean_by_video(content.measured.values())
    chosen = typical_videos(scores)
    maps, problems = _maps(content, store, [name for names in chosen.values() for name in names])
    blocks: list[Block] = [
        Text(
            "Chosen by the average precision within the video (mean over its classes, tIoU 0.3, 0.5 and 0.7, and "
            "all runs). Bars are as strong as their scores."
        ),
        *(Text(problem, "warning") for problem in problems),
    ]
    for kind, names in chosen.items():
        blocks += [_picture(content, store, name, kind, scores[name], maps) for name in names]
    return Section("videos", "Videos", tuple(blocks))


def _shown_runs(content: Content) -> dict[str, Group]:
    """The first run of each group that has predictions, by name."""
    return {next(one.name for one in group.runs if one.name in content.measured): group for group in content.known}


def _maps(content: Content, store: Store, names: list[str]) -> tuple[dict[tuple[str, str], ActivationMap], list[str]]:
    """The activation maps of these videos by run and video, and what kept others from being made."""
    found, problems = {}, []
    for run in content.loaded.runs:
        if run.name not in _shown_runs(content):
            continue
        try:
            localizer = Localizer.load(run.run.path)
        except (InputError, MissingExtraError) as error:
            problems.append(f"{run.name}: no activation curves, since its model cannot be used: {error}")
            continue
        for name in names:
            found[run.name, name] = mean_map(localizer.maps(name, store.features(name)))
    return found, problems


def _picture(
    content: Content, store: Store, name: str, kind: str, score: float, maps: Mapping[tuple[str, str], ActivationMap]
) -> Picture:
    assert content.truth is not None
    true = content.truth.videos[name].instances
    label = int(np.bincount(true.class_ids).argmax())
    rows: dict[str, Row] = {}
    found: dict[str, Instances] = {"truth": true.of_class(label)}
    colours = {"truth": GREEN}
    edges = None
    for run, group in _shown_runs(content).items():
        several = len(content.known) > 1
        row, curve = (group.name, f"{group.name}\nTCAM") if several else ("found", "TCAM")
        colours |= dict.fromkeys((row, curve), series(group.number))
        found[row] = content.measured[run].predictions[name].of_class(label)
        if (run, name) in maps:
            rows[curve] = maps[run, name].tcam[:, label]
            clock = clocks(store, group.recipe.test.offset_snippets)[name]
            edges = clock.to_seconds(np.arange(len(maps[run, name].tcam) + 1.0))
    figure = timeline({**rows, **found}, truth=found["truth"], edges=edges, unit="second", colours=colours)
    said = f"{kind.capitalize()}: {name}, {store.classes[label]}; average precision in the video {score:.0f} %."
    return Picture(f"video-{name}", figure, said)
