"""How unsure what was found in a video is, and how many of its instances are wrong: what to look at first."""

from collections.abc import Collection, Mapping

import numpy as np
from jaxtyping import Float

from wtal.evaluate.inputs import Case
from wtal.evaluate.matching import match
from wtal.instances import Instances


def doubts(found: Mapping[str, Instances], tags: Mapping[str, Collection[int]] | None = None) -> dict[str, float]:
    """Each video's doubt, from 0 to 1: one minus the mean confidence of its instances, weighted by that confidence.

    Confidence is the score over the best one of its class in all videos. A tag of which nothing was found counts as
    an instance without any confidence, so that a video whose tags were missed is doubtful, too.

    Args:
        found: Instances of each video, by its name.
        tags: Class ids that videos are known to carry.

    >>> sure, unsure = Instances([[0.0, 1.0]], [0.8]), Instances([[0.0, 1.0], [2.0, 3.0]], [0.4, 0.2])
    >>> doubts({"a": sure, "b": unsure}, {"b": [0, 1]})
    {'a': 0.0, 'b': 0.821}
    """
    n_classes = 1 + max((int(one.class_ids.max(initial=0)) for one in found.values()), default=0)
    best: Float[np.ndarray, " c"] = np.zeros(n_classes)
    for instances in found.values():
        np.maximum.at(best, instances.class_ids, instances.scores)
    out = {}
    for name, instances in found.items():
        kept = instances[instances.scores > 0]
        confidence = kept.scores / best[kept.class_ids]
        missed = len(set((tags or {}).get(name, ())) - set(kept.class_ids.tolist()))
        total = float(confidence.sum()) + missed
        out[name] = round(1 - float((confidence**2).sum()) / total, 3) if total else 0.0
    return out


def wrong_instances(case: Case, *, tiou: float = 0.5) -> dict[str, int]:
    """How many of each video's best instances are wrong: of as many as there are true ones.

    What is missing counts: a video with four actions in which one right instance was found has three errors.
    """
    right = match(case, (tiou,))[:, 0] >= 0
    out = {}
    for video in np.unique(case.truth.videos).tolist():
        n_truth = int((case.truth.videos == video).sum())
        out[case.videos[video]] = n_truth - int(right[case.predictions.videos == video][:n_truth].sum())
    return out
