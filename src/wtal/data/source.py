"""Source: a data set as somebody else laid it out on disk, listed but not yet read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from wtal.annotations import Annotations
from wtal.data.findings import Finding
from wtal.data.record import VideoRecord
from wtal.errors import InputError

Streams = Mapping[str, Float[np.ndarray, "_t _d"]]


@dataclass(frozen=True)
class Source:
    """The videos that have features, how to read those, and what listing them has already found wrong.

    `load` gives one video's features by stream ("rgb" before "flow", or a single "features"), so that one
    video at a time is in memory. `truth` is kept apart from the records: training reads records only.
    """

    layout: str
    classes: tuple[str, ...]
    records: tuple[VideoRecord, ...]
    load: Callable[[str], Streams]
    truth: Annotations | None = None
    findings: tuple[Finding, ...] = field(default=())
    extraction: Mapping[str, Any] | None = None
    """What made the features, if we did."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What identifies the video file that each video's features come from, if that is known."""


def join_streams(name: str, streams: Streams, *, trim: bool = False) -> Float[np.ndarray, "t d"]:
    """One (snippets, dimensions) array of a video's streams side by side; `trim` cuts to the shortest.

    >>> join_streams("a", {"rgb": np.zeros((3, 2)), "flow": np.ones((4, 2))}, trim=True).shape
    (3, 4)
    """
    lengths = {stream: len(array) for stream, array in streams.items()}
    if len(set(lengths.values())) > 1 and not trim:
        raise InputError(f"{name}: {length_text(lengths)}; extract again, or cut to the shorter with --trim")
    shortest = min(lengths.values())
    return np.concatenate([array[:shortest] for array in streams.values()], axis=1)


def length_text(lengths: Mapping[str, int]) -> str:
    """Stream lengths as a phrase: "the streams differ in length: rgb has 3 snippets, flow has 4"."""
    listed = ", ".join(f"{stream} has {length}" for stream, length in lengths.items())
    return f"the streams differ in snippets: {listed}"


def by_stream(array: Float[np.ndarray, "t d"], streams: Mapping[str, int]) -> Streams:
    """The columns of features by stream, whose widths are given from left to right."""
    ends = np.cumsum(list(streams.values())).tolist()
    return {name: array[:, end - width : end] for (name, width), end in zip(streams.items(), ends, strict=True)}


def halves(joined: Float[np.ndarray, "t d"]) -> Streams:
    """RGB and flow of features that hold them side by side, RGB first, as all published ones do."""
    middle = joined.shape[1] // 2
    return {"rgb": joined[:, :middle], "flow": joined[:, middle:]}


def no_videos(layout: str, where: object, wanted: Iterable[str]) -> InputError:
    """The error for a source in which no video has features."""
    return InputError(f"no features found for layout {layout} in {where}; wanted {' and '.join(wanted)}")
