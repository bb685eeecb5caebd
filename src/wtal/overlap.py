"""How much two segments share: tIoU, and the overlap over one segment's own length."""

from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from wtal.errors import InputError
from wtal.instances import Instances

Overlap = Literal["iou", "own_length"]


def iou(a: Float[np.ndarray, "n 2"], b: Float[np.ndarray, "m 2"], *, pad: float = 0.0) -> Float[np.ndarray, "n m"]:
    """Intersection over union of each pair.

    >>> iou(np.array([[0.0, 4.0]]), np.array([[2.0, 6.0], [4.0, 5.0]])).round(3).tolist()
    [[0.333, 0.0]]
    """
    shared = intersection(a, b, pad=pad)
    union = (a[:, 1] - a[:, 0] + pad)[:, None] + (b[:, 1] - b[:, 0] + pad)[None, :] - shared
    return shared / union


def own_length(
    a: Float[np.ndarray, "n 2"], b: Float[np.ndarray, "m 2"], *, pad: float = 0.0
) -> Float[np.ndarray, "n m"]:
    """Intersection of each pair over the length of the one from `a`.

    >>> own_length(np.array([[0.0, 4.0]]), np.array([[2.0, 6.0], [4.0, 5.0]])).tolist()
    [[0.5, 0.0]]
    """
    return intersection(a, b, pad=pad) / (a[:, 1] - a[:, 0] + pad)[:, None]


def intersection(
    a: Float[np.ndarray, "n 2"], b: Float[np.ndarray, "m 2"], *, pad: float = 0.0
) -> Float[np.ndarray, "n m"]:
    """Shared length of each pair; `pad` is 1 where positions are inclusive integers, as in the released code."""
    low = np.maximum(a[:, None, 0], b[None, :, 0])
    high = np.minimum(a[:, None, 1], b[None, :, 1])
    return np.maximum(high - low + pad, 0.0)


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
    from wtal.compiled.groups import greedy_groups as compiled_groups

    if not threshold >= 0:
        raise InputError(f"the overlap threshold must be 0 or more, got {threshold}")
    return compiled_groups(
        instances.starts,
        instances.ends,
        instances.scores,
        instances.labels,
        float(threshold),
        overlap == "own_length",
        float(pad),
    )
