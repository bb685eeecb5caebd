"""What a report measures anew from a run's predictions and labels, where the truth is known."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from wtal.annotations import Annotations
from wtal.data.store import Store
from wtal.errors import InputError
from wtal.evaluate import (
    Diagnosis,
    Score,
    diagnose,
    mean_average_precision,
    precision_recall,
    prepare,
    score,
    target_calibration,
    target_quality,
    video_precision,
)
from wtal.evaluate.target_quality import Clock, Curves
from wtal.formats.targets import TargetFile, VideoTargets, read_targets
from wtal.instances import Instances
from wtal.pseudo.delta import delta_targets
from wtal.report.runs import LoadedRun
from wtal.timebase import TimeBase

PR_TIOU = (0.3, 0.5, 0.7)


@dataclass(frozen=True, eq=False)
class Measured:
    """A run's predictions under one protocol, looked at from all sides."""

    score: Score
    curves: dict[float, Float[np.ndarray, "k r"]]
    diagnosis: Diagnosis
    videos: dict[str, float]
    predictions: dict[str, Instances]


def measure(one: LoadedRun, store: Store, truth: Annotations, protocol: str) -> Measured | None:
    """What the run's predictions are worth; None if it has none."""
    found = one.predictions(store.classes)
    if found is None:
        return None
    known = {name: instances for name, instances in found.items() if name in truth.videos}
    case = prepare(known, truth, protocol=protocol, subset=one.recipe.test_split)
    # at the protocol's own thresholds where the usual ones are not among them
    tiou = [t for t in PR_TIOU if t in case.protocol.tiou] or [case.protocol.tiou[0], case.protocol.tiou[-1]]
    return Measured(
        mean_average_precision(case),
        {t: precision_recall(case, tiou=t) for t in tiou},
        diagnose(case),
        video_precision(case),
        known,
    )


@dataclass(frozen=True, eq=False)
class GenerationQuality:
    """How good one generation of labels is, in percent, on the training videos whose truth training never sees.

    `labels` and `delta` are the mean average precision with which labels and their change rank snippets; `instances`
    is the average mAP of the instances that the labels were made from.
    """

    epoch: int
    targets: float
    delta: float | None
    instances: float
    n_instances: int
    calibration: tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"], Int[np.ndarray, " b"]]


def label_qualities(one: LoadedRun, store: Store, truth: Annotations, protocol: str) -> list[GenerationQuality]:
    """The quality of each of the run's generations of labels that is there, the first one first."""
    clock = clocks(store, one.recipe.test.offset_snippets)
    before: TargetFile | None = None
    found = []
    for epoch in one.generations:
        path = one.run.targets(epoch)
        if not path.exists():
            continue
        made = read_targets(path)
        known = VideoTargets((name for name in made.targets if name in truth.videos), made.targets.__getitem__)
        delta = None
        if before is not None:
            delta = quality(_changes(known, before.targets), truth, clock)
        seconds = in_seconds(made.instances, store, clock, n_classes=len(store.classes))
        result = score(
            {name: instances for name, instances in seconds.items() if name in truth.videos},
            truth,
            protocol=protocol,
            subset=one.recipe.train_split,
        )
        found.append(
            GenerationQuality(
                epoch,
                quality(known, truth, clock),
                delta,
                average(result),
                sum(map(len, seconds.values())),
                target_calibration(known, truth, clock),
            )
        )
        before = made
    return found


def _changes(now: VideoTargets, before: VideoTargets) -> VideoTargets:
    return VideoTargets(now, lambda name: delta_targets(now[name], before[name]))


def quality(labels: Curves, truth: Annotations, clock: Clock) -> float:
    """The mean snippet average precision."""
    return target_quality(labels, truth, clock).mean


def average(result: Score) -> float:
    """The mean over all of the protocol's thresholds, which is its last average."""
    return list(result.average.values())[-1]


def clocks(store: Store, offset_snippets: float | None) -> dict[str, TimeBase]:
    """Each video's time base, with another offset where one is given."""
    own = {name: store.timebase(name) for name in store.names()}
    if offset_snippets is None:
        return own
    return {name: replace(clock, offset_snippets=offset_snippets) for name, clock in own.items()}


def in_seconds(
    found: Mapping[str, Instances], store: Store, clock: Mapping[str, TimeBase], *, n_classes: int
) -> dict[str, Instances]:
    """Instances of the snippet grid in seconds, without those of background."""
    return {
        name: clock[name].instances_to_seconds(
            instances[instances.class_ids < n_classes], duration_s=store.duration_s(name)
        )
        for name, instances in found.items()
    }


def mean_by_video(measured: Iterable[Measured]) -> dict[str, float]:
    """Each video's precision, averaged over runs; only videos that all runs have."""
    all_of_them = [one.videos for one in measured]
    if not all_of_them:
        raise InputError("no run has predictions, so no video is better than another")
    shared = set.intersection(*map(set, all_of_them))
    return {name: float(np.mean([videos[name] for videos in all_of_them])) for name in sorted(shared)}
