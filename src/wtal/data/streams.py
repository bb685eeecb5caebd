"""Streams: a video's features by name ("rgb", "flow", or a single "features") and their columns side by side."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError

Streams = Mapping[str, Float[np.ndarray, "_t _d"]]
ORDER = ("rgb", "flow", "features")  # from left to right


def join_streams(name: str, streams: Streams, *, trim: bool = False) -> Float[np.ndarray, "t d"]:
    """One (snippets, dimensions) array of a video's streams side by side; `trim` cuts to the shortest.

    >>> join_streams("a", {"rgb": np.zeros((3, 2)), "flow": np.ones((4, 2))}, trim=True).shape
    (3, 4)
    """
    if (what := unequal_lengths(streams)) and not trim:
        raise InputError(f"{name}: {what}; extract again, or cut to the shorter with `trim=True`")
    shortest = min(map(len, streams.values()))
    return np.concatenate([array[:shortest] for array in streams.values()], axis=1)


def unequal_lengths(streams: Streams) -> str:
    """How many snippets each stream has, in words, if they differ; else nothing."""
    lengths = {stream: len(array) for stream, array in streams.items()}
    if len(set(lengths.values())) < 2:
        return ""
    return "the streams differ in snippets: " + ", ".join(f"{stream} has {n}" for stream, n in lengths.items())


def by_stream(array: Float[np.ndarray, "t d"], widths: Mapping[str, int]) -> Streams:
    """The columns of features by stream, whose widths are given from left to right.

    >>> {name: part.shape for name, part in by_stream(np.zeros((9, 5)), {"rgb": 2, "flow": 3}).items()}
    {'rgb': (9, 2), 'flow': (9, 3)}
    """
    ends = np.cumsum(list(widths.values()))
    return dict(zip(widths, np.split(array, ends[:-1], axis=1), strict=True))


def halves(joined: Float[np.ndarray, "t d"]) -> Streams:
    """RGB and flow of features that hold them side by side, RGB first, as all published ones do."""
    middle = joined.shape[1] // 2
    return {"rgb": joined[:, :middle], "flow": joined[:, middle:]}
