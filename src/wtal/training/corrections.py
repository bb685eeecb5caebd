"""Corrections of training videos: what people have said happens when, taught beside the tags of the other videos.

A corrected video's segments decide its tags. Its snippets are taught one by one, where pseudo labels are taught, and
they take the place of those; a detector is taught the segments as boxes of full weight instead of its teacher's.
"""

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array, vstack

from wtal.annotations import Annotations, Video
from wtal.data.store import Store
from wtal.errors import DataWarning, InputError, did_you_mean, some
from wtal.formats import read_annotations, write_annotations
from wtal.instances import Instances
from wtal.reading import read_json


def read_corrections(path: Path, store: Store, split: str) -> dict[str, Instances]:
    """The true instances of each corrected video, in seconds; a video or class that is not to be trained on is refused.

    Args:
        path: What wtal serve --edit has saved, or any ActivityNet annotations. Videos that are marked as not done are
            left out with a warning.
        store: The data set.
        split: Its training videos.
    """
    found = read_annotations(path)
    database = read_json(path)["database"]
    undone = [name for name in found.videos if database[name].get("done", True) is not True]
    if undone:
        what = f"{path}: {len(undone)} corrected video(s) are not marked as done and are left out: {some(undone)}"
        warnings.warn(what, DataWarning, stacklevel=2)
    if unknown := [label for label in found.classes if label not in store.classes]:
        hint = did_you_mean(unknown[0], store.classes)
        raise InputError(f"{path} has the class {unknown[0]!r}, which {store.path} does not have{hint}; rename it")
    number = np.array([store.classes.index(label) for label in found.classes], dtype=np.int64)
    corrected = {}
    for name, video in found.videos.items():
        if name in undone:
            continue
        if name not in store.records:
            hint = did_you_mean(name, store.records)
            raise InputError(f"{path} corrects the video {name}, which {store.path} does not have{hint}; remove it")
        if store.records[name].split != split:
            raise InputError(
                f"{path} corrects {name}, a video of the split {store.records[name].split}: only those of {split} are "
                "trained on, and what is learned from test videos cannot be measured on them; remove it"
            )
        one = video.instances
        corrected[name] = Instances(one.segments, one.scores, number[one.class_ids] if len(one) else one.class_ids)
    if not corrected:
        raise InputError(f"{path} has no corrected video that is done; nothing to learn from it")
    return corrected


def write_corrections(path: Path, corrected: Mapping[str, Instances], store: Store) -> None:
    """Write what is taught, as annotations, so that `read_corrections` gives the same again."""
    videos = {
        name: Video(store.records[name].split, store.duration_s(name), instances)
        for name, instances in corrected.items()
    }
    write_annotations(path, Annotations(store.classes, videos))


def fingerprint(corrected: Mapping[str, Instances]) -> str:
    """What two files share only if they teach the same."""
    content = {
        name: sorted(zip(one.class_ids.tolist(), one.segments.tolist(), strict=True)) for name, one in corrected.items()
    }
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def on_grid(
    corrected: Mapping[str, Instances], store: Store, offset_snippets: float | None = None
) -> dict[str, Instances]:
    """The same in snippets; `offset_snippets` is where the first one starts, if the recipe says so."""
    return {
        name: store.timebase(name).at(offset_snippets).instances_to_snippets(one) for name, one in corrected.items()
    }


def snippet_shares(instances: Instances, n_snippets: int, n_classes: int) -> Float[np.ndarray, "t c"]:
    """How much of each snippet is covered by each class, and in the last column by none; each row sums to 1.

    >>> snippet_shares(Instances([[0.0, 1.5]], class_ids=[1], unit="snippets"), 3, 2).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    """
    shares = np.zeros((n_snippets, n_classes + 1))
    starts = np.arange(n_snippets)
    for (start, end), label in zip(instances.segments, instances.class_ids, strict=True):
        covered = np.clip(np.minimum(end, starts + 1) - np.maximum(start, starts), 0.0, 1.0)
        shares[:, label] = np.minimum(shares[:, label] + covered, 1.0)
    shares[:, -1] = np.maximum(0.0, 1.0 - shares.sum(axis=1))
    return shares / shares.sum(axis=1, keepdims=True)


def taught_snippets(corrected: Mapping[str, Instances], names: Sequence[str], store: Store) -> csr_array:
    """The shares of all videos' snippets, concatenated; rows of videos that nobody has corrected are empty.

    `corrected` are in snippets.
    """
    n_classes, parts = len(store.classes), []
    for name in names:
        t = store.length(name)
        known = corrected.get(name)
        empty = csr_array((t, n_classes + 1))
        parts.append(empty if known is None else csr_array(snippet_shares(known, t, n_classes)))
    return csr_array(vstack(parts, format="csr"))
