"""Which prediction finds which true instance, and how well the best one covers it."""

import numpy as np
from numba import njit

from wtal.compiled import Floats, Integers


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
