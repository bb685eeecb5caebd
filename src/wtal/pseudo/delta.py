"""Δ pseudo labels (Eq. 7–9) and the schedule that says what supervises when.

Labels of one generation strengthen whatever the model believes already. Their change from one generation to the next is
signed: it also weakens what the model has begun to doubt.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError
from wtal.typed import as_array

First = Literal["raw", "nothing"]


def delta_targets(
    targets: Float[np.ndarray, "t c"],
    previous: Float[np.ndarray, "t2 c2"] | None,
    *,
    scale: float = 1.0,
    first: First = "raw",
) -> Float[np.ndarray, "t c"]:
    """The change of the targets since the generation before (Eq. 8): positive where the model's belief has grown.

    Args:
        targets: Targets G of this generation, (snippets, classes).
        previous: Those of the generation before; None for the first generation.
        scale: What the change is multiplied by.
        first: What the first generation gives: itself (`raw`, as if the targets before were all 0), or `nothing`.

    Returns:
        `scale * (targets - previous)`.

    >>> delta_targets(np.array([[0.5]]), np.array([[0.2]]), scale=2.0).round(6).tolist()
    [[0.6]]
    >>> delta_targets(np.array([[0.5]]), None, first="nothing").tolist()
    [[0.0]]
    """
    targets = as_array(targets, "targets")
    if previous is None:
        return scale * targets if first == "raw" else np.zeros_like(targets)
    previous = as_array(previous, "previous")
    if targets.shape != previous.shape:
        raise InputError(
            f"targets of two generations must have one shape, got {targets.shape} now and {previous.shape} before: "
            "they are not of the same video"
        )
    return scale * (targets - previous)


@dataclass(frozen=True)
class Stage:
    """One line of the schedule: new labels are made at the start of epoch `from_epoch` (counted from 0).

    They supervise from that epoch (or `delay` epochs later) until the next stage does, with weight
    `min(weight * growth ** (epoch - growth_from), weight_cap)`.
    """

    from_epoch: int
    source: Literal["raw", "delta"] = "delta"
    scale: float = 1.0
    #: of the fusion that makes the labels; None: that of `targets.proposer`
    temperature: float | None = None
    weight: float = 1.0
    growth: float = 1.0
    growth_from: int = 0
    weight_cap: float = np.inf
    delay: int = 0
    #: whether this stage makes new labels, or only uses those at hand in another way
    relabel: bool = True

    def weight_at(self, epoch: int) -> float:
        """Weight of the pseudo-label loss at `epoch`.

        >>> Stage(200, weight=10, growth=1.035, growth_from=200, weight_cap=50).weight_at(202)
        10.71225
        """
        return float(min(self.weight * self.growth ** (epoch - self.growth_from), self.weight_cap))


@dataclass(frozen=True)
class Schedule:
    """The stages in the order of their epochs, and the number of epochs in all."""

    stages: tuple[Stage, ...]
    epochs: int

    def __post_init__(self) -> None:
        starts = [stage.from_epoch for stage in self.stages]
        if starts != sorted(set(starts)) or any(start < 0 for start in starts):
            raise InputError(f"stages must start at increasing epochs from 0 on, got {starts}")
        if starts and starts[-1] >= self.epochs:
            raise InputError(f"a stage starts at epoch {starts[-1]}, but training ends at {self.epochs}")

    def active(self, epoch: int) -> Stage | None:
        """The stage whose labels supervise at `epoch`; None before the first.

        >>> RELEASED_SCHEDULE.active(200), RELEASED_SCHEDULE.active(250).source, RELEASED_SCHEDULE.active(251).source
        (None, 'raw', 'delta')
        """
        begun = [stage for stage in self.stages if stage.from_epoch + stage.delay <= epoch]
        return begun[-1] if begun else None

    def relabels(self, epoch: int) -> Stage | None:
        """The stage that makes new labels at the start of `epoch`, if one does."""
        return next((s for s in self.stages if s.from_epoch == epoch and s.relabel), None)


#: Section 4.2 of the paper; it gives no weight for the loss, so that is 1. The first generation stands for itself.
PAPER_SCHEDULE = Schedule(tuple(Stage(epoch, temperature=0.1) for epoch in (200, 215, 230, 245, 270, 290)), epochs=350)


#: The authors' code: labels G until epoch 250, then 2·ΔG, then 2.15·ΔG; a weight that grows by 3.5 % an epoch.
_growing = partial(Stage, weight=10.0, growth=1.035, growth_from=200, weight_cap=50.0)
RELEASED_SCHEDULE = Schedule(
    (
        _growing(200, "raw", 1.0, temperature=0.02, delay=1),
        _growing(230, "raw", 1.0, temperature=0.02),
        _growing(245, "raw", 1.0, temperature=0.02),
        _growing(251, "delta", 2.0, temperature=0.02, relabel=False),
        _growing(260, "delta", 2.0, temperature=0.002),
        _growing(275, "delta", 2.0, temperature=0.002),
        _growing(300, "delta", 2.0, temperature=0.0016),
        _growing(301, "delta", 2.15, temperature=0.0016, relabel=False),
    ),
    epochs=350,
)
