"""Precision over recall, and how each video fares: what a single number is made of."""

import numpy as np
from jaxtyping import Float

from wtal.evaluate.detection import ap_per_class
from wtal.evaluate.inputs import Case
from wtal.evaluate.matching import match


def precision_recall(
    case: Case, *, tiou: float = 0.5, recall: Float[np.ndarray, " r"] | None = None
) -> Float[np.ndarray, "k r"]:
    """Each class's interpolated precision in percent at these shares of recall (by default 0, 0.01, …, 1).

    Precision is the best at that recall or beyond; 0 where the predictions never get so far.

    >>> from wtal.annotations import Annotations, Video
    >>> from wtal.evaluate.inputs import prepare
    >>> from wtal.instances import Instances
    >>> truth = Annotations(("Run",), {"a": Video("test", 60.0, Instances([[0.0, 4.0], [5.0, 9.0]]))})
    >>> found = {"a": Instances([[20.0, 30.0], [0.0, 4.0]], scores=[0.9, 0.8])}
    >>> precision_recall(prepare(found, truth), recall=np.array([0.0, 0.5, 0.6])).tolist()
    [[50.0, 50.0, 0.0]]
    """
    wanted = np.linspace(0.0, 1.0, 101) if recall is None else recall
    right = match(case, (tiou,))[:, 0] >= 0
    curves = np.zeros((len(case.class_ids), len(wanted)))
    for row, class_id in enumerate(case.class_ids):
        hits = np.cumsum(right[case.predictions.class_ids == class_id])
        n_truth = int((case.truth.class_ids == class_id).sum())
        precision = np.maximum.accumulate((hits / np.arange(1, len(hits) + 1))[::-1])[::-1]
        # the first place whose recall is enough; a hair below, so that 0.3 of ten instances is three
        at = np.searchsorted(hits, np.ceil(wanted * n_truth - 1e-9))
        reached = at < len(hits)
        curves[row, reached] = 100.0 * precision[at[reached]]
    return curves


def video_precision(case: Case, *, tiou: tuple[float, ...] = (0.3, 0.5, 0.7)) -> dict[str, float]:
    """Average precision in percent of each video with truth, within the video alone.

    A mean over the classes that the video holds and over thresholds: how well a person who looks at this one video
    finds it done. mAP ranks over all videos instead, so its value is not a mean of these.

    >>> from wtal.annotations import Annotations, Video
    >>> from wtal.evaluate.inputs import prepare
    >>> from wtal.instances import Instances
    >>> truth = Annotations(("Run",), {"a": Video("test", 60.0, Instances([[0.0, 4.0], [5.0, 9.0]]))})
    >>> video_precision(prepare({"a": Instances([[0.0, 4.0]])}, truth))
    {'a': 50.0}
    """
    right = match(case, tiou) >= 0
    found, truth = case.predictions, case.truth
    scores = {}
    for video in np.unique(truth.videos).tolist():
        mine = found.videos == video
        ap = ap_per_class(right[mine], found.class_ids[mine], truth.class_ids[truth.videos == video])
        scores[case.videos[video]] = 100.0 * float(ap.mean())
    return scores
