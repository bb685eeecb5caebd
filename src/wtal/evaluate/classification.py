"""How well video-level scores say which classes a video holds."""

import numpy as np
from jaxtyping import Bool, Float

from wtal.errors import InputError
from wtal.evaluate.inputs import Case


def classification_map(scores: Float[np.ndarray, "v c"], tags: Bool[np.ndarray, "v c"]) -> float:
    """Mean over classes, in percent, of the average precision with which a class's scores rank the videos.

    Classes that no video holds are left out. Equal scores go by the order of the videos.

    >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.3]])
    >>> classification_map(scores, np.array([[True, False], [False, True], [True, False]]))
    100.0
    """
    if not np.isfinite(scores).all():
        raise InputError("video scores must be finite")
    held = tags.any(axis=0)
    if not held.any():
        raise InputError("no video holds any class, so there is nothing to score against")
    rankings = np.argsort(-scores, axis=0, kind="stable")
    right = np.take_along_axis(tags, rankings, axis=0)
    return 100.0 * float(np.mean([_plain_ap(right[:, c]) for c in np.flatnonzero(held)]))


def _plain_ap(right: Bool[np.ndarray, " n"]) -> float:
    """Mean of the precision at each right place of a ranking that holds everything, as in classification.

    >>> _plain_ap(np.array([False, True, True])).__round__(4)
    0.5833
    """
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return float(precision[right].mean())


def video_level(case: Case) -> tuple[Float[np.ndarray, "v c"], Bool[np.ndarray, "v c"]]:
    """What instances say about whole videos: the best score of each class, and the classes that are there.

    A class of which a video has no prediction scores below all others.

    >>> from wtal.annotations import Annotations, Video
    >>> from wtal.evaluate.inputs import prepare
    >>> from wtal.instances import Instances
    >>> truth = Annotations(("Run",), {"a": Video("test", 60.0, Instances([[3.0, 8.0]]))})
    >>> scores, tags = video_level(prepare({"a": Instances([[30.0, 40.0]], scores=[0.5])}, truth))
    >>> scores.tolist(), tags.tolist()
    ([[0.5]], [[True]])
    """
    found, truth = case.predictions, case.truth
    n_videos = 1 + max(int(found.videos.max(initial=0)), int(truth.videos.max(initial=0)))
    scores = np.full((n_videos, len(case.classes)), found.scores.min(initial=0.0) - 1.0)
    np.maximum.at(scores, (found.videos, found.class_ids), found.scores)
    tags = np.zeros(scores.shape, bool)
    tags[truth.videos, truth.class_ids] = True
    return scores, tags
