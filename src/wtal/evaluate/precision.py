"""Average precision of a ranking, from which of its places are right."""

import numpy as np
from jaxtyping import Bool, Float


def interpolated_ap(right: Bool[np.ndarray, "n t"], n_truth: int) -> Float[np.ndarray, " t"]:
    """Area under the precision-recall curve, precision taken as the best at that recall or beyond (VOC 2011).

    One column per threshold, best prediction first. No prediction at all gives 0.

    >>> interpolated_ap(np.array([[True], [False], [True]]), n_truth=2).round(4).tolist()
    [0.8333]
    """
    if n_truth < 1:
        raise ValueError("average precision needs at least one true instance")
    precision = np.cumsum(right, axis=0) / np.arange(1, len(right) + 1)[:, None]
    best_beyond = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
    return (best_beyond * right).sum(axis=0) / n_truth


def plain_ap(right: Bool[np.ndarray, " n"]) -> float:
    """Mean of the precision at each right place of a ranking that holds everything, as in classification.

    >>> plain_ap(np.array([False, True, True])).__round__(4)
    0.5833
    """
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return float(precision[right].mean())
