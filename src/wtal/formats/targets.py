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
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array

from wtal.errors import InputError
from wtal.files import written_whole
from wtal.instances import Instances


def to_parts(labels: csr_array) -> dict[str, Any]:
    """The arrays that a sparse matrix of labels consists of, to be written."""
    return {"values": labels.data, "columns": labels.indices, "starts": labels.indptr}


def from_parts(parts: Mapping[str, Any], n_classes: int) -> csr_array:
    """The labels that `to_parts` took apart."""
    shape = (len(parts["starts"]) - 1, n_classes)
    return csr_array((parts["values"], parts["columns"], parts["starts"]), shape=shape)


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
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            names, classes = file["names"].tolist(), tuple(file["classes"].tolist())
            sparse = from_parts({name: file[f"label_{name}"] for name in ("values", "columns", "starts")}, len(classes))
            labels = VideoTargets.split(names, file["lengths"].tolist(), sparse)
            joined = Instances(file["segments"], file["scores"], file["class_ids"], unit="snippets")
            videos = file["video_ids"]
            instances = {name: joined[videos == number] for number, name in enumerate(names)}
            return TargetFile(classes, labels, instances)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError, KeyError, IndexError, BadZipFile) as error:
        raise InputError(f"{path}: not a readable file of pseudo labels ({error})") from error


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
