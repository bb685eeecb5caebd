"""The true instances of a store's videos: in their own file, so that training cannot see them by accident."""

import warnings
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from wtal.annotations import Annotations, Video
from wtal.data.findings import Finding
from wtal.data.video_record import VideoRecord
from wtal.errors import DataWarning, InputError, some
from wtal.formats.activitynet import read_annotations, write_annotations
from wtal.instances import Instances
from wtal.named import match_endings


def read_truth(path: Path, classes: tuple[str, ...]) -> Annotations:
    """The annotations in `path` with labels that are numbers in `classes`."""
    if not path.exists():
        raise InputError(f"{path.parent} holds no true instances (gt.json); convert again with `gt=FILE` to add them")
    return renumber(read_annotations(path), classes, str(path))


def read_with_findings(path: Path) -> tuple[Annotations, list[Finding]]:
    """The annotations in `path`, and what reading them would have warned about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        annotations = read_annotations(path)
    fix = "correct the file if those matter"
    return annotations, [Finding("warning", None, str(warning.message), fix) for warning in caught]


def renumber(annotations: Annotations, classes: tuple[str, ...], where: str) -> Annotations:
    """The same annotations with labels that are numbers in `classes`, which must hold every name in use."""
    number = {name: i for i, name in enumerate(classes)}
    new = np.array([number.get(name, -1) for name in annotations.classes], dtype=np.int64)
    videos = {}
    for name, video in annotations.videos.items():
        old = video.instances
        class_ids = new[old.class_ids]
        if (class_ids < 0).any():
            unknown = annotations.classes[old.class_ids[class_ids < 0][0]]
            raise InputError(f"{where}: {name} has instances of {unknown}, which the class list lacks")
        videos[name] = replace(video, instances=Instances(old.segments, old.scores, class_ids))
    return Annotations(classes, videos)


def named_like(truth: Annotations, names: Collection[str]) -> Annotations:
    """The annotations under the names that the videos have: clip for clip.mp4."""
    known = match_endings(truth.videos, names)
    return Annotations(truth.classes, {known.get(name, name): video for name, video in truth.videos.items()})


def matched(truth: Annotations, names: Collection[str]) -> tuple[Annotations, list[Finding]]:
    """The annotations under the names that the videos have, and what fits no video."""
    truth = named_like(truth, names)
    strange = sorted(truth.videos.keys() - set(names))
    if not strange:
        return truth, []
    what = f"{len(strange)} of {len(truth.videos)} annotated videos are not among the videos, such as {some(strange)}"
    if len(strange) < len(truth.videos):
        return truth, [Finding("note", None, what, "they are left out")]
    fix = f"there will be no score; the annotations must use the videos' names, such as {some(sorted(names))}"
    return truth, [Finding("warning", None, what, fix)]


def write_truth(path: Path, truth: Annotations, records: Iterable[VideoRecord]) -> None:
    """Write what `truth` knows about these videos to `path`, under the records' splits and durations."""
    videos = {
        record.name: Video(record.split, record.duration_s, truth.videos[record.name].instances)
        for record in records
        if record.name in truth.videos
    }
    write_annotations(path, Annotations(truth.classes, videos))
