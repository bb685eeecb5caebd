"""What a report measures anew from runs' predictions and labels, where the truth is known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

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
from wtal.evaluate.target_quality import VideoCurves, calibration_error
from wtal.formats.targets import VideoTargets, read_targets
from wtal.instances import Instances
from wtal.pseudo.delta import delta_targets
from wtal.reading import refusing
from wtal.report.decided import Decided, decided
from wtal.report.runs import Loaded, SeedGroup
from wtal.timebase import TimeBase
from wtal.training.config import Recipe
from wtal.training.run import Run

PR_TIOU = (0.3, 0.5, 0.7)


@dataclass(frozen=True, eq=False)
class Measured:
    """A run's predictions under one protocol, looked at from all sides."""

    score: Score
    curves: dict[float, Float[np.ndarray, "k r"]]
    diagnosis: Diagnosis
    videos: dict[str, float]
    predictions: dict[str, Instances]


def measure(run: Run, store: Store, truth: Annotations, protocol: str) -> Measured | None:
    """What the run's predictions are worth; None if it has none."""
    found = run.predictions(store.classes)
    if found is None:
        return None
    known = {name: instances for name, instances in found.items() if name in truth.videos}
    case = prepare(known, truth, protocol=protocol, split=run.recipe.test_split)
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

    `targets` and `delta` are the mean average precision with which labels and their change rank snippets; `instances`
    is the average mAP of the instances that the labels were made from.
    """

    epoch: int
    targets: float
    delta: float | None
    instances: float | None
    n_instances: int
    calibration: tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"], Int[np.ndarray, " b"]]

    @property
    def calibration_error(self) -> float:
        """How far labels are from the share of snippets that are in an action."""
        return calibration_error(*self.calibration)


@dataclass(frozen=True, eq=False)
class TargetJudge:
    """What it takes to say how good labels for a recipe's training videos are."""

    recipe: Recipe
    store: Store
    truth: Annotations
    protocol: str

    def judge(
        self,
        targets: VideoCurves,
        instances: Mapping[str, Instances] | None = None,
        *,
        epoch: int = 0,
        before: VideoTargets | None = None,
    ) -> GenerationQuality:
        """The quality of labels, of the instances [snippets] behind them, and of the labels' change since `before`."""
        known = VideoTargets((name for name in targets if name in self.truth.videos), targets.__getitem__)
        clock = clocks(self.store, self.recipe.test.offset_snippets)
        delta = average = None
        if before is not None:
            changes = VideoTargets(known, lambda name: delta_targets(known[name], before[name]))
            delta = target_quality(changes, self.truth, clock).mean
        if instances is not None:
            seconds = in_seconds(instances, self.store, clock, n_classes=len(self.store.classes))
            there = {name: found for name, found in seconds.items() if name in self.truth.videos}
            average = score(there, self.truth, protocol=self.protocol, split=self.recipe.train_split).headline
        return GenerationQuality(
            epoch,
            target_quality(known, self.truth, clock).mean,
            delta,
            average,
            sum(map(len, seconds.values())) if instances is not None else 0,
            target_calibration(known, self.truth, clock),
        )


def label_qualities(run: Run, store: Store, truth: Annotations, protocol: str) -> list[GenerationQuality]:
    """The quality of each of the run's generations of labels that is there, the first one first."""
    judge = TargetJudge(run.recipe, store, truth, protocol)
    before: VideoTargets | None = None
    found = []
    for epoch in run.metrics().generations:
        if run.targets(epoch).exists():
            made = read_targets(run.targets(epoch))
            found.append(judge.judge(made.targets, made.instances, epoch=epoch, before=before))
            before = made.targets
    return found


@dataclass(frozen=True, eq=False)
class Measurements:
    """What a report's sections are about: the runs, and what was measured of each, by its name.

    `measured` and `targets` are empty where the truth is not known, and `decided`, what the first run of each group
    says happens, where the data set is not at hand.
    """

    loaded: Loaded
    protocol: str
    truth: Annotations | None = None
    measured: Mapping[str, Measured] = field(default_factory=dict)
    targets: Mapping[str, Sequence[GenerationQuality]] = field(default_factory=dict)
    decided: Mapping[str, Decided] = field(default_factory=dict)

    @cached_property
    def by_group(self) -> dict[SeedGroup, list[Measured]]:
        """What was measured of each group's runs, without groups of which nothing was."""
        return {
            group: found
            for group in self.loaded.groups
            if (found := [self.measured[one.name] for one in group.runs if one.name in self.measured])
        }


def measure_all(loaded: Loaded) -> tuple[Measurements, list[str]]:
    """What can be measured of the runs, and in words what is missing or contradicts itself."""
    store, protocol = loaded.store, loaded.groups[0].recipe.test.protocols[0]
    problems = [*loaded.notes, *(f"{one.name}: {problem}" for one in loaded.runs for problem in one.problems)]
    if store is None:
        return Measurements(loaded, protocol), problems
    decisions = {group.name: say for group in loaded.groups if (say := _first_decided(group, store)) is not None}
    if not store.has_truth:
        return Measurements(loaded, protocol, decided=decisions), problems
    truth = store.truth()
    measured, targets = {}, {}
    for one in loaded.runs:
        with refusing(one.run.path, "cannot be measured"):  # its recipe may name a split that the store has not
            targets[one.name] = label_qualities(one.run, store, truth, protocol)
            found = measure(one.run, store, truth, protocol)
        if found is not None:
            measured[one.name] = found
            written = one.evaluation.get(protocol, found.score.as_dict())["map"]
            if max(abs(a - b) for a, b in zip(written, found.score.map.tolist(), strict=True)) >= 0.01:
                problems.append(
                    f"{one.name}: evaluation.json is not the score of predictions.json; the summary shows the former"
                )
    return Measurements(loaded, protocol, truth, measured, targets, decisions), problems


def _first_decided(group: SeedGroup, store: Store) -> Decided | None:
    """What the first run of a group that has decided anything says."""
    return next((found for one in group.runs if (found := decided(one, store)) is not None), None)


def clocks(store: Store, offset_snippets: float | None) -> dict[str, TimeBase]:
    """Each video's time base, with another offset where one is given."""
    return {name: store.timebase(name).at(offset_snippets) for name in store.names()}


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
