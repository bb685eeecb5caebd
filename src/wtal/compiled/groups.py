"""Groups of overlapping segments, and sums, ranges and softmax inside groups."""

import numpy as np
from numba import njit

from wtal.compiled import Floats, Integers


@njit(cache=True)
def greedy_groups(
    starts: Floats,
    ends: Floats,
    scores: Floats,
    labels: Integers,
    threshold: float,
    own_length: bool,
    pad: float,
) -> tuple[Integers, Integers]:
    """The best segment of each group, and each one's group: the best free one takes all of its class that overlap it.

    Equal scores go by start, then end. `own_length` divides the intersection by the taken segment's length instead of
    the union; `pad` is added to lengths and intersections (1 where the positions are inclusive integers). The anchor
    always belongs to its own group. Each group takes a pass over what is left, to find its anchor and its members.
    """
    n = len(starts)
    group = np.full(n, -1, np.int64)
    anchors = np.empty(n, np.int64)
    left = np.arange(n)
    n_groups = 0
    while len(left):
        best = left[0]
        for i in left:
            if scores[i] > scores[best] or (
                scores[i] == scores[best]
                and (starts[i] < starts[best] or (starts[i] == starts[best] and ends[i] < ends[best]))
            ):
                best = i
        kept = 0
        for i in left:
            shared = min(ends[best], ends[i]) - max(starts[best], starts[i]) + pad
            whole = ends[i] - starts[i] + pad
            if not own_length:
                whole += ends[best] - starts[best] + pad - shared
            if i == best or (labels[i] == labels[best] and shared > 0.0 and shared > threshold * whole):
                group[i] = n_groups
            else:
                left[kept] = i
                kept += 1
        left = left[:kept]
        anchors[n_groups] = best
        n_groups += 1
    return anchors[:n_groups], group


@njit(cache=True)
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


@njit(cache=True)
def sums_by_group(values: Floats, group: Integers, m: int) -> Floats:
    """Sum of the rows of each group."""
    total = np.zeros((m, values.shape[1]))
    for i in range(len(values)):
        for k in range(values.shape[1]):
            total[group[i], k] += values[i, k]
    return total


@njit(cache=True)
def ranges_by_group(values: Floats, group: Integers, m: int) -> tuple[Floats, Floats]:
    """Least and greatest of the rows of each group."""
    low = np.full((m, values.shape[1]), np.inf)
    high = np.full((m, values.shape[1]), -np.inf)
    for i in range(len(values)):
        for k in range(values.shape[1]):
            low[group[i], k] = min(low[group[i], k], values[i, k])
            high[group[i], k] = max(high[group[i], k], values[i, k])
    return low, high
