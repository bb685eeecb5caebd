"""ActivityNet JSON, the format that the field's data sets and evaluators share.

Annotations are `{"database": {VIDEO: {"subset", "duration", "annotations": [{"label", "segment"}]}}}`,
predictions are `{"results": {VIDEO: [{"label", "score", "segment"}]}}`; segments are `[start, end]` in seconds.
"""

import json
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.files import written_whole
from wtal.formats.rows import RowReader, in_writing_order
from wtal.instances import Instances, Unit
from wtal.reading import read_json


def read_annotations(path: Path | str) -> Annotations:
    """The videos of an annotation file; its classes are the names that occur in it, sorted.

    Numbers may be strings, a duration may be missing, further keys are ignored. Segments without start < end
    are left out with one warning that counts them, but still tag their video. Segments that reach past the
    video's duration are kept, as the field's evaluators keep them.

    Args:
        path: ActivityNet JSON: `{"database": {NAME: {"subset", "duration", "annotations"}}}`.

    Returns:
        The classes and, by name, the videos with their true instances in seconds.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "gt.json"
    >>> _ = path.write_text('{"database": {"a": {"subset": "test", "annotations": ['
    ...                     '{"label": "Run", "segment": ["1.5", "4"]}]}}}')
    >>> read = read_annotations(path)
    >>> read.classes, read.videos["a"].instances.segments.tolist(), read.videos["a"].duration_s
    (('Run',), [[1.5, 4.0]], None)
    """
    database = _section(path, "database")
    entries = [
        (name, entry, f"annotation {number} of video {name}")
        for name, video in database.items()
        for number, entry in enumerate(_list(path, video.get("annotations") or [], f"video {name}"))
    ]
    labels = {_label(path, entry, where) for _, entry, where in entries}
    rows = RowReader(path, sorted(labels))
    for name in database:
        rows.video(name)
    untimed: dict[str, set[str]] = {name: set() for name in database}
    for name, entry, where in entries:
        start, end = _segment(path, entry, where)
        if not rows.add(name, entry["label"], start, end, 1.0, where=where):
            untimed[name].add(entry["label"])
    instances = rows.instances()
    videos = {}
    for name, video in database.items():
        if not isinstance(video.get("subset"), str):
            raise InputError(f"{path}: video {name} has no subset")
        bad = tuple(sorted(untimed[name]))
        videos[name] = Video(video["subset"], _duration(video.get("duration")), instances[name], bad)
    return Annotations(tuple(rows.classes), videos)


def write_annotations(path: Path | str, annotations: Annotations) -> None:
    """Write an annotation file that the field's evaluators accept: videos by name, instances by start."""
    database: dict[str, Any] = {}
    instances = {name: video.instances for name, video in annotations.videos.items()}
    for name, rows in in_writing_order(instances, annotations.classes):
        video = annotations.videos[name]
        database[name] = {"subset": video.split}
        if video.duration_s is not None:
            database[name]["duration"] = video.duration_s
        database[name]["annotations"] = [
            {"label": label, "segment": [start, end]}
            for label, start, end, _ in sorted(rows, key=lambda row: row[1:3] + row[:1])
        ]
    _write(path, {"version": "wtal", "taxonomy": [], "database": database})


def read_predictions(path: Path | str, classes: Sequence[str], unit: Unit = "seconds") -> dict[str, Instances]:
    """The predicted instances of each video, labelled by their position in `classes`.

    A label that is not in `classes` is an error; which videos are known is the evaluation's business.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pred.json"
    >>> write_predictions(path, {"a": Instances([[1.0, 2.0]], [0.5], [1])}, ["Run", "Jump"])
    >>> read_predictions(path, ["Run", "Jump"])["a"].class_ids.tolist()
    [1]
    """
    rows = RowReader(path, classes)
    for name, found in _section(path, "results", of=list).items():
        rows.video(name)
        for number, entry in enumerate(found):
            where = f"prediction {number} of video {name}"
            label = _label(path, entry, where)
            start, end = _segment(path, entry, where)
            if "score" not in entry:
                raise InputError(f"{path}: {where} has no score")
            rows.add(name, label, start, end, entry["score"], where=where)
    return rows.instances(unit)


def write_predictions(path: Path | str, predictions: Mapping[str, Instances], classes: Sequence[str]) -> None:
    """Write a prediction file with the three keys that the field's evaluators ask for, best instance first."""
    results = {
        video: [{"label": label, "score": score, "segment": [start, end]} for label, start, end, score in rows]
        for video, rows in in_writing_order(predictions, classes)
    }
    _write(path, {"version": "wtal", "results": results, "external_data": {}})


def _write(path: Path | str, content: dict[str, Any]) -> None:
    with written_whole(Path(path)) as file:
        json.dump(content, file, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        file.write("\n")


def _section(path: Path | str, key: str, *, of: type = dict) -> dict[str, Any]:
    """The part of the file under `key`, checked to be a mapping from video names to values of one type."""
    content = read_json(Path(path))
    if not isinstance(content, dict):
        raise InputError(f"{path}: wanted an object with the key {key!r}, got a {_kind(content)}")
    if key not in content:
        raise InputError(f"{path}: no key {key!r}; the file has {sorted(content)[:8]}")
    section = content[key]
    if not isinstance(section, dict):
        raise InputError(f"{path}: {key!r} must map video names to their entries, got a {_kind(section)}")
    for name, value in section.items():
        if not isinstance(value, of):
            wanted = "a list" if of is list else "an object"
            raise InputError(f"{path}: video {name} must have {wanted}, got a {_kind(value)}")
    return section


def _list(path: Path | str, value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{path}: the annotations of {where} must be a list, got a {_kind(value)}")
    return value


def _label(path: Path | str, entry: Any, where: str) -> str:
    if not isinstance(entry, dict):
        raise InputError(f"{path}: {where} must be an object, got a {_kind(entry)}")
    if not isinstance(entry.get("label"), str):
        raise InputError(f"{path}: {where} has no label; wanted a class name, got {entry.get('label')!r}")
    return str(entry["label"])


def _segment(path: Path | str, entry: dict[str, Any], where: str) -> tuple[Any, Any]:
    segment = entry.get("segment")
    if not (isinstance(segment, list) and len(segment) == 2):
        raise InputError(f"{path}: {where} needs a segment [start, end], got {segment!r}")
    return segment[0], segment[1]


def _duration(value: Any) -> float | None:
    """The duration as a number; None where it is missing or makes no sense."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if 0 < seconds < inf else None


def _kind(value: Any) -> str:
    names = {dict: "object", list: "list", str: "string", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")
