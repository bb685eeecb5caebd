"""Test-time settings chosen on videos whose instances are known, and what the choice is worth on videos it did not see.

The settings are those of the proposer and the time base: how an activation map is cut, fused and laid on the clock.
One after the other is set to the best of its values (coordinate ascent) until none gets better. That is no training:
the model stays as it is. The training videos' instances may serve here, as long as no loss ever sees them; the test
videos' may not, or their figures mean nothing.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np

from wtal.annotations import Annotations
from wtal.errors import InputError
from wtal.evaluate import score
from wtal.instances import Instances
from wtal.localize import localize_map
from wtal.maps import ActivationMap
from wtal.progress import Progress, adapted, silent
from wtal.propose import Proposer
from wtal.timebase import TimeBase
from wtal.typed import changed

#: A gain in mAP below this is no gain: it keeps the choice from following noise.
LEAST_GAIN = 0.02


@dataclass(frozen=True)
class Settings:
    """What a choice is made of."""

    proposer: Proposer
    offset_snippets: float = 0.0


@dataclass(frozen=True, eq=False)
class Known:
    """Videos with maps of one or several runs (the streams of each) and with their true instances."""

    runs: tuple[Mapping[str, tuple[ActivationMap, ...]], ...]
    clocks: Mapping[str, TimeBase]
    durations_s: Mapping[str, float]
    truth: Annotations
    protocols: tuple[str, ...]

    def only(self, names: Sequence[str]) -> "Known":
        """These videos alone."""
        videos = {name: self.truth.videos[name] for name in names}
        runs = tuple({name: run[name] for name in names} for run in self.runs)
        return replace(self, runs=runs, truth=replace(self.truth, videos=videos))

    def as_one_run(self) -> "Known":
        """Runs that know different videos, such as folds the ones they held out, as one that knows them all."""
        return replace(self, runs=({name: maps for run in self.runs for name, maps in run.items()},))

    def found(self, settings: Settings) -> list[dict[str, Instances]]:
        """The instances of each run in seconds."""
        return [{name: self._one(name, maps, settings) for name, maps in run.items()} for run in self.runs]

    def _one(self, name: str, maps: tuple[ActivationMap, ...], settings: Settings) -> Instances:
        clock = self.clocks[name].at(settings.offset_snippets)
        return localize_map(maps, settings.proposer, clock, self.durations_s[name])

    def scores(self, found: Sequence[Mapping[str, Instances]]) -> dict[str, float]:
        """Average mAP by each protocol, mean over the runs."""
        split = next(iter(self.truth.videos.values())).split
        return {
            protocol: float(
                np.mean([score(one, self.truth, protocol=protocol, split=split).map.mean() for one in found])
            )
            for protocol in self.protocols
        }


@dataclass(frozen=True)
class TunedSettings:
    """The chosen settings and average mAP by protocol: at the start, as chosen, and cross-validated."""

    settings: Settings
    before: Mapping[str, float]
    after: Mapping[str, float]
    held_out: Mapping[str, float] | None
    """Each video localized with settings that were chosen without it; all together scored once."""


def levels(lowest: float, highest: float, n: int = 20) -> tuple[float, ...]:
    """`n` activation levels in even ratios.

    >>> levels(0.01, 1.0, 3)
    (0.01, 0.1, 1.0)
    """
    return tuple(float(f"{value:.4g}") for value in np.geomspace(lowest, highest, n))


#: The values that are tried for each setting, a dotted path into the proposer; dilation is the same on both sides.
GRID: Mapping[str, tuple[Any, ...]] = {
    "cut.thresholds": tuple(
        levels(low, high) for low in (0.0003, 0.001, 0.003, 0.01, 0.03) for high in (0.1, 0.3, 0.5, 0.8)
    ),
    "cut.upsample": (1, 2, 4, 8),
    "cut.dilation": tuple((d, d) for d in (-0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25)),
    "offset_snippets": (-0.75, -0.5, -0.25, 0.0, 0.25),
    "cut.min_length": (1.0, 2.0, 3.0),
    "cut.flanks.scale": (0.05, 0.1, 0.15, 0.25, 0.4),
    "cut.outer_weight": (0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
    "combine.temperature": (0.01, 0.03, 0.1, 0.2, 0.5, 2.0),
    "combine.overlap": ("iou", "own_length"),
    "combine.threshold": (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6),
    "combine.evidence": (0.0, 0.3, 0.5, 0.75),
    "combine.decay_sigma": (None, 0.2, 0.3, 0.5),
    "combine.logit": ("inner", "score"),
    "cut.class_threshold": (0.02, 0.05, 0.1, 0.16),
    "cut.video_score_weight": (0.0, 0.05, 0.1, 0.2),
}


def tune(
    known: Known,
    start: Settings,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    rounds: int = 3,
    folds: int = 5,
    workers: int = 1,
    progress: Progress = silent,
) -> TunedSettings:
    """Choose on all videos; with `folds`, choose on the others of each fold too, and localize the fold with that.

    `grid` has the values to try by setting: without one, those of `GRID` that the start has, as NMS has no temperature.
    Progress counts the settings that have been tried, of all that may be, and tells the best average mAP so far.
    """
    names = list(known.truth.videos)
    if folds == 1 or folds < 0 or folds > len(names):
        raise InputError(f"folds must be 0, for none, or 2 to {len(names)}, the number of videos; got {folds}")
    if grid is None:
        grid = {name: values for name, values in GRID.items() if _has(start, name)}
    for name, values in grid.items():
        for value in values:
            _with(start, name, value)  # which says so if there is no such setting, or it takes no such value

    def heard(ascents: int, **detail: int) -> Progress:
        """One ascent as a part of all: that of the choice, and one per fold."""
        more = adapted(progress, **detail)
        return lambda step, completed, total, at: more(step, ascents * total + completed, (1 + folds) * total, at)

    with ProcessPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
        chosen = _ascend(known, start, grid, rounds, pool, heard(0))
        held_out = None
        if folds:
            together: list[dict[str, Instances]] = [{} for _ in known.runs]
            for k in range(folds):
                mine = names[k::folds]
                others = known.only([name for name in names if name not in set(mine)])
                found = _ascend(others, start, grid, rounds, pool, heard(k + 1, fold=k + 1))
                for all_found, part in zip(together, known.only(mine).found(found), strict=True):
                    all_found.update(part)
            held_out = known.scores(together)
    before, after = (known.scores(known.found(settings)) for settings in (start, chosen))
    return TunedSettings(chosen, before, after, held_out)


def _ascend(
    known: Known,
    settings: Settings,
    grid: Mapping[str, Sequence[Any]],
    rounds: int,
    pool: Executor | None,
    progress: Progress,
) -> Settings:
    best, total = _value(known, settings), rounds * len(grid)
    for turn in range(rounds):
        begun = best
        for number, (name, values) in enumerate(grid.items()):
            tried = [_with(settings, name, value) for value in values]
            for one, value in zip(tried, (pool.map if pool else map)(_value, repeat(known), tried), strict=True):
                if value > best + LEAST_GAIN:
                    best, settings = value, one
            detail = {"round": turn + 1, "setting": name, "mAP": best}
            progress("tuning", turn * len(grid) + number + 1, total, detail)
        if best <= begun + LEAST_GAIN:
            break
    return settings


def _with(settings: Settings, name: str, value: Any) -> Settings:
    if name == "offset_snippets":
        return replace(settings, offset_snippets=value)
    return replace(settings, proposer=changed(settings.proposer, name, value))


def _has(settings: Settings, name: str) -> bool:
    if name == "offset_snippets":
        return True
    found: Any = settings.proposer
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None


def _value(known: Known, settings: Settings) -> float:
    return float(np.mean(list(known.scores(known.found(settings)).values())))
