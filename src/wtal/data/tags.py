"""Tags: which classes each video carries, its split and its duration, from an annotation file or a CSV."""

import codecs
import csv
import io
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from wtal.annotations import Annotations
from wtal.data.findings import Finding
from wtal.data.source import Given
from wtal.data.truth import named_like, read_with_findings
from wtal.data.video_record import VideoRecord, canonical_splits
from wtal.errors import DataWarning, InputError, did_you_mean
from wtal.named import without_ending
from wtal.reading import refusing
from wtal.timebase import TimeBase

_COLUMNS = "video,label[,split][,duration_s][,fps]"
_KNOWN = ("video", "label", "split", "duration_s", "fps")


@dataclass(frozen=True)
class Tagged:
    """Videos by name with their tags, and the true instances where annotations are given."""

    videos: dict[str, VideoRecord]
    truth: Annotations | None = None
    findings: tuple[Finding, ...] = ()


def read_tagged(given: Given, files: Collection[str] = ()) -> Tagged:
    """The videos of the CSV `given.tags`, or else of the annotations `given.gt`, one of which must be there.

    Annotations may name `files` with their endings or without.
    """
    truth, findings = read_with_findings(given.gt) if given.gt else (None, [])
    if truth is not None:
        truth = named_like(truth, files)
    if given.tags is not None:
        videos = tags_from_csv(given.tags, given.timebase)
    else:
        assert truth is not None
        with refusing(str(given.gt)):
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

    Semicolons or tabs may stand for the commas, capitals for the columns' names, and other columns beside them. A row
    with an empty label names a video without tags. Without a split column every video is for training. A name may have
    the ending of a file: a CSV made from a folder of videos says clip.mp4 where the features are clip.npy.
    """
    with refusing(path, "is no table of tags"):
        return _from_csv(path, timebase)


def _from_csv(path: Path, timebase: TimeBase) -> dict[str, VideoRecord]:
    spelled: dict[str, str] = {}
    tags: dict[str, list[str]] = {}
    facts: dict[str, dict[str, str]] = {}
    for line, row in _rows(path):
        name, label = row.pop("video"), row.pop("label")
        if not name:
            raise InputError(f"{path}, line {line}: no video name")
        plain = without_ending(name)
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
    _warn_of_cases(path, (label for labels in tags.values() for label in labels))
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
    """Line number and known columns of each row; lines that are empty, as spreadsheets add them, are left out."""
    text = _decoded(path)
    head = text.partition("\n")[0]
    # commas, or what spreadsheets write in their place where commas are decimal points
    separator = max(",;\t", key=lambda mark: len({"video", "label"} & set(_names(head, mark))))
    columns = _names(head, separator)
    _check_columns(path, columns)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    next(lines)
    rows = [(lines.line_num, [value.strip() for value in row]) for row in lines]
    rows = [(line, values) for line, values in rows if any(values)]
    if not rows:
        raise InputError(f"{path} has no rows")
    out = []
    for line, values in rows:
        if len(values) != len(columns):
            raise InputError(
                f"{path}, line {line}: wanted {len(columns)} values ({','.join(columns)}), got {len(values)}; "
                "a name with a comma in it must stand between quotation marks"
            )
        row = {column: value for column, value in zip(columns, values, strict=True) if column in _KNOWN}
        if separator != ",":  # 12,5 seconds
            row |= {key: row[key].replace(",", ".") for key in ("duration_s", "fps") if key in row}
        out.append((line, row))
    return out


def _decoded(path: Path) -> str:
    """The text of a table, in the encodings that spreadsheets write."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read tags {path}: {error.strerror}") from error
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = content.decode("cp1252")
        except UnicodeDecodeError:
            raise InputError(f"cannot read tags {path}: not UTF-8; save it as CSV UTF-8") from None
        warnings.warn(
            f"{path} is not UTF-8 and was read as Windows-1252 (Latin-1); save it as CSV UTF-8 if names look wrong",
            DataWarning,
            stacklevel=2,
        )
    if "\0" in text:
        raise InputError(f"cannot read tags {path}: it is no text, or UTF-16 without its mark; save it as CSV UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _names(head: str, separator: str) -> list[str]:
    return [name.strip().lower() for name in next(csv.reader([head], delimiter=separator), [])]


def _check_columns(path: Path, columns: list[str]) -> None:
    if not {"video", "label"} <= set(columns):
        raise InputError(
            f"{path} must start with a line {_COLUMNS}, separated by commas, semicolons or tabs; "
            f"got {','.join(columns)}"
        )
    if twice := sorted({name for name in columns if name in _KNOWN and columns.count(name) > 1}):
        raise InputError(f"{path} has more than one column {twice[0]}; keep one")
    extra = [name for name in columns if name and name not in _KNOWN]
    for name in extra:
        if hint := did_you_mean(name, [known for known in _KNOWN if known not in columns]):
            raise InputError(f"{path}: unknown column {name}{hint}; rename it, or remove it if it is something else")
    if extra:
        warnings.warn(f"{path}: no use for column(s) {', '.join(extra)}", DataWarning, stacklevel=2)


def _warn_of_cases(path: Path, labels: Iterable[str]) -> None:
    """Say so where labels differ in capitals or spaces only: they become classes of their own."""
    alike: dict[str, list[str]] = {}
    for label in sorted(set(labels)):
        alike.setdefault("".join(letter for letter in label.casefold() if letter.isalnum()), []).append(label)
    for names in alike.values():
        if len(names) > 1:
            warnings.warn(
                f"{path}: {' and '.join(map(repr, names))} are {len(names)} classes; write one of them everywhere if "
                "they mean the same",
                DataWarning,
                stacklevel=3,
            )


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
