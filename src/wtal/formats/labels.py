"""One generation of pseudo labels in an .npz file: snippet labels of the training videos, and their instances.

Arrays: `names` (v,), `lengths` (v,) snippets of each video, `classes` (c,), `labels` (Σ lengths, c), and the instances
as `segments` (in snippets), `scores`, `instance_labels` and `instance_videos`, a position in `names`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError
from wtal.files import written_whole
from wtal.instances import Instances


@dataclass(frozen=True, eq=False)
class LabelFile:
    """The labels (snippets, classes) and the instances, on the snippet grid, of each video by name."""

    classes: tuple[str, ...]
    labels: dict[str, Float[np.ndarray, "_ _"]]
    instances: dict[str, Instances]


def read_labels(path: Path | str) -> LabelFile:
    """The labels in a file that `write_labels` made; an error names the file."""
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            names, ends = file["names"].tolist(), np.cumsum(file["lengths"])
            labels = dict(zip(names, np.split(file["labels"], ends[:-1]), strict=True))
            joined = Instances(file["segments"], file["scores"], file["instance_labels"])
            videos = file["instance_videos"]
            instances = {name: joined[videos == number] for number, name in enumerate(names)}
            return LabelFile(tuple(file["classes"].tolist()), labels, instances)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError, KeyError, IndexError, BadZipFile) as error:
        raise InputError(f"{path}: not a readable file of pseudo labels ({error})") from error


def write_labels(
    path: Path | str,
    names: Sequence[str],
    lengths: Sequence[int],
    classes: Sequence[str],
    labels: Float[np.ndarray, "n c"],
    instances: Sequence[Instances],
) -> None:
    """Write labels, all videos' snippets behind each other, and each video's instances."""
    joined = Instances.concat(instances)
    counts = [len(one) for one in instances]
    with written_whole(Path(path), "wb") as file:
        np.savez_compressed(
            file,
            names=np.array(names, dtype=str),
            lengths=np.array(lengths, dtype=np.int64),
            classes=np.array(classes, dtype=str),
            labels=labels,
            segments=joined.segments,
            scores=joined.scores,
            instance_labels=joined.labels,
            instance_videos=np.repeat(np.arange(len(counts)), counts),
        )
