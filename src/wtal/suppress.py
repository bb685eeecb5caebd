"""Suppression: NMS and soft-NMS, the alternatives that fusion replaces."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from wtal.compiled import Floats, Integers, compiled
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.overlap import Overlap, tiou
from wtal.pseudo.fusion import greedy_groups
from wtal.typed import wanted_type

Decay = Literal["linear", "gaussian"]


def nms(instances: Instances, *, threshold: float = 0.5, overlap: Overlap = "iou", pad: float = 0.0) -> Instances:
    """Non-maximum suppression: the best instance of each group that fusion would form.

    Args:
        instances: Instances of one video; classes do not suppress each other.
        threshold: An instance goes if its overlap with a better one exceeds this.
        overlap: `iou`, or `own_length`: the intersection over the length of the instance that may go (RSKP).
        pad: Added to lengths and intersections; 1 where positions are inclusive integers (the released code).

    Returns:
        The instances that stay, best first.

    >>> near = Instances([[0.0, 4.0], [0.0, 5.0], [8.0, 9.0]], scores=[0.5, 0.9, 0.1])
    >>> nms(near).segments.tolist()
    [[0.0, 5.0], [8.0, 9.0]]
    """
    anchors, _ = greedy_groups(instances, threshold=threshold, overlap=overlap, pad=pad)
    return instances[anchors].sorted()


def soft_nms(
    instances: Instances,
    *,
    decay: Decay = "gaussian",
    threshold: float = 0.5,
    sigma: float = 0.5,
    min_score: float = 1e-3,
) -> Instances:
    """Soft-NMS: scores decay by their tIoU with better instances of their class.

    Args:
        instances: Instances of one video.
        decay: `linear` multiplies a score by `1 - tIoU` where the tIoU exceeds `threshold`; `gaussian` always by
            `exp(-tIoU² / sigma)`.
        threshold: For `linear`: up to this tIoU nothing decays.
        sigma: For `gaussian`: the larger, the slower the decay.
        min_score: Instances whose score falls below this are dropped.

    Returns:
        The instances with their new scores, best first.

    >>> near = Instances([[0.0, 4.0], [0.0, 5.0]], scores=[0.5, 0.9])
    >>> soft_nms(near, decay="linear").scores.round(3).tolist()
    [0.9, 0.1]
    """
    scores = decayed(instances, decay=decay, threshold=threshold, sigma=sigma)
    return instances.scored(scores)[scores >= min_score].sorted()


def decayed(
    instances: Instances, *, decay: Decay = "gaussian", threshold: float = 0.5, sigma: float = 0.5
) -> Float[np.ndarray, " n"]:
    """The score of each instance after soft-NMS, in the order the instances came in."""
    wanted_type(instances, Instances, "instances")
    if decay not in {"linear", "gaussian"}:
        raise InputError(f"decay must be linear or gaussian, got {decay!r}")
    if not sigma > 0:
        raise InputError(f"sigma must be above 0, got {sigma}")
    order = np.lexsort((instances.ends, instances.starts, -instances.scores, instances.class_ids))
    scores = np.empty(len(order))
    scores[order] = _soft_nms_scores(
        instances.starts[order],
        instances.ends[order],
        instances.class_ids[order],
        instances.scores[order],
        decay == "gaussian",
        float(threshold),
        float(sigma),
    )
    return scores


@compiled
def _soft_nms_scores(
    starts: Floats,
    ends: Floats,
    class_ids: Integers,
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
        while last < n and class_ids[last] == class_ids[first]:
            last += 1
        for _ in range(first, last):
            best = -1
            for i in range(first, last):
                if not final[i] and (best < 0 or scores[i] > scores[best]):
                    best = i
            final[best] = True
            for i in range(first, last):
                if final[i]:
                    continue
                iou = tiou(starts[best], ends[best], starts[i], ends[i])
                if gaussian:
                    scores[i] *= np.exp(-iou * iou / sigma)
                elif iou > threshold:
                    scores[i] *= 1.0 - iou
        first = last
    return scores
