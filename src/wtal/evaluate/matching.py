"""Which prediction finds which true instance."""

import numpy as np
from jaxtyping import Float, Int

from wtal.errors import InputError
from wtal.evaluate.case import Case


def match(case: Case, tiou: tuple[float, ...]) -> Int[np.ndarray, "n thresholds"]:
    """The row of the true instance that each prediction finds at each threshold, or -1.

    Best prediction first, each takes the true instance of its video and class with the highest tIoU that reaches
    the threshold and is not taken yet at that threshold.

    >>> from wtal.annotations import Annotations, Video
    >>> from wtal.evaluate.case import prepare
    >>> from wtal.instances import Instances
    >>> truth = Annotations(("Run",), {"a": Video("test", 60.0, Instances([[0.0, 4.0], [5.0, 9.0]]))})
    >>> found = {"a": Instances([[0.0, 4.0], [0.0, 4.0], [6.0, 9.0]], scores=[0.9, 0.8, 0.7])}
    >>> match(prepare(found, truth), (0.5, 0.9)).tolist()
    [[0, 0], [-1, -1], [1, -1]]
    """
    from wtal.compiled.matching import match_greedily

    first, past = candidates(case, same_class=True)
    return match_greedily(case.predictions.segments, first, past, case.truth.segments, _thresholds(tiou))


def candidates(case: Case, *, same_class: bool) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """The rows of truth, from and up to, in each prediction's video, of its class or of any."""
    n_classes = len(case.classes) if same_class else 1
    keys = []
    for table in (case.truth, case.predictions):
        keys.append(table.videos * n_classes + (table.labels if same_class else 0))
    truth, found = keys
    return np.searchsorted(truth, found, side="left"), np.searchsorted(truth, found, side="right")


def _thresholds(tiou: tuple[float, ...]) -> Float[np.ndarray, " thresholds"]:
    if not all(0 < threshold <= 1 for threshold in tiou):
        raise InputError(f"tIoU thresholds lie in (0, 1], got {tiou}")
    return np.array(tiou, np.float64)
