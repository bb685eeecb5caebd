"""Weighted instance fusion (Eq. 1–4): overlapping candidates become one instance, none is thrown away.

The candidates of a group are samples, their confidences the samples' log-probabilities over a temperature. Each of
score, start and end becomes the location of the template distribution that fits the weighted samples best in
cross-entropy: for a Gaussian that is the weighted mean.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.overlap import Overlap, greedy_groups
from wtal.pseudo.candidates import Candidates

Template = Literal["gaussian", "exponential", "student_t", "uniform"]
Logit = Literal["score", "inner"]


@dataclass(frozen=True, eq=False)
class Fused:
    """The fused instances, best first, and which candidates made each."""

    instances: Instances
    #: of each candidate, the fused instance it went into, and its weight there (weights of one instance sum to 1)
    group: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    #: whether the template's fit converged; only Student-t can fail to
    converged: Bool[np.ndarray, " m"]

    def __len__(self) -> int:
        return len(self.instances)

    def members(self, index: int | np.integer) -> Int[np.ndarray, " k"]:
        """The candidates that made fused instance `index`."""
        return np.flatnonzero(self.group == index)


def fuse(
    candidates: Candidates,
    *,
    temperature: float = 0.03,
    threshold: float = 0.25,
    overlap: Overlap = "iou",
    pad: float = 0.0,
    logit: Logit = "score",
    template: Template = "gaussian",
) -> Fused:
    """One instance for each group of overlapping candidates of a class.

    Groups form around the most confident candidate left, from all whose overlap with it exceeds `threshold`
    (h_fuse of Eq. 1, whose value the paper does not give); ties in confidence go by start, then end. Weights are
    the softmax of `logit / temperature` inside the group (Eq. 3): the paper's logit is the score, the released
    code's the inner mean. The paper's temperature is 0.1 for pseudo labels and 0.03 at test.

    >>> found = Candidates(Instances([[2.0, 6.0], [3.0, 6.0], [20.0, 22.0]], [0.5, 0.5, 0.1]), np.ones(3))
    >>> fused = fuse(found)
    >>> fused.instances.segments.tolist(), fused.members(0).tolist()
    ([[2.5, 6.0], [20.0, 22.0]], [0, 1])
    """
    from wtal.compiled.groups import softmax_by_group
    from wtal.pseudo.templates import TEMPLATES

    if not temperature > 0:
        raise InputError(f"the temperature must be above 0, got {temperature}")
    if template not in TEMPLATES:
        raise InputError(f"unknown template {template!r}; there are {', '.join(TEMPLATES)}")
    found = candidates.instances
    anchors, group = greedy_groups(found, threshold=threshold, overlap=overlap, pad=pad)
    m = len(anchors)
    if m == 0:
        return Fused(found, group, np.zeros(0), np.zeros(0, bool))

    logits = (candidates.inner if logit == "inner" else found.scores) / temperature
    weights = softmax_by_group(logits, group, m)
    values = np.empty((len(found), 3))
    values[:, :2], values[:, 2] = found.segments, found.scores
    fitted, converged = TEMPLATES[template](values, weights, group, m)
    fused = Instances.unchecked(fitted[:, :2], fitted[:, 2], found.labels[anchors])

    order = fused.order()
    rank = np.empty(m, np.int64)
    rank[order] = np.arange(m)
    return Fused(fused[order], rank[group], weights, converged[order])
