"""Two opinions as one: the instances of a model and of the detector that it has taught, each scored by both."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.overlap import iou
from wtal.suppress import soft_nms


@dataclass(frozen=True)
class Pooling:
    """How much the detector counts beside its teacher, and how instances that overlap weaken each other."""

    weight: float = 0.5
    """What the detector's support counts; the teacher's counts 1."""
    power: float = 2.0
    """Support is tIoU to this power times the score."""
    sigma: float = 0.3
    """Of the Gaussian decay between instances of one class."""

    def __post_init__(self) -> None:
        if not (self.weight >= 0 and self.power > 0 and self.sigma > 0):
            raise InputError(f"weight must be 0 or more, power and sigma above 0, got {self}")

    def __call__(self, teacher: Instances, detector: Instances) -> Instances:
        """All instances of both, scored by both, best first.

        >>> first, second = Instances([[0.0, 4.0]], [0.8]), Instances([[0.0, 4.0], [9.0, 9.5]], [0.4, 0.4])
        >>> Pooling(sigma=1e9)(first, second).scores.round(3).tolist()
        [1.0, 1.0, 0.2]
        """
        both = Instances.concat([teacher, detector])
        scores = support(both, teacher, self.power) + self.weight * support(both, detector, self.power)
        return soft_nms(both.scored(scores), decay="gaussian", sigma=self.sigma, min_score=LEAST_SCORE)


#: What has decayed below this is dropped: it cannot matter to anyone.
LEAST_SCORE = 1e-3


def support(instances: Instances, by: Instances, power: float) -> Float[np.ndarray, " n"]:
    """How much others of its class vouch for each instance: the greatest of tIoU ** power × score."""
    if not len(instances) or not len(by):
        return np.zeros(len(instances))
    same = instances.class_ids[:, None] == by.class_ids[None, :]
    return (iou(instances.segments, by.segments) ** power * by.scores * same).max(axis=1)
