"""Which prediction finds which true instance."""

import numpy as np
from jaxtyping import Float, Int

from wtal.compiled import Floats, Integers, compiled
from wtal.errors import InputError
from wtal.evaluate.inputs import Case
from wtal.overlap import tiou


def match(case: Case, tiou: tuple[float, ...]) -> Int[np.ndarray, "n thresholds"]:
    """The row of the true instance that each prediction finds at each threshold, or -1.

    Best prediction first, each takes the true instance of its video and class with the highest tIoU that reaches
    the threshold and is not taken yet at that threshold.

    >>> from wtal.annotations import Annotations, Video
    >>> from wtal.evaluate.inputs import prepare
    >>> from wtal.instances import Instances
    >>> truth = Annotations(("Run",), {"a": Video("test", 60.0, Instances([[0.0, 4.0], [5.0, 9.0]]))})
    >>> found = {"a": Instances([[0.0, 4.0], [0.0, 4.0], [6.0, 9.0]], scores=[0.9, 0.8, 0.7])}
    >>> match(prepare(found, truth), (0.5, 0.9)).tolist()
    [[0, 0], [-1, -1], [1, -1]]
    """
    first, past = candidates(case, same_class=True)
    return match_greedily(case.predictions.segments, first, past, case.truth.segments, _thresholds(tiou))


def candidates(case: Case, *, same_class: bool) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """The rows of truth, from and up to, in each prediction's video, of its class or of any."""
    n_classes = len(case.classes) if same_class else 1
    keys = []
    for table in (case.truth, case.predictions):
        keys.append(table.videos * n_classes + (table.class_ids if same_class else 0))
    truth, found = keys
    return np.searchsorted(truth, found, side="left"), np.searchsorted(truth, found, side="right")


def ranks_within(groups: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The place of each prediction among those of its group, such as a class or a video, which come best first.

    >>> ranks_within(np.array([3, 1, 3, 3, 1])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(groups, kind="stable")
    ranks = np.empty(len(groups), np.int64)
    ranks[order] = np.arange(len(groups)) - np.searchsorted(groups[order], groups[order])
    return ranks


def _thresholds(tiou: tuple[float, ...]) -> Float[np.ndarray, " thresholds"]:
    if not all(0 < threshold <= 1 for threshold in tiou):
        raise InputError(f"tIoU thresholds lie in (0, 1], got {tiou}")
    return np.array(tiou, np.float64)


@compiled
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
            tious[j - first] = tiou(segments[i, 0], segments[i, 1], truth[j, 0], truth[j, 1])
            highest = max(highest, tious[j - first])
        for t in range(len(thresholds)):
            if highest < thresholds[t] or highest == 0.0:
                continue
            best = -1
            best_tiou = 0.0
            for j in range(first, past):
                shared = tious[j - first]
                if shared >= thresholds[t] and shared > best_tiou and not taken[t, j]:
                    best = j
                    best_tiou = shared
            if best >= 0:
                taken[t, best] = True
                found[i, t] = best
    return found


@compiled
def highest_tious(
    segments: Floats,
    class_ids: Integers,
    first_truth: Integers,
    past_truth: Integers,
    truth: Floats,
    truth_class_ids: Integers,
) -> Floats:
    """Each prediction's highest tIoU with a true segment of its own class, and of another class (n, 2)."""
    highest = np.zeros((len(segments), 2), np.float64)
    for i in range(len(segments)):
        for j in range(first_truth[i], past_truth[i]):
            shared = tiou(segments[i, 0], segments[i, 1], truth[j, 0], truth[j, 1])
            other = 0 if class_ids[i] == truth_class_ids[j] else 1
            highest[i, other] = max(highest[i, other], shared)
    return highest


@compiled
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
            shared = tiou(segments[i, 0], segments[i, 1], truth[j, 0], truth[j, 1])
            for t in range(len(thresholds)):
                if shared >= thresholds[t] and shared > 0.0 and ranks[i] < cover[j, t]:
                    cover[j, t] = ranks[i]
    return cover
