"""The W-TALC layout: one pickled object array of all videos' features and further arrays about them."""

from pathlib import Path
from typing import Any

import numpy as np

from wtal.annotations import Annotations, Video
from wtal.data.arrays import as_features
from wtal.data.feature_files import the_one
from wtal.data.findings import Finding
from wtal.data.source import Given, Source
from wtal.data.streams import Streams, halves
from wtal.data.unpickle import as_text, read_object_array
from wtal.data.video_record import VideoRecord, canonical_splits, class_list
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.reading import names_of, refusing

_WRONG = "is no W-TALC set that can be read"


def looks_like(path: Path) -> bool:
    """Whether the list of videos is there."""
    return any(_name_lists(path))


def read(path: Path, given: Given) -> Source:
    """The arrays in `path` or its `*-Annotations` folder. All features are in memory at once: it is one pickle."""
    with refusing(path, _WRONG):
        return _read(path, given)


def _read(path: Path, given: Given) -> Source:
    beside = the_one(_name_lists(path), f"one videoname.npy in {path}").parent
    features = read_object_array(the_one(path.glob("*JOINTFeatures.npy"), f"one *JOINTFeatures.npy in {path}"))
    columns = {name: _column(beside / f"{name}.npy", len(features)) for name in ("videoname", "subset", "labels_all")}
    names = names_of([as_text(value) for value in columns["videoname"]], str(path))
    split = canonical_splits(as_text(value) for value in columns["subset"])
    durations = _durations(beside / "duration.npy", len(names))
    records = tuple(
        VideoRecord(name, split[as_text(subset)], _names(tags), duration_s, given.timebase)
        for name, subset, tags, duration_s in zip(
            names, columns["subset"], columns["labels_all"], durations, strict=True
        )
    )
    listed = given.classes
    if listed is None and (beside / "classlist.npy").exists():
        listed = tuple(as_text(value) for value in read_object_array(beside / "classlist.npy"))
    classes = class_list(listed, records)
    row = {name: number for number, name in enumerate(names)}

    def load(name: str) -> Streams:
        with refusing(path, _WRONG):
            return halves(as_features(np.asarray(features[row[name]]), name))

    truth = _truth(beside, records, classes)
    return Source("wtalc", classes, records, load, truth, tuple(_fps_note(beside)))


def _name_lists(path: Path) -> list[Path]:
    return [*path.glob("videoname.npy"), *path.glob("*/videoname.npy")]


def _column(path: Path, n: int) -> Any:
    column = read_object_array(path)
    if column.shape[:1] != (n,):
        raise InputError(f"{path} has {len(column) if column.ndim else 'no'} entries for {n} videos with features")
    return column


def _names(values: Any) -> tuple[str, ...]:
    listed = [values] if isinstance(values, str | bytes) else list(values)
    return tuple(sorted(names_of({as_text(value) for value in listed}, "the labels")))


def _durations(path: Path, n: int) -> list[float | None]:
    if not path.exists():
        return [None] * n
    return [float(value) or None for value in np.asarray(_column(path, n), dtype=np.float64).reshape(n)]


def _truth(folder: Path, records: tuple[VideoRecord, ...], classes: tuple[str, ...]) -> Annotations | None:
    if not all((folder / name).exists() for name in ("segments.npy", "labels.npy")):
        return None
    number = {name: i for i, name in enumerate(classes)}
    all_segments = _column(folder / "segments.npy", len(records))
    all_labels = _column(folder / "labels.npy", len(records))
    videos = {}
    for record, listed, labels in zip(records, all_segments, all_labels, strict=True):
        segments = np.asarray([tuple(pair) for pair in listed], dtype=np.float64).reshape(-1, 2)
        names = [as_text(label) for label in labels]
        if len(names) != len(segments):
            raise InputError(f"{folder}: {record.name} has {len(segments)} segments and {len(names)} labels")
        kept = [i for i, (start, end) in enumerate(segments) if start < end and names[i] in number]
        videos[record.name] = Video(
            record.split, record.duration_s, Instances(segments[kept], class_ids=[number[names[i]] for i in kept])
        )
    return Annotations(classes, videos)


def _fps_note(folder: Path) -> list[Finding]:
    if not (folder / "extracted_fps.npy").exists():
        return []
    return [Finding("note", None, "extracted_fps.npy is not used (it says 10)", "the features are at 25 fps: `fps`")]
