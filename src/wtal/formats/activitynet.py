"""ActivityNet JSON, the format that the field's data sets and evaluators share.

Annotations are `{"database": {VIDEO: {"subset", "duration", "annotations": [{"label", "segment"}]}}}`,
predictions are `{"results": {VIDEO: [{"label", "score", "segment"}]}}`; segments are `[start, end]` in seconds.
"""

import json
from math import inf
from pathlib import Path
from typing import Any

from wtal.annotations import Annotations
from wtal.errors import InputError
from wtal.files import written_whole
from wtal.formats.form import FormatHints
from wtal.formats.rows import RowReader, in_writing_order
from wtal.reading import read_json

TITLE = "ActivityNet JSON"
KIND = "json"
HOLDS = frozenset({"several videos", "scores", "durations", "splits", "videos without instances"})


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
    rows = RowReader(path)
    _read_database(read_json(Path(path)), rows)
    return rows.annotations()


def write_annotations(path: Path | str, annotations: Annotations) -> None:
    """Write an annotation file that the field's evaluators accept: videos by name, instances by start."""
    text = write(annotations, FormatHints())
    with written_whole(Path(path)) as file:
        file.write(text)


def read(content: Any, rows: RowReader, given: FormatHints) -> bool:  # noqa: ARG001  there is nothing to ask
    """Whether the file is one of predictions."""
    if isinstance(content, dict) and "database" in content:
        _read_database(content, rows)
        return False
    for name, found in _section(content, rows.path, "results", of=list).items():
        rows.video(name)
        for number, entry in enumerate(found):
            where = f"prediction {number} of video {name}"
            start, end = _segment(rows.path, entry, where)
            if "score" not in entry:
                raise InputError(f"{rows.path}: {where} has no score")
            rows.add(name, entry.get("label"), start, end, entry["score"], where=where)
    return True


def write(content: Annotations, given: FormatHints) -> str:  # noqa: ARG001
    """Predictions with the three keys that the field's evaluators want; annotations with what is known of a video."""
    videos: dict[str, Any] = {}
    for name, rows in in_writing_order(content):
        if content.predicted:
            videos[name] = [
                {"label": label, "score": score, "segment": [start, end]} for label, start, end, score in rows
            ]
            continue
        video = content.videos[name]
        length = {} if video.duration_s is None else {"duration": video.duration_s}
        found = [{"label": label, "segment": [start, end]} for label, start, end, _ in rows]
        videos[name] = {"subset": video.split, **length, "annotations": found}
    whole: dict[str, Any] = {"version": "wtal", "taxonomy": [], "database": videos}
    if content.predicted:
        whole = {"version": "wtal", "results": videos, "external_data": {}}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def _read_database(content: Any, rows: RowReader) -> None:
    for name, video in _section(content, rows.path, "database").items():
        entries = video.get("annotations") or []
        if not isinstance(entries, list):
            kind = _kind(entries)
            raise InputError(f"{rows.path}: the annotations of video {name} must be a list, got a {kind}")
        if not isinstance(video.get("subset"), str):
            raise InputError(f"{rows.path}: video {name} has no subset")
        rows.video(name, video["subset"], _duration(video.get("duration")))
        for number, entry in enumerate(entries):
            where = f"annotation {number} of video {name}"
            start, end = _segment(rows.path, entry, where)
            rows.add(name, entry.get("label"), start, end, where=where)


def _section(content: Any, path: Path | str, key: str, *, of: type = dict) -> dict[str, Any]:
    """The part of the file under `key`, checked to be a mapping from video names to values of one type."""
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


def _segment(path: Path | str, entry: Any, where: str) -> tuple[Any, Any]:
    if not isinstance(entry, dict):
        raise InputError(f"{path}: {where} must be an object, got a {_kind(entry)}")
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
