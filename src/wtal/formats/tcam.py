"""Activation maps of many videos in one .npz file, so that the test-time half can be run on anybody's model.

Arrays: `names` (v,); `lengths` (v,) snippets of each video; `tcam` (Σ lengths, c), one row per snippet, videos in the
order of `names`; `video_scores` (v, c); `classes` (k,) names. A TCAM has one column per class, and may have one more,
the last, for background.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError
from wtal.files import written_whole
from wtal.pseudo.candidates import class_columns

ARRAYS = ("names", "lengths", "tcam", "video_scores", "classes")


@dataclass(frozen=True, eq=False)
class VideoMap:
    """One video's activation map and class scores, background left out.

    Of a video that several streams have seen there are several; the scores of their instances count by `weight`.
    """

    name: str
    tcam: Float[np.ndarray, "t c"]
    video_scores: Float[np.ndarray, " c"]
    attention: Float[np.ndarray, " t"] | None = None
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class TcamFile:
    """The class names and the maps of all videos."""

    classes: tuple[str, ...]
    videos: tuple[VideoMap, ...]


def read_tcams(path: Path | str) -> TcamFile:
    """The maps of a file, checked; an error names the file and the video or array that is wrong."""
    path = Path(path)
    arrays = _arrays(path)
    names = [str(name) for name in arrays["names"]]
    classes = tuple(str(name) for name in arrays["classes"])
    lengths, tcam, scores = arrays["lengths"], arrays["tcam"], arrays["video_scores"]
    n, k = len(names), len(classes)
    for what, listed in (("video", names), ("class", list(classes))):
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
    tcam, scores = (
        class_columns(values, k, f"{path}: {what!r}") for what, values in (("tcam", tcam), ("video_scores", scores))
    )
    videos = []
    ends = np.cumsum(lengths)
    for name, start, end, score in zip(names, ends - lengths, ends, scores, strict=True):
        curves = tcam[start:end]
        for what, values in (("tcam", curves), ("video_scores", score)):
            if not np.isfinite(values).all():
                raise InputError(f"{path}: '{what}' of video {name} has NaN or infinite values")
        videos.append(VideoMap(name, curves.astype(np.float64), score.astype(np.float64)))
    return TcamFile(classes, tuple(videos))


def write_tcams(path: Path | str, classes: Sequence[str], videos: Sequence[VideoMap]) -> None:
    """Write maps so that `read_tcams` gives them back (in single precision, as models make them)."""
    k = len(classes)
    with written_whole(Path(path), "wb") as file:
        np.savez_compressed(
            file,
            names=np.array([video.name for video in videos], dtype=str),
            lengths=np.array([len(video.tcam) for video in videos], dtype=np.int64),
            tcam=np.concatenate([np.zeros((0, k)), *[video.tcam for video in videos]]).astype(np.float32),
            video_scores=np.array([video.video_scores for video in videos], dtype=np.float32).reshape(-1, k),
            classes=np.array(classes, dtype=str),
        )


def _arrays(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            missing = [name for name in ARRAYS if name not in file]
            if missing:
                raise InputError(f"{path}: no array {missing[0]!r}; a TCAM file has {', '.join(ARRAYS)}")
            return {name: file[name] for name in ARRAYS}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError, BadZipFile, AttributeError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a readable .npz file of plain arrays ({error})") from error
