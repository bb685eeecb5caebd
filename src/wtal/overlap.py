"""How much two segments share: tIoU, and the overlap over one segment's own length."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from wtal.compiled import compiled

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


@compiled
def shared_and_whole(
    start_a: float, end_a: float, start_b: float, end_b: float, own_length: bool = False, pad: float = 0.0
) -> tuple[float, float]:
    """Shared length of segments a and b, and what it is divided by: their union, or the own length of a.

    Both are numbers of one pair, for the compiled loops.
    """
    shared = min(end_a, end_b) - max(start_a, start_b) + pad
    if shared < 0.0:
        shared = 0.0
    whole = end_a - start_a + pad
    if not own_length:
        whole += end_b - start_b + pad - shared
    return shared, whole


@compiled
def tiou(start_a: float, end_a: float, start_b: float, end_b: float) -> float:
    """Intersection over union of one pair; 0 where both are empty, as segments of whole snippets can be."""
    shared, whole = shared_and_whole(start_a, end_a, start_b, end_b)
    return shared / whole if shared > 0.0 else 0.0
