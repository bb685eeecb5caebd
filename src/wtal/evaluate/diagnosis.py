"""Why a number is low: what the false positives are, and which instances are missed.

In the manner of Alwassel et al., "Diagnosing Error in Temporal Action Detectors" (ECCV 2018).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.errors import InputError
from wtal.evaluate.detection import ap_per_class
from wtal.evaluate.inputs import Case
from wtal.evaluate.matching import candidates, highest_tious, match, ranks_within

KINDS = (
    "true_positive",
    "double_detection",
    "wrong_label",
    "bad_boundary",
    "wrong_label_and_boundary",
    "background",
)


LENGTHS = ("XS", "S", "M", "L", "XL")


@dataclass(frozen=True)
class LengthBin:
    """True instances longer than `over_s` and at most `up_to_s` seconds: how many, how many found, normalised mAP."""

    name: str
    over_s: float
    up_to_s: float
    n_truth: int
    n_found: int
    normalised_map: float | None


@dataclass(frozen=True)
class Diagnosis:
    """The errors at one tIoU threshold.

    `counts` are the kinds among each class's best predictions, ten times as many as it has true instances; `gains`
    is how many points of mAP it would bring if all predictions of a kind were gone, or if what is missed were not
    there to be found.
    """

    tiou: float
    map: float
    counts: dict[str, int]
    gains: dict[str, float]
    n_truth: int
    n_missed: int
    lengths: tuple[LengthBin, ...]


def diagnose(case: Case, *, tiou: float = 0.5, background_tiou: float = 0.1, budget: int = 10) -> Diagnosis:
    """What kind each prediction is at `tiou`, what each kind costs, and how instances of each length fare.

    A prediction that finds nothing is, the first that holds: a double detection (it overlaps a true instance of
    its class enough, but a better-scored one has found that), a wrong label (enough overlap with another class), a
    bad boundary (overlap with its own class, at least `background_tiou`), both wrong (with another), background.

    >>> from wtal.annotations import Annotations, Video
    >>> from wtal.evaluate.inputs import prepare
    >>> from wtal.instances import Instances
    >>> truth = Annotations(("Run",), {"a": Video("test", 60.0, Instances([[0.0, 4.0], [5.0, 9.0]]))})
    >>> found = {"a": Instances([[0.0, 4.0], [5.0, 6.0], [20.0, 30.0]], scores=[0.7, 0.9, 0.8])}
    >>> why = diagnose(prepare(found, truth))
    >>> why.n_missed, {kind: n for kind, n in why.counts.items() if n}
    (1, {'true_positive': 1, 'bad_boundary': 1, 'background': 1})
    """
    if not 0 < background_tiou <= tiou <= 1:
        raise InputError(f"wanted 0 < background_tiou <= tiou <= 1, got {background_tiou} and {tiou}")
    if not len(case.truth):
        raise InputError("there is no true instance in these videos, so there is nothing to diagnose")
    found = match(case, (tiou,))[:, 0]
    kinds = _kinds(case, found, tiou, background_tiou)
    right = found >= 0
    class_ids, truth_class_ids = case.predictions.class_ids, case.truth.class_ids

    def map_of(kept: Bool[np.ndarray, " n"]) -> float:
        return 100.0 * float(ap_per_class(right[kept, None], class_ids[kept], truth_class_ids).mean())

    now = map_of(kinds >= 0)
    gains = {name: map_of(kinds != kind) - now for kind, name in enumerate(KINDS) if kind > 0}
    reached = np.zeros(len(truth_class_ids), bool)
    reached[found[right]] = True
    gains["missed"] = _map_without_missed(right, class_ids, truth_class_ids, reached) - now
    # the best predictions of each class, `budget` times as many as it has true instances
    n_truth = np.bincount(truth_class_ids, minlength=int(class_ids.max(initial=0)) + 1)
    looked_at = ranks_within(class_ids) < budget * n_truth[class_ids]
    counts = np.bincount(kinds[looked_at], minlength=len(KINDS))
    return Diagnosis(
        tiou,
        now,
        dict(zip(KINDS, counts.tolist(), strict=True)),
        gains,
        len(truth_class_ids),
        int((~reached).sum()),
        _by_length(case, found),
    )


def _kinds(case: Case, found: Int[np.ndarray, " n"], tiou: float, background_tiou: float) -> Int[np.ndarray, " n"]:
    """The number in KINDS of each prediction."""
    first, past = candidates(case, same_class=False)
    own, other = highest_tious(
        case.predictions.segments,
        case.predictions.class_ids,
        first,
        past,
        case.truth.segments,
        case.truth.class_ids,
    ).T
    conditions = [found >= 0, own >= tiou, other >= tiou, own >= background_tiou, other >= background_tiou]
    return np.select(conditions, range(len(conditions)), default=len(conditions)).astype(np.int64)


def _map_without_missed(
    right: Bool[np.ndarray, " n"],
    class_ids: Int[np.ndarray, " n"],
    truth_class_ids: Int[np.ndarray, " m"],
    reached: Bool[np.ndarray, " m"],
) -> float:
    """mAP if only the instances that were found had been there; a class of which none was found keeps its 0."""
    ap = ap_per_class(right[:, None], class_ids, truth_class_ids)[:, 0]
    present, n_truth = np.unique(truth_class_ids, return_counts=True)
    n_reached = np.array([reached[truth_class_ids == class_id].sum() for class_id in present])
    return 100.0 * float((ap * n_truth / np.maximum(n_reached, 1)).mean())


def _by_length(case: Case, found: Int[np.ndarray, " n"]) -> tuple[LengthBin, ...]:
    """The bins of the protocol, shortest first; `found` is the true instance that each prediction finds, or -1.

    In a bin only its own true instances count, and predictions that find one of another bin are ignored. As bins
    differ in size, precision is normalised: as if each class had the mean number of true instances in each bin
    (as in DETAD). A bin without truth has no mAP.
    """
    edges = (0.0, *case.protocol.length_bins_s, np.inf)
    names = LENGTHS if len(edges) == len(LENGTHS) + 1 else tuple(str(i) for i in range(len(edges) - 1))
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
