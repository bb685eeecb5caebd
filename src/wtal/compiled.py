"""The loops that are compiled: each was measured as the hot one of its caller (see benchmarks/).

Numba is imported here and nowhere else, so that whatever does not need these loops stays quick to import.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(cache=True)
def greedy_groups(
    starts: Floats, ends: Floats, labels: Integers, threshold: float, own_length: bool, pad: float
) -> Integers:
    """The group of each segment: the first free one takes every free one of its class that overlaps it enough.

    Segments come sorted by class, then best first. `own_length` divides the intersection by the taken
    segment's length instead of the union; `pad` is added to lengths and intersections (1 where the
    positions are inclusive integers). The anchor always belongs to its own group.
    """
    n = len(starts)
    group = np.full(n, -1, np.int64)
    n_groups = 0
    first = 0
    while first < n:
        last = first
        while last < n and labels[last] == labels[first]:
            last += 1
        for anchor in range(first, last):
            if group[anchor] >= 0:
                continue
            group[anchor] = n_groups
            for other in range(anchor + 1, last):
                if group[other] >= 0:
                    continue
                shared = min(ends[anchor], ends[other]) - max(starts[anchor], starts[other]) + pad
                if shared <= 0.0:
                    continue
                whole = ends[other] - starts[other] + pad
                if not own_length:
                    whole += ends[anchor] - starts[anchor] + pad - shared
                if shared > threshold * whole:
                    group[other] = n_groups
            n_groups += 1
        first = last
    return group


@njit(cache=True)
def soft_nms_scores(
    starts: Floats,
    ends: Floats,
    labels: Integers,
    scores: Floats,
    gaussian: bool,
    threshold: float,
    sigma: float,
) -> Floats:
    """Scores after soft-NMS: the best instance left is final and makes the others of its class decay.

    Instances come sorted by class, then best first, which settles ties.
    """
    n = len(starts)
    scores = scores.copy()
    final = np.zeros(n, np.bool_)
    first = 0
    while first < n:
        last = first
        while last < n and labels[last] == labels[first]:
            last += 1
        for _ in range(first, last):
            best = -1
            for i in range(first, last):
                if not final[i] and (best < 0 or scores[i] > scores[best]):
                    best = i
            final[best] = True
            for i in range(first, last):
                shared = min(ends[best], ends[i]) - max(starts[best], starts[i])
                if final[i] or shared <= 0.0:
                    continue
                iou = shared / (ends[best] - starts[best] + ends[i] - starts[i] - shared)
                if gaussian:
                    scores[i] *= np.exp(-iou * iou / sigma)
                elif iou > threshold:
                    scores[i] *= 1.0 - iou
        first = last
    return scores


@njit(cache=True, inline="always")
def _tiou(start_a: float, end_a: float, start_b: float, end_b: float) -> float:
    """Intersection over union; 0 where both are empty, as segments of a whole-snippet grid can be."""
    shared = min(end_a, end_b) - max(start_a, start_b)
    if shared <= 0.0:
        return 0.0
    return shared / ((end_a - start_a) + (end_b - start_b) - shared)


@njit(cache=True)
def match_greedily(
    segments: Floats,
    first_truth: Integers,
    past_truth: Integers,
    truth: Floats,
    thresholds: Floats,
) -> Integers:
    """The true segment that each prediction finds at each threshold (n, thresholds), or -1.

    Predictions come best first; prediction i may find the true segments `first_truth[i]:past_truth[i]`. It
    takes the one of highest tIoU that is not taken yet at that threshold; of equals the first.
    """
    n = len(segments)
    found = np.full((n, len(thresholds)), -1, np.int64)
    taken = np.zeros((len(thresholds), len(truth)), np.bool_)
    most = 0
    for i in range(n):
        most = max(most, past_truth[i] - first_truth[i])
    tious = np.empty(most, np.float64)
    for i in range(n):
        first, past = first_truth[i], past_truth[i]
        highest = 0.0
        for j in range(first, past):
            tious[j - first] = _tiou(segments[i, 0], segments[i, 1], truth[j, 0], truth[j, 1])
            highest = max(highest, tious[j - first])
        for t in range(len(thresholds)):
            if highest < thresholds[t] or highest == 0.0:
                continue
            best = -1
            best_tiou = 0.0
            for j in range(first, past):
                tiou = tious[j - first]
                if tiou >= thresholds[t] and tiou > best_tiou and not taken[t, j]:
                    best = j
                    best_tiou = tiou
            if best >= 0:
                taken[t, best] = True
                found[i, t] = best
    return found


@njit(cache=True)
def highest_tious(
    segments: Floats,
    labels: Integers,
    first_truth: Integers,
    past_truth: Integers,
    truth: Floats,
    truth_labels: Integers,
) -> Floats:
    """Each prediction's highest tIoU with a true segment of its own class, and of another class (n, 2)."""
    highest = np.zeros((len(segments), 2), np.float64)
    for i in range(len(segments)):
        for j in range(first_truth[i], past_truth[i]):
            tiou = _tiou(segments[i, 0], segments[i, 1], truth[j, 0], truth[j, 1])
            other = 0 if labels[i] == truth_labels[j] else 1
            highest[i, other] = max(highest[i, other], tiou)
    return highest


@njit(cache=True)
def ranks_of_first_cover(
    segments: Floats,
    ranks: Integers,
    first_truth: Integers,
    past_truth: Integers,
    truth: Floats,
    thresholds: Floats,
) -> Integers:
    """The rank in its video of the first proposal that covers each true segment (truth, thresholds).

    A true segment that no proposal covers has the largest integer instead.
    """
    cover = np.full((len(truth), len(thresholds)), np.iinfo(np.int64).max, np.int64)
    for i in range(len(segments)):
        for j in range(first_truth[i], past_truth[i]):
            tiou = _tiou(segments[i, 0], segments[i, 1], truth[j, 0], truth[j, 1])
            for t in range(len(thresholds)):
                if tiou >= thresholds[t] and tiou > 0.0 and ranks[i] < cover[j, t]:
                    cover[j, t] = ranks[i]
    return cover
