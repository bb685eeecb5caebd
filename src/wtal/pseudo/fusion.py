"""Weighted instance fusion (Eq. 1–4): overlapping candidates become one instance, none is thrown away.

The candidates of a group are samples, their confidences the samples' log-probabilities over a temperature. Each of
score, start and end becomes the location of the template distribution that fits the weighted samples best in
cross-entropy: for a Gaussian that is the weighted mean.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.compiled import Floats, Integers, compiled
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.overlap import Overlap, shared_and_whole
from wtal.pseudo.candidates import Candidates
from wtal.pseudo.templates import TEMPLATES, Template, sums_by_group
from wtal.typed import checked, wanted_type

Logit = Literal["score", "inner"]
Evidence = Literal["count", "score"]


@dataclass(frozen=True, eq=False)
class Fused:
    """The fused instances, and which candidates made each.

    Args:
        instances: The m fused instances, best first.
        group: Index of the fused instance that each of the n candidates went into.
        weights: Weight of each candidate there; the weights of one fused instance sum to 1.
        converged: Whether the template's fit converged; only Student-t can fail to.
    """

    instances: Instances
    group: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    converged: Bool[np.ndarray, " m"]

    def __len__(self) -> int:
        return len(self.instances)

    def members(self, index: int | np.integer) -> Int[np.ndarray, " k"]:
        """The candidates that made fused instance `index`."""
        return np.flatnonzero(self.group == index)

    def scored(self, scores: Float[np.ndarray, " m"]) -> "Fused":
        """The same fused instances with other scores, best first again."""
        instances = self.instances.scored(scores)
        order = instances.order()
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return Fused(instances[order], rank[self.group], self.weights, self.converged[order])


def fuse(
    candidates: Candidates,
    *,
    temperature: float = 0.03,
    threshold: float = 0.25,
    overlap: Overlap = "iou",
    pad: float = 0.0,
    logit: Logit = "score",
    template: Template = "gaussian",
    evidence: float = 0.0,
    evidence_by: Evidence = "count",
    evidence_full: float = 20.0,
) -> Fused:
    """One instance for each group of overlapping candidates of a class.

    Groups form around the most confident candidate left, from all whose overlap with it exceeds `threshold`
    (Eq. 1); ties in confidence go by start, then end. Weights are the softmax of `logit / temperature` inside
    the group (Eq. 3).

    Args:
        candidates: What `find_candidates` found in one video.
        temperature: The higher, the more equal the weights. The paper has 0.1 for pseudo labels and 0.03 at test.
        threshold: h_fuse of Eq. 1, whose value the paper does not give.
        overlap: `iou`, or `own_length`: the intersection over the length of the candidate that joins a group.
        pad: Added to lengths and intersections; 1 where positions are inclusive integers (the released code).
        logit: What the weights come from: the `score` (the paper) or the `inner` mean (the released code).
        template: The distribution that is fitted to a group's starts, ends and scores.
        evidence: How much it counts how many candidates a group has: scores are multiplied by
            (size / evidence_full) ** evidence. 0, the paper's form, leaves them as they are.
        evidence_by: The size of a group: the `count` of its candidates, or the sum of their `score`s.
        evidence_full: The size of a group whose score stays as it is, such as the number of levels.

    Returns:
        The fused instances with their members and weights.

    >>> found = Candidates(Instances([[2.0, 6.0], [3.0, 6.0], [20.0, 22.0]], [0.5, 0.5, 0.1]), np.ones(3))
    >>> fused = fuse(found)
    >>> fused.instances.segments.tolist(), fused.members(0).tolist()
    ([[2.5, 6.0], [20.0, 22.0]], [0, 1])
    """
    wanted_type(candidates, Candidates, "candidates")
    if not temperature > 0:
        raise InputError(f"the temperature must be above 0, got {temperature}")
    if not (evidence >= 0 and evidence_full > 0):
        raise InputError(f"evidence must be 0 or more and evidence_full above 0, got {evidence} and {evidence_full}")
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
    fused = Instances.unchecked(fitted[:, :2], fitted[:, 2], found.class_ids[anchors], found.unit)
    scores = fused.scores
    if evidence:
        # a contrast below 0 is no score that evidence could strengthen
        each = np.maximum(found.scores, 0.0) if evidence_by == "score" else None
        size = np.bincount(group, weights=each, minlength=m)
        scores = np.maximum(scores, 0.0) * (size / evidence_full) ** evidence
    return Fused(fused, group, weights, converged).scored(scores)


def greedy_groups(
    instances: Instances, *, threshold: float, overlap: Overlap = "iou", pad: float = 0.0
) -> tuple[Int[np.ndarray, " g"], Int[np.ndarray, " n"]]:
    """The best instance of each group, and the group of each instance; never across classes.

    The best instance not yet taken takes every other of its class whose overlap with it exceeds `threshold`,
    until none is left (Eq. 1 of the paper; also the groups of NMS). Equal scores go by start, then end.

    >>> near = Instances([[0.0, 4.0], [0.0, 5.0], [8.0, 9.0]], scores=[0.5, 0.9, 0.1])
    >>> anchors, group = greedy_groups(near, threshold=0.5)
    >>> anchors.tolist(), group.tolist()
    ([1, 2], [0, 0, 1])
    """
    wanted_type(instances, Instances, "instances")
    checked(Overlap, overlap, "overlap")
    threshold = checked(float, threshold, "threshold")
    if pad:
        instances.wanted_in("snippets", "overlaps of padded lengths")
    if not threshold >= 0:
        raise InputError(f"the overlap threshold must be 0 or more, got {threshold}")
    return _greedy_groups(
        instances.starts,
        instances.ends,
        instances.scores,
        instances.class_ids,
        float(threshold),
        overlap == "own_length",
        float(pad),
    )


@compiled
def _greedy_groups(
    starts: Floats,
    ends: Floats,
    scores: Floats,
    class_ids: Integers,
    threshold: float,
    own_length: bool,
    pad: float,
) -> tuple[Integers, Integers]:
    """The best of each group, and each one's group: the best free one takes all of its class that overlap it enough.

    Equal scores go by start, then end. `own_length` divides the intersection by the taken segment's length instead of
    the union; `pad` is added to lengths and intersections (1 where the positions are inclusive integers). The anchor
    always belongs to its own group.
    """
    n = len(starts)
    order = _best_first(starts, ends, scores)
    start, end, of = starts[order], ends[order], class_ids[order]
    following = np.arange(1, n + 1)  # a chain through what is not yet in a group
    group = np.empty(n, np.int64)
    anchors = np.empty(n, np.int64)
    n_groups = 0
    anchor = 0
    while anchor < n:
        anchors[n_groups] = order[anchor]
        group[order[anchor]] = n_groups
        last, other = anchor, following[anchor]
        while other < n:
            shared, whole = shared_and_whole(start[other], end[other], start[anchor], end[anchor], own_length, pad)
            if shared > 0.0 and shared > threshold * whole and of[other] == of[anchor]:
                group[order[other]] = n_groups
                following[last] = following[other]
            else:
                last = other
            other = following[other]
        n_groups += 1
        anchor = following[anchor]
    return anchors[:n_groups], group


@compiled
def _best_first(starts: Floats, ends: Floats, scores: Floats) -> Integers:
    """Indices by score, highest first; equal ones by start, then end."""
    order = np.argsort(-scores)
    for k in range(1, len(order)):
        # equal scores are few and side by side, so putting them in order by insertion costs little
        i, place = order[k], k
        while place > 0:
            j = order[place - 1]
            before = starts[i] < starts[j] or (starts[i] == starts[j] and ends[i] < ends[j])
            if scores[j] != scores[i] or not before:
                break
            order[place] = j
            place -= 1
        order[place] = i
    return order


@compiled
def softmax_by_group(logits: Floats, group: Integers, m: int) -> Floats:
    """Softmax inside each group; the best logit is subtracted first, so that exp() stays in range at any size."""
    best = np.full(m, -np.inf)
    for i in range(len(logits)):
        best[group[i]] = max(best[group[i]], logits[i])
    weights = np.exp(logits - best[group])
    total = sums_by_group(weights.reshape(-1, 1), group, m)
    for i in range(len(logits)):
        weights[i] /= total[group[i], 0]
    return weights
