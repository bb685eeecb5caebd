"""Tags: which classes each video carries, its split and its duration, from an annotation file or a CSV."""

import csv
import json
from pathlib import Path
from typing import Any

from wtal.data.record import VideoRecord, canonical_splits
from wtal.errors import InputError
from wtal.timebase import TimeBase

_COLUMNS = "video,label[,split][,duration_s][,fps]"


def tags_from_json(path: Path, timebase: TimeBase) -> dict[str, VideoRecord]:
    """The videos of an ActivityNet-style file, each with the names (not the times) of its annotated classes.

    A segment that is empty or out of range still tags its video, so a few bad times lose no training video.
    """
    database = _database(path)
    raw = {}
    for name, entry in database.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("subset"), str):
            raise InputError(f"{path}: video {name} has no subset")
        notes = entry.get("annotations") or []
        tags = tuple(sorted({str(note["label"]) for note in notes if "label" in note}))
        raw[name] = (entry["subset"], tags, _seconds(entry.get("duration")))
    withheld = _withheld(list(raw.values()))
    raw = {name: entry for name, entry in raw.items() if entry[0] not in withheld}
    split = canonical_splits(subset for subset, _, _ in raw.values())
    return {
        name: VideoRecord(name, split[subset], tags, duration_s, timebase)
        for name, (subset, tags, duration_s) in raw.items()
    }


def _withheld(entries: list[tuple[str, tuple[str, ...], float | None]]) -> set[str]:
    """The subset "testing" of the official file: its annotations are not public, so nothing can be done with it."""
    subsets = {subset for subset, _, _ in entries}
    annotated = {subset for subset, tags, _ in entries if tags}
    return {"testing"} - annotated if "validation" in subsets else set()


def _database(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read annotations {path}: {error}") from error
    database = content.get("database") if isinstance(content, dict) else None
    if not isinstance(database, dict) or not database:
        raise InputError(f'{path} is not an ActivityNet-style file: wanted {{"database": {{VIDEO: ...}}}}')
    return database


def _seconds(value: Any) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if 0 < seconds < float("inf") else None


def tags_from_csv(path: Path, timebase: TimeBase) -> dict[str, VideoRecord]:
    """The videos of a CSV `video,label[,split][,duration_s][,fps]`: one row per tag of a video.

    A row with an empty label names a video without tags. Without a split column every video is for training.
    """
    tags: dict[str, list[str]] = {}
    facts: dict[str, dict[str, str]] = {}
    for line, row in _rows(path):
        name, label = row.pop("video"), row.pop("label")
        if not name:
            raise InputError(f"{path}, line {line}: no video name")
        known = facts.setdefault(name, row)
        if known != row:
            raise InputError(f"{path}, line {line}: {name} is {row} here and {known} before")
        if name in tags and not (label and tags[name]):
            raise InputError(f"{path}, line {line}: {name} has a row without a label and others; keep one kind")
        labels = tags.setdefault(name, [])
        if label and label not in labels:
            labels.append(label)
    split = canonical_splits(row.get("split") or "train" for row in facts.values())
    return {
        name: VideoRecord(
            name,
            split[row.get("split") or "train"],
            tuple(sorted(tags[name])),
            _number(row.get("duration_s"), name, path),
            _clock(_number(row.get("fps"), name, path), timebase),
        )
        for name, row in facts.items()
    }


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            columns = [(column or "").strip() for column in reader.fieldnames or []]
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read tags {path}: {error}") from error
    wanted = {"video", "label", "split", "duration_s", "fps"}
    if not {"video", "label"} <= set(columns) or not set(columns) <= wanted:
        raise InputError(f"{path} must start with a line {_COLUMNS}, separated by commas; got {','.join(columns)}")
    if not rows:
        raise InputError(f"{path} has no rows")
    out = []
    for line, row in rows:
        if None in row or None in row.values():
            raise InputError(f"{path}, line {line}: wanted {len(columns)} values ({','.join(columns)})")
        out.append((line, {key.strip(): value.strip() for key, value in row.items()}))
    return out


def _number(text: str | None, name: str, path: Path) -> float | None:
    if not text:
        return None
    if (value := _seconds(text)) is None:
        raise InputError(f"{path}: {name} has {text!r} where a positive number is wanted")
    return value


def _clock(fps: float | None, timebase: TimeBase) -> TimeBase:
    return TimeBase(fps, timebase.stride_frames, timebase.offset_snippets) if fps else timebase
