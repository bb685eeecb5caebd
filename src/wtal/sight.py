"""Sight: what a trained model sees in one video, kept, so that settings can be tried without looking again."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.maps import ActivationMap
from wtal.pool import Pooling
from wtal.propose import Proposals, Proposer
from wtal.pseudo.candidates import Candidates


@dataclass(frozen=True, eq=False)
class Found:
    """Instances of one video on the snippet grid, best first, and what they come from.

    Args:
        instances: What the model, together with its teacher if it has one, finds.
        own: What the model itself proposes.
        teacher: What the teacher of a detector finds, before the two opinions become one.
    """

    instances: Instances
    own: Proposals
    teacher: "Found | None" = None


@dataclass(frozen=True, eq=False)
class Sight:
    """What a model, and its teacher if it has one, see in one video: all that takes time.

    Calling it gives the instances, by the model's own settings or by others.

    Args:
        seen: The maps that candidates are cut from, one per stream, or the boxes that a detector finds by itself.
        proposer: The settings of the model.
        teacher: What the teacher of a detector sees.
        pool: How the instances of the two become one set.
    """

    seen: tuple[ActivationMap, ...] | Candidates
    proposer: Proposer
    teacher: "Sight | None" = None
    pool: Pooling | None = None

    @property
    def maps(self) -> tuple[ActivationMap, ...]:
        """The activation maps; a detector has none, and shows those of its teacher."""
        if not isinstance(self.seen, Candidates):
            return self.seen
        return () if self.teacher is None else self.teacher.maps

    def __call__(self, proposer: Proposer | None = None, *, classes: Int[np.ndarray, " k"] | None = None) -> Found:
        """The instances by these settings; of these `classes` alone, if they are known."""
        settings = proposer or self.proposer
        if not isinstance(self.seen, Candidates):
            own = settings.of_maps(self.seen, classes=classes)
            return Found(own.instances, own)
        if settings.cut != self.proposer.cut:
            raise InputError("a detector finds boxes itself, so that settings of the cut do nothing; set combine alone")
        own = settings.combine(self.seen)
        instances = own.instances
        if classes is not None:
            instances = instances[np.isin(instances.class_ids, classes)]
        if self.teacher is None or self.pool is None:
            return Found(instances, own)
        # what overlaps decays once, when both are together
        teacher = self.teacher(self.teacher.proposer.without_decay(), classes=classes)
        return Found(self.pool(teacher.instances, instances), own, teacher)
