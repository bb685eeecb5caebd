"""ActivationMap: what a model says about one video, snippet by snippet; what instances are cut from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError


@dataclass(frozen=True, eq=False)
class ActivationMap:
    """One video's temporal class activation map (TCAM) and class scores, background left out.

    Of a video that several streams have seen there are several; the scores of their instances count by `weight`.
    """

    name: str
    tcam: Float[np.ndarray, "t c"]
    video_scores: Float[np.ndarray, " c"]
    attention: Float[np.ndarray, " t"] | None = None
    weight: float = 1.0


#: The maps of each video by its name, one per stream.
Maps = Mapping[str, Sequence[ActivationMap]]


def mean_map(streams: Sequence[ActivationMap]) -> ActivationMap:
    """The streams' maps as one, by their weights: what is shown where there is room for one curve.

    >>> low, high = (ActivationMap("a", np.full((1, 1), value), np.ones(1)) for value in (0.0, 1.0))
    >>> mean_map([low, high]).tcam.tolist()
    [[0.5]]
    """
    if not streams:
        raise InputError("the mean of no maps does not exist")
    total = sum(one.weight for one in streams)
    shares = [one.weight / total for one in streams]
    attentions = [one.attention for one in streams if one.attention is not None]
    return ActivationMap(
        streams[0].name,
        np.sum([share * one.tcam for share, one in zip(shares, streams, strict=True)], axis=0),
        np.sum([share * one.video_scores for share, one in zip(shares, streams, strict=True)], axis=0),
        np.sum([share * one for share, one in zip(shares, attentions, strict=True)], axis=0)
        if len(attentions) == len(streams)
        else None,
    )
