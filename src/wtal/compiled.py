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
