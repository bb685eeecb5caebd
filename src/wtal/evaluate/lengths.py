"""How instances of each length fare."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.evaluate.inputs import Case

NAMES = ("XS", "S", "M", "L", "XL")


@dataclass(frozen=True)
class LengthBin:
    """True instances longer than `over_s` and at most `up_to_s` seconds: how many, how many found, normalised mAP."""

    name: str
    over_s: float
    up_to_s: float
    n_truth: int
    n_found: int
    normalised_map: float | None


def by_length(case: Case, found: Int[np.ndarray, " n"]) -> tuple[LengthBin, ...]:
    """The bins of the protocol, shortest first; `found` is the true instance that each prediction finds, or -1.

    In a bin only its own true instances count, and predictions that find one of another bin are ignored. As bins
    differ in size, precision is normalised: as if each class had the mean number of true instances in each bin
    (as in DETAD). A bin without truth has no mAP.
    """
    edges = (0.0, *case.protocol.length_bins_s, np.inf)
    names = NAMES if len(edges) == len(NAMES) + 1 else tuple(str(i) for i in range(len(edges) - 1))
    n_normal = len(case.truth) / max(len(case.class_ids), 1)
    bins = []
    for name, (low, high) in zip(names, pairwise(edges), strict=True):
        inside = (low < case.truth_lengths_s) & (case.truth_lengths_s <= high)
        right = (found >= 0) & inside[found]
        bins.append(
            LengthBin(
                name,
                low,
                high,
                int(inside.sum()),
                int(right.sum()),
                _normalised_map(case, inside, right, right | (found < 0), n_normal),
            )
        )
    return tuple(bins)


def _normalised_map(
    case: Case,
    inside: Bool[np.ndarray, " m"],
    right: Bool[np.ndarray, " n"],
    counted: Bool[np.ndarray, " n"],
    n_normal: float,
) -> float | None:
    ap = []
    for class_id in np.unique(case.truth.class_ids[inside]):
        of_class = counted & (case.predictions.class_ids == class_id)
        n_truth = int((case.truth.class_ids[inside] == class_id).sum())
        ap.append(_normalised_ap(right[of_class], n_truth, n_normal))
    return 100.0 * float(np.mean(ap)) if ap else None


def _normalised_ap(right: Bool[np.ndarray, " n"], n_truth: int, n_normal: float) -> float:
    """Interpolated average precision as if there were `n_normal` true instances instead of `n_truth`.

    >>> _normalised_ap(np.array([False, True]), n_truth=1, n_normal=3.0)
    0.75
    """
    as_if_right: Float[np.ndarray, " n"] = np.cumsum(right) / n_truth * n_normal
    wrong = np.cumsum(~right)
    precision = as_if_right / np.maximum(as_if_right + wrong, 1e-300)
    best_beyond = np.maximum.accumulate(precision[::-1])[::-1]
    return float(best_beyond[right].sum() / n_truth)
