"""Soft-NMS."""

import numpy as np
from numba import njit

from wtal.compiled import Floats, Integers


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
