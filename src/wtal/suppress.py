"""Suppression: NMS and soft-NMS, the alternatives that fusion replaces."""

from typing import Literal

import numpy as np

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.overlap import Overlap, greedy_groups

Decay = Literal["linear", "gaussian"]


def nms(instances: Instances, *, threshold: float = 0.5, overlap: Overlap = "iou", pad: float = 0.0) -> Instances:
    """The best instance of each group that fusion would form, best first.

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
    """All instances with scores that decay by their tIoU with better ones of their class, best first.

    `linear`: a score shrinks by `1 - tIoU` where the tIoU exceeds `threshold`; `gaussian`: by `exp(-tIoU² / sigma)`
    always. What falls below `min_score` is dropped.

    >>> near = Instances([[0.0, 4.0], [0.0, 5.0]], scores=[0.5, 0.9])
    >>> soft_nms(near, decay="linear").scores.round(3).tolist()
    [0.9, 0.1]
    """
    from wtal.compiled.suppression import soft_nms_scores

    if decay not in {"linear", "gaussian"}:
        raise InputError(f"decay must be linear or gaussian, got {decay!r}")
    if not sigma > 0:
        raise InputError(f"sigma must be above 0, got {sigma}")
    order = np.lexsort((instances.ends, instances.starts, -instances.scores, instances.labels))
    scores = soft_nms_scores(
        instances.starts[order],
        instances.ends[order],
        instances.labels[order],
        instances.scores[order],
        decay == "gaussian",
        float(threshold),
        float(sigma),
    )
    kept = scores >= min_score
    return Instances(instances.segments[order][kept], scores[kept], instances.labels[order][kept]).sorted()
