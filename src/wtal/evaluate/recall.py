"""AR@AN: how many true instances a given number of proposals per video covers, whatever their class."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError
from wtal.evaluate.inputs import Case
from wtal.evaluate.matching import candidates, ranks_of_first_cover, ranks_within
from wtal.evaluate.protocols import PROTOCOLS


def average_recall(
    case: Case, *, counts: Sequence[int] = (1, 5, 10, 50, 100), tiou: Sequence[float] = PROTOCOLS["activitynet13"].tiou
) -> Float[np.ndarray, " counts"]:
    """The share of true instances that the best `counts` proposals of each video cover, averaged over `tiou`.

    Labels are ignored, and a proposal may cover several true instances. Of a video with fewer proposals all are
    taken.

    >>> from wtal.annotations import Annotations, Video
    >>> from wtal.evaluate.inputs import prepare
    >>> from wtal.instances import Instances
    >>> truth = Annotations(("Run",), {"a": Video("test", 60.0, Instances([[0.0, 4.0], [5.0, 9.0]]))})
    >>> found = {"a": Instances([[0.0, 4.0], [5.0, 9.0]], scores=[0.9, 0.8])}
    >>> average_recall(prepare(found, truth), counts=(1, 2)).tolist()
    [0.5, 1.0]
    """
    if not len(case.truth):
        raise InputError("there is no true instance in these videos, so there is nothing to cover")
    if min(counts, default=0) < 1:
        raise InputError(f"counts of proposals must be 1 or more, got {tuple(counts)}")
    ranks = ranks_within(case.predictions.videos)
    first, past = candidates(case, same_class=False)
    cover = ranks_of_first_cover(
        case.predictions.segments, ranks, first, past, case.truth.segments, np.array(tiou, np.float64)
    )
    return np.array([(cover < count).mean() for count in counts], np.float64)
