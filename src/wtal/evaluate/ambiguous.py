"""Ambiguous intervals: stretches of THUMOS14's test videos in which even the annotators were not sure.

Predictions that touch one are dropped before scoring if a list is given or the protocol has one. That is worth more
than a point of mAP, so every score says whether it was done.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from wtal.errors import InputError
from wtal.evaluate.snippets import cut_down, rounded
from wtal.instances import Instances
from wtal.reading import read_text

Intervals = Mapping[str, Float[np.ndarray, "_ 2"]]


def read_ambiguous(path: Path | str) -> dict[str, Float[np.ndarray, "_ 2"]]:
    """The ambiguous intervals of each video in seconds, from lines `video start end`.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "Ambiguous_test.txt"
    >>> _ = path.write_text("video_test_0000278  0.0 1.4\\nvideo_test_0000278  95.7 97.2\\n")
    >>> read_ambiguous(path)["video_test_0000278"].tolist()
    [[0.0, 1.4], [95.7, 97.2]]
    """
    intervals: dict[str, list[tuple[float, float]]] = {}
    for number, line in enumerate(read_text(Path(path)).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            video, start, end = line.split()
            intervals.setdefault(video, []).append((float(start), float(end)))
        except ValueError:
            raise InputError(f"{path}, line {number}: wanted `video start end`, got {line!r}") from None
    return {video: np.array(found, np.float64) for video, found in intervals.items()}


def touches(instances: Instances, intervals: Float[np.ndarray, "m 2"]) -> Bool[np.ndarray, " n"]:
    """Which instances share a whole snippet with one of the intervals (in seconds), as the released code counts.

    >>> touches(Instances([[0.0, 0.9], [5.0, 9.0]]), np.array([[8.0, 10.0]])).tolist()
    [False, True]
    """
    found = cut_down(instances.segments, unit=instances.unit)
    unsure = rounded(intervals)
    starts = np.maximum(found[:, None, 0], unsure[None, :, 0])
    ends = np.minimum(found[:, None, 1], unsure[None, :, 1])
    return (starts < ends).any(axis=1)


def without_ambiguous(predictions: Mapping[str, Instances], intervals: Intervals) -> tuple[dict[str, Instances], int]:
    """The predictions that touch no interval of their video, and how many were dropped."""
    kept = dict(predictions)
    for video in intervals.keys() & kept.keys():
        kept[video] = kept[video][~touches(kept[video], intervals[video])]
    return kept, sum(map(len, predictions.values())) - sum(map(len, kept.values()))
