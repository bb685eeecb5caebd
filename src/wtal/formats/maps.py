"""Activation maps of many videos in one .npz file, so that the test-time half can be run on anybody's model.

Arrays: `names` (v,); `lengths` (v,) snippets of each video; `tcam` (Σ lengths, c), one row per snippet, videos in the
order of `names`; `video_scores` (v, c); `classes` (k,) names. A TCAM has one column per class, and may have one more,
the last, for background. Optional: `attention` (Σ lengths,); `weights` (v,), which say that rows of one name are the
streams of one video, whose instances' scores count by these weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wtal.errors import InputError
from wtal.files import written_whole
from wtal.maps import ActivationMap, Maps
from wtal.pseudo.candidates import class_columns
from wtal.reading import names_of, read_npz, refusing

ARRAYS = ("names", "lengths", "tcam", "video_scores", "classes")
OPTIONAL = ("attention", "weights")


@dataclass(frozen=True, eq=False)
class MapFile:
    """The class names, and the maps of each video by its name, one per stream."""

    classes: tuple[str, ...]
    videos: dict[str, tuple[ActivationMap, ...]]


def read_maps(path: Path | str) -> MapFile:
    """The maps of a file, checked; an error names the file and the video or array that is wrong."""
    path = Path(path)
    with refusing(path, "is not a readable file of maps"):
        return _read(path, read_npz(path, ARRAYS, OPTIONAL))


def _read(path: Path, arrays: dict[str, Any]) -> MapFile:
    names = names_of(arrays["names"], f"{path}: 'names'")
    classes = tuple(names_of(arrays["classes"], f"{path}: 'classes'"))
    _refuse_wrong_shapes(path, arrays, names, classes)
    lengths, k = arrays["lengths"], len(classes)
    ends = np.cumsum(lengths)
    curves, scores = (class_columns(arrays[what], k, f"{path}: {what!r}") for what in ("tcam", "video_scores"))
    attention, weights = arrays.get("attention"), arrays.get("weights", np.ones(len(names)))
    videos: dict[str, list[ActivationMap]] = {}
    for row, (name, start, end) in enumerate(zip(names, ends - lengths, ends, strict=True)):
        parts = {"tcam": curves[start:end], "video_scores": scores[row]}
        if attention is not None:
            parts["attention"] = attention[start:end]
        for what, values in parts.items():
            if not np.isfinite(values).all():
                raise InputError(f"{path}: '{what}' of video {name} has NaN or infinite values")
        tcam, score = (parts[what].astype(np.float64) for what in ("tcam", "video_scores"))
        found = ActivationMap(name, tcam, score, parts.get("attention"), float(weights[row]))
        videos.setdefault(name, []).append(found)
    return MapFile(classes, {name: tuple(streams) for name, streams in videos.items()})


def write_maps(path: Path | str, classes: Sequence[str], maps: Maps) -> None:
    """Write maps so that `read_maps` gives them back equal."""
    k, flat = len(classes), [one for streams in maps.values() for one in streams]
    arrays: dict[str, Any] = {
        "names": np.array([one.name for one in flat], dtype=str),
        "lengths": np.array([len(one.tcam) for one in flat], dtype=np.int64),
        "tcam": np.concatenate([one.tcam for one in flat]) if flat else np.zeros((0, k)),
        "video_scores": np.array([one.video_scores for one in flat]).reshape(-1, k),
        "classes": np.array(classes, dtype=str),
    }
    if len(flat) > len(maps):
        arrays["weights"] = np.array([one.weight for one in flat])
    if flat and all(one.attention is not None for one in flat):
        arrays["attention"] = np.concatenate([one.attention for one in flat if one.attention is not None])
    with written_whole(Path(path), "wb") as file:
        np.savez_compressed(file, **arrays)


def _refuse_wrong_shapes(path: Path, arrays: dict[str, Any], names: list[str], classes: tuple[str, ...]) -> None:
    lengths, tcam, scores = arrays["lengths"], arrays["tcam"], arrays["video_scores"]
    n, k = len(names), len(classes)
    for what in ("tcam", "video_scores", *OPTIONAL):
        if what in arrays and arrays[what].dtype.kind not in "biuf":
            raise InputError(f"{path}: '{what}' must be numbers, got {arrays[what].dtype}")
    for what, listed in (("video", [] if "weights" in arrays else names), ("class", list(classes))):
        twice = [name for name in set(listed) if listed.count(name) > 1]
        if twice:
            raise InputError(f"{path}: {what} {sorted(twice)[0]!r} is listed more than once")
    if lengths.shape != (n,) or not np.issubdtype(lengths.dtype, np.integer) or (lengths < 0).any():
        raise InputError(f"{path}: 'lengths' must be {n} numbers of snippets, one per name, got shape {lengths.shape}")
    if tcam.ndim != 2:
        raise InputError(f"{path}: 'tcam' must be (snippets, classes), got shape {tcam.shape}")
    if lengths.sum() != len(tcam):
        raise InputError(f"{path}: 'lengths' sum to {lengths.sum()} snippets, but 'tcam' has {len(tcam)} rows")
    if scores.ndim != 2 or len(scores) != n:
        raise InputError(f"{path}: 'video_scores' must be ({n}, {k}), one row per name, got {scores.shape}")
    for what, shape in (("attention", (len(tcam),)), ("weights", (n,))):
        if what in arrays and arrays[what].shape != shape:
            raise InputError(f"{path}: '{what}' must have shape {shape}, got {arrays[what].shape}")
