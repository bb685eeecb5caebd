"""Tags: which classes each video carries, its split and its duration, from an annotation file or a CSV."""

import csv
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from wtal.annotations import Annotations
from wtal.data.findings import Finding
from wtal.data.source import Given
from wtal.data.truth import read_with_findings
from wtal.data.video_record import VideoRecord, canonical_splits
from wtal.errors import InputError
from wtal.timebase import TimeBase

_COLUMNS = "video,label[,split][,duration_s][,fps]"
_MEDIA = {".npy", ".mp4", ".avi", ".mkv", ".mov", ".webm", ".m4v", ".mpg"}


@dataclass(frozen=True)
class Tagged:
    """Videos by name with their tags, and the true instances where annotations are given."""

    videos: dict[str, VideoRecord]
    truth: Annotations | None = None
    findings: tuple[Finding, ...] = ()


def read_tagged(given: Given) -> Tagged:
    """The videos of the CSV `given.tags`, or else of the annotations `given.gt`, one of which must be there."""
    truth, findings = read_with_findings(given.gt) if given.gt else (None, [])
    if given.tags is not None:
        videos = tags_from_csv(given.tags, given.timebase)
    else:
        assert truth is not None
        videos = tags_from_annotations(truth, given.timebase)
    return Tagged(videos, truth, tuple(findings))


def tags_from_annotations(annotations: Annotations, timebase: TimeBase) -> dict[str, VideoRecord]:
    """The annotated videos, each with the names (not the times) of its classes.

    The split "testing" of ActivityNet's official file is left out: its annotations are not public.
    """
    tags = {name: annotations.tags(name) for name in annotations.videos}
    splits = {video.split for video in annotations.videos.values()}
    annotated = {annotations.videos[name].split for name in tags if tags[name]}
    withheld = {"testing"} - annotated if "validation" in splits else set()
    split = canonical_splits(splits - withheld)
    return {
        name: VideoRecord(name, split[video.split], tags[name], video.duration_s, timebase)
        for name, video in annotations.videos.items()
        if video.split not in withheld
    }


def tags_from_csv(path: Path, timebase: TimeBase) -> dict[str, VideoRecord]:
    """The videos of a CSV `video,label[,split][,duration_s][,fps]`: one row per tag of a video.

    A row with an empty label names a video without tags. Without a split column every video is for training. A name
    may have the ending of a file: a CSV made from a folder of videos says clip.mp4 where the features are clip.npy.
    """
    spelled: dict[str, str] = {}
    tags: dict[str, list[str]] = {}
    facts: dict[str, dict[str, str]] = {}
    for line, row in _rows(path):
        name, label = row.pop("video"), row.pop("label")
        if not name:
            raise InputError(f"{path}, line {line}: no video name")
        plain = Path(name).stem if Path(name).suffix.lower() in _MEDIA else name
        if spelled.setdefault(plain, name) != name:
            raise InputError(f"{path}: {plain} is named twice, with and without its ending")
        name = plain
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
            replace(timebase, fps=_number(row.get("fps"), name, path) or timebase.fps),
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
    try:
        value = float(text)
    except ValueError:
        value = inf
    if not 0 < value < inf:
        raise InputError(f"{path}: {name} has {text!r} where a positive number is wanted")
    return value
