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
        instances: What the model, together with its teachers if it has any, finds.
        own: What the model itself proposes.
        teachers: What each teacher of a detector finds, before all opinions become one.
        origin: Of a detector with teachers: the position that each instance came from among those of the teachers, one
            after the other, and then the detector's own.
    """

    instances: Instances
    own: Proposals
    teachers: "tuple[Found, ...]" = ()
    origin: Int[np.ndarray, " n"] | None = None

    def moved(self, by: float) -> "Found":
        """The same so many snippets later."""
        teachers = tuple(teacher.moved(by) for teacher in self.teachers)
        return Found(self.instances.moved(by), self.own.moved(by), teachers, self.origin)


@dataclass(frozen=True, eq=False)
class Sight:
    """What a model, and its teachers if it has any, see in one video: all that takes time.

    Calling it gives the instances, by the model's own settings or by others.

    Args:
        seen: The maps that candidates are cut from, one per stream, or the boxes that a detector finds by itself.
        proposer: The settings of the model.
        teachers: What each teacher of a detector sees.
        pool: How the instances of all become one set.
        later: By how many snippets all instances are moved: a teacher's first snippet may start elsewhere on the
            clock than that of the detector which it has taught.
        model: What the model is called.
    """

    seen: tuple[ActivationMap, ...] | Candidates
    proposer: Proposer
    teachers: "tuple[Sight, ...]" = ()
    pool: Pooling | None = None
    later: float = 0.0
    model: str = "model"

    @property
    def maps(self) -> tuple[ActivationMap, ...]:
        """The activation maps; a detector has none, and shows those of its first teacher."""
        if not isinstance(self.seen, Candidates):
            return self.seen
        return self.teachers[0].maps if self.teachers else ()

    def __call__(self, proposer: Proposer | None = None, *, classes: Int[np.ndarray, " k"] | None = None) -> Found:
        """The instances by these settings; of these `classes` alone, if they are known."""
        found = self._found(proposer, classes)
        return found.moved(self.later) if self.later else found

    def opinions(self, found: Found) -> dict[str, Instances]:
        """What each teacher and the detector find by themselves, by the names of the models; of one model, nothing."""
        if not found.teachers:
            return {}
        models = [*(one.model for one in self.teachers), self.model]
        each = [*(one.instances for one in found.teachers), found.own.instances]
        names = [
            f"{name} {1 + models[:number].count(name)}" if models.count(name) > 1 else name
            for number, name in enumerate(models)
        ]
        return dict(zip(names, each, strict=True))

    def _found(self, proposer: Proposer | None, classes: Int[np.ndarray, " k"] | None) -> Found:
        settings = proposer or self.proposer
        if not isinstance(self.seen, Candidates):
            own = settings.of_maps(self.seen, classes=classes)
            return Found(own.instances, own)
        if settings.cut != self.proposer.cut:
            raise InputError("a detector finds boxes itself, so that settings of the cut do nothing; set combine alone")
        seen = self.seen if classes is None else self.seen.of_classes(classes)
        own = settings.combine(seen)
        if self.pool is None:
            return Found(own.instances, own)
        # what overlaps decays once, when all are together
        teachers = tuple(one(one.proposer.without_decay(), classes=classes) for one in self.teachers)
        pooled = self.pool([one.instances for one in teachers], own.instances)
        return Found(pooled.instances, own, teachers, pooled.origin)
