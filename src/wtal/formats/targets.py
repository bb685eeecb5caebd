"""One generation of pseudo labels in an .npz file: snippet labels of the training videos, and their instances.

Arrays: `names` (v,), `lengths` (v,) snippets of each video, `classes` (c,); the labels (Σ lengths, c) as a sparse
matrix, for a video has few of the classes: snippet i has `label_values[s:e]` in the columns `label_columns[s:e]`, where
s, e = `label_starts[i:i+2]`, and 0 elsewhere; and the instances as `segments` (in snippets), `scores`,
`class_ids` and `video_ids`, a position in `names`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array

from wtal.errors import InputError
from wtal.files import written_whole
from wtal.instances import Instances
from wtal.reading import names_of, read_npz, refusing

ARRAYS = (
    *("names", "lengths", "classes", "label_values", "label_columns", "label_starts"),
    *("segments", "scores", "class_ids", "video_ids"),
)


def to_parts(labels: csr_array) -> dict[str, Any]:
    """The arrays that a sparse matrix of labels consists of, to be written."""
    return {"values": labels.data, "columns": labels.indices, "starts": labels.indptr}


def from_parts(parts: Mapping[str, Any], n_classes: int) -> csr_array:
    """The labels that `to_parts` took apart, checked: the compiled code behind sparse matrices takes any index."""
    values, columns, starts = (np.asarray(parts[name]) for name in ("values", "columns", "starts"))
    whole = (np.int32, np.int64)
    if values.dtype not in (np.float32, np.float64) or columns.dtype not in whole or starts.dtype not in whole:
        raise InputError(f"labels must be floats with whole places, got {values.dtype, columns.dtype, starts.dtype}")
    if any(part.ndim != 1 for part in (values, columns, starts)) or len(columns) != len(values) or not len(starts):
        raise InputError(f"the parts of labels have shapes {values.shape}, {columns.shape} and {starts.shape}")
    if starts[0] != 0 or starts[-1] != len(values) or (starts[1:] < starts[:-1]).any():
        raise InputError(f"the rows of labels do not go from 0 to {len(values)} without a step back")
    if len(columns) and not 0 <= columns.min() <= columns.max() < n_classes:
        raise InputError(f"labels lie in columns {columns.min()} to {columns.max()} of {n_classes}")
    if not np.isfinite(values).all():
        raise InputError("labels must be finite")
    return csr_array((values, columns, starts), shape=(len(starts) - 1, n_classes))


class VideoTargets(Mapping[str, Float[np.ndarray, "_ _"]]):
    """Labels (snippets, classes) of each video by name, made when they are asked for: all of them at once are large."""

    def __init__(self, names: Iterable[str], of: Callable[[str], Float[np.ndarray, "_ _"]]) -> None:
        self._names, self._of = dict.fromkeys(names), of

    @classmethod
    def split(cls, names: Sequence[str], lengths: Sequence[int], labels: csr_array) -> "VideoTargets":
        """Labels of concatenated videos with so many snippets each."""
        ends = np.cumsum(lengths).tolist()
        rows = {name: slice(end - n, end) for name, n, end in zip(names, lengths, ends, strict=True)}
        return cls(names, lambda name: labels[rows[name]].toarray())

    def __getitem__(self, name: str) -> Float[np.ndarray, "_ _"]:
        if name not in self._names:
            raise KeyError(name)
        return self._of(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, eq=False)
class TargetFile:
    """The labels (snippets, classes) and the instances, on the snippet grid, of each video by name."""

    classes: tuple[str, ...]
    targets: VideoTargets
    instances: dict[str, Instances]


def read_targets(path: Path | str) -> TargetFile:
    """The labels in a file that `write_targets` made; an error names the file."""
    with refusing(path, "is not a readable file of pseudo labels"):
        file = read_npz(Path(path), ARRAYS)
        names, classes = names_of(file["names"], "names"), tuple(names_of(file["classes"], "classes"))
        sparse = from_parts({name: file[f"label_{name}"] for name in ("values", "columns", "starts")}, len(classes))
        lengths, videos = file["lengths"], file["video_ids"]
        if lengths.shape != (len(names),) or lengths.dtype != np.int64 or (lengths < 0).any():
            raise InputError(f"wanted the lengths of {len(names)} videos, got {lengths.dtype} {lengths.shape}")
        if len(set(names)) < len(names) or lengths.sum() != sparse.shape[0] or (lengths > sparse.shape[0]).any():
            raise InputError(f"{len(set(names))} videos of {lengths.sum()} snippets have {sparse.shape[0]} labels")
        joined = Instances(file["segments"], file["scores"], file["class_ids"], unit="snippets")
        known = joined.class_ids.max(initial=-1) < len(classes)
        if videos.shape != (len(joined),) or videos.dtype != np.int64 or not known:
            raise InputError("its instances do not go with its videos and classes")
        instances = {name: joined[videos == number] for number, name in enumerate(names)}
        return TargetFile(classes, VideoTargets.split(names, lengths.tolist(), sparse), instances)


def write_targets(
    path: Path | str,
    names: Sequence[str],
    lengths: Sequence[int],
    classes: Sequence[str],
    labels: csr_array,
    instances: Sequence[Instances],
) -> None:
    """Write labels, all videos concatenated, and each video's instances."""
    joined = Instances.concat([one.wanted_in("snippets", "files of pseudo labels") for one in instances])
    counts = [len(one) for one in instances]
    with written_whole(Path(path), "wb") as file:
        np.savez_compressed(
            file,
            names=np.array(names, dtype=str),
            lengths=np.array(lengths, dtype=np.int64),
            classes=np.array(classes, dtype=str),
            **{f"label_{name}": part for name, part in to_parts(labels).items()},
            segments=joined.segments,
            scores=joined.scores,
            class_ids=joined.class_ids,
            video_ids=np.repeat(np.arange(len(counts)), counts),
        )
