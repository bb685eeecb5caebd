"""How unsure what was decided for in a video is, and how much of it is wrong: what to look at first."""

from collections.abc import Collection, Mapping

import numpy as np
from jaxtyping import Float

from wtal.decide import Decision
from wtal.evaluate.inputs import Case
from wtal.evaluate.matching import match


def doubts(decided: Mapping[str, Decision], tags: Mapping[str, Collection[int]] | None = None) -> dict[str, float]:
    """Each video's doubt, from 0 to 1: one minus the mean confidence of its instances, weighted by that confidence.

    Where confidence is not known it is the score over the best one of its class in all videos. A tag of which nothing
    was found counts as an instance without any confidence, so that a video whose tags were missed is doubtful, too.

    Args:
        decided: The decision for each video, by its name.
        tags: Class ids that videos are known to carry.

    >>> from wtal.instances import Instances
    >>> sure, unsure = Instances([[0.0, 1.0]], [0.8]), Instances([[0.0, 1.0], [2.0, 3.0]], [0.4, 0.2])
    >>> doubts({"a": Decision(sure), "b": Decision(unsure)}, {"b": [0, 1]})
    {'a': 0.0, 'b': 0.821}
    """
    found = [one.instances for one in decided.values()]
    best: Float[np.ndarray, " c"] = np.zeros(1 + max((int(one.class_ids.max(initial=0)) for one in found), default=0))
    for one in found:
        np.maximum.at(best, one.class_ids, one.scores)
    out = {}
    for name, decision in decided.items():
        class_ids = decision.instances.class_ids
        confidence = decision.confidence
        if confidence is None:
            confidence = decision.instances.scores / np.maximum(best[class_ids], 1e-12)
        missed = len(set((tags or {}).get(name, ())) - set(class_ids.tolist()))
        total = float(confidence.sum()) + missed
        out[name] = round(1 - float((confidence**2).sum()) / total, 3) if total else 0.0
    return out


def errors(case: Case, *, tiou: float = 0.5) -> dict[str, int]:
    """What a person would have to correct in each video: instances that find no true one, and true ones not found.

    Args:
        case: Decisions and truth.
        tiou: From this tIoU on an instance has found a true one.
    """
    right = match(case, (tiou,))[:, 0] >= 0
    n = len(case.videos)
    found, true = np.bincount(case.predictions.videos, minlength=n), np.bincount(case.truth.videos, minlength=n)
    wrong = found + true - 2 * np.bincount(case.predictions.videos[right], minlength=n)
    return dict(zip(case.videos, wrong.tolist(), strict=True))
