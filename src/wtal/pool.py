"""Several opinions as one: the instances of a detector and of its teachers, each scored by all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.overlap import iou
from wtal.pseudo.candidates import Candidates
from wtal.pseudo.fusion import fuse
from wtal.suppress import decayed


@dataclass(frozen=True, eq=False)
class Pooled:
    """The instances of several models as one set, best first.

    Args:
        instances: The instances.
        origin: Of each the position that it came from among the instances of all, model after model.
    """

    instances: Instances
    origin: Int[np.ndarray, " n"]


@dataclass(frozen=True)
class Pooling:
    """How much each model counts, and how instances that overlap weaken or correct each other."""

    weight: float = 0.5
    """What the detector's support counts."""
    teacher_weights: tuple[float, ...] = ()
    """What each teacher's support counts; empty: 1."""
    power: float = 2.0
    """Support is tIoU to this power times the score."""
    sigma: float = 0.3
    """Of the Gaussian decay between instances of one class."""
    vote: float | None = None
    """Ends become means over all instances of the class, each by weight × score × tIoU to this power; null: they stay
    as they were found."""

    def __post_init__(self) -> None:
        positive = (self.power, self.sigma, 1.0 if self.vote is None else self.vote)
        if min(self.weight, *self.teacher_weights, 0.0) < 0 or not min(positive) > 0:
            raise InputError(f"weights must be 0 or more, power, sigma and vote above 0, got {self}")

    def refuse_other_number(self, teachers: int) -> None:
        """Make sure that each of so many teachers has a weight."""
        if self.teacher_weights and len(self.teacher_weights) != teachers:
            raise InputError(
                f"test.pool.teacher_weights are {len(self.teacher_weights)} for {teachers} "
                f"teacher{'' if teachers == 1 else 's'}: give as many, or none for 1 each"
            )

    def __call__(self, teachers: Sequence[Instances], detector: Instances) -> Pooled:
        """All instances of all, scored by all.

        >>> first, second = Instances([[0.0, 4.0]], [0.8]), Instances([[0.0, 4.0], [9.0, 9.5]], [0.4, 0.4])
        >>> pooled = Pooling(sigma=1e9)([first], second)
        >>> pooled.instances.scores.round(3).tolist(), pooled.origin.tolist()
        ([1.0, 1.0, 0.2], [0, 1, 2])
        """
        opinions, weights = [*teachers, detector], [*self._weights(teachers), self.weight]
        every = self._supported(opinions, weights)
        scores = decayed(every, decay="gaussian", sigma=self.sigma)
        best = every.scored(scores).order()
        origin = best[scores[best] >= LEAST_SCORE]
        instances = every.scored(scores)[origin]
        return Pooled(instances if self.vote is None else _voted(instances, opinions, weights, self.vote), origin)

    def agreed(self, teachers: Sequence[Instances]) -> Instances:
        """What the teachers find together: one instance for each group that overlaps, best first.

        >>> Pooling().agreed([Instances([[0.0, 4.0]], [0.8]), Instances([[0.0, 3.0]], [0.8])]).segments.tolist()
        [[0.0, 3.5]]
        """
        if len(teachers) == 1:
            return teachers[0]
        every = self._supported(teachers, self._weights(teachers))
        return fuse(Candidates(every, every.scores), temperature=0.1, threshold=0.5).instances

    def _weights(self, teachers: Sequence[Instances]) -> Sequence[float]:
        self.refuse_other_number(len(teachers))
        return self.teacher_weights or [1.0] * len(teachers)

    def _supported(self, opinions: Sequence[Instances], weights: Sequence[float]) -> Instances:
        """The instances of all, each scored by the support of all."""
        every = Instances.concat(opinions)
        scores = np.zeros(len(every))
        for weight, one in zip(weights, opinions, strict=True):
            scores += weight * support(every, one, self.power)
        return every.scored(scores)


#: What has decayed below this is dropped: it cannot matter to anyone.
LEAST_SCORE = 1e-3


def support(instances: Instances, by: Instances, power: float) -> Float[np.ndarray, " n"]:
    """How much others of its class vouch for each instance: the greatest of tIoU ** power × score."""
    if not len(instances) or not len(by):
        return np.zeros(len(instances))
    return (overlaps(instances, by) ** power * by.scores).max(axis=1)


def overlaps(instances: Instances, others: Instances) -> Float[np.ndarray, "n m"]:
    """The tIoU of each instance with each other one; 0 with those of another class."""
    same = instances.class_ids[:, None] == others.class_ids[None, :]
    return iou(instances.segments, others.segments) * same


def _voted(instances: Instances, opinions: Sequence[Instances], weights: Sequence[float], power: float) -> Instances:
    """The instances at the mean ends of all of their class, by weight × score × tIoU ** power."""
    every = Instances.concat([one.scored(weight * one.scores) for weight, one in zip(weights, opinions, strict=True)])
    votes = overlaps(instances, every) ** power * np.maximum(every.scores, 0.0)
    total = votes.sum(axis=1, keepdims=True)
    means = votes @ every.segments / np.where(total > 0, total, 1.0)
    # a model of weight 0 and a high power may leave an instance without a vote: it stays
    return instances.at(np.where(total > 0, means, instances.segments))
