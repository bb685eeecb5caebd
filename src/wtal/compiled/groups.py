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
    """The best of each group, and each one's group: the best free one takes all of its class that overlap it enough.

    Equal scores go by start, then end. `own_length` divides the intersection by the taken segment's length instead of
    the union; `pad` is added to lengths and intersections (1 where the positions are inclusive integers). The anchor
    always belongs to its own group.
    """
    n = len(starts)
    order = _best_first(starts, ends, scores)
    start, end, label = starts[order], ends[order], labels[order]
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
            shared = min(end[anchor], end[other]) - max(start[anchor], start[other]) + pad
            whole = end[other] - start[other] + pad
            if not own_length:
                whole += end[anchor] - start[anchor] + pad - shared
            if shared > 0.0 and shared > threshold * whole and label[other] == label[anchor]:
                group[order[other]] = n_groups
                following[last] = following[other]
            else:
                last = other
            other = following[other]
        n_groups += 1
        anchor = following[anchor]
    return anchors[:n_groups], group


@njit(cache=True)
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
def means_by_group(values: Floats, weights: Floats, group: Integers, m: int) -> Floats:
    """Weighted mean of the rows of each group, whose weights sum to 1; rounding cannot lead out of the rows' range."""
    mean = np.zeros((m, values.shape[1]))
    low, high = ranges_by_group(values, group, m)
    for i in range(len(values)):
        for k in range(values.shape[1]):
            mean[group[i], k] += weights[i] * values[i, k]
    return np.minimum(np.maximum(mean, low), high)


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
