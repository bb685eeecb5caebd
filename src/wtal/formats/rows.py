"""Rows of a file become videos with instances: what every reader checks, and what every writer checks."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from wtal.annotations import Annotations, Video
from wtal.errors import DataWarning, InputError, did_you_mean, some
from wtal.instances import Instances

#: label, start, end and score of an instance, in seconds
Row = tuple[str, float, float, float]


class RowReader:
    """The videos of a file, gathered row by row; rows that are no segment are counted, not kept.

    Without `classes`, they are the labels that occur, sorted.
    """

    def __init__(self, path: Path | str, classes: Sequence[str] | None = None) -> None:
        self.path = path
        self.classes = None if classes is None else {name: number for number, name in enumerate(classes)}
        self._videos: dict[str, Video] = {}
        self._rows: dict[str, list[Row]] = {}
        self._labels: set[str] = set()
        self._again: set[str] = set()
        self._dropped = 0
        self._first_dropped = ""

    def video(self, name: str, split: str = "", duration_s: float | None = None) -> None:
        """Make room for a video, which may have no instance at all."""
        if name in self._videos:
            self._again.add(name)
            return
        self._rows[name] = []
        self._videos[name] = Video(split, duration_s, Instances.empty())

    def add(self, video: str, label: Any, start: Any, end: Any, score: Any = 1.0, *, where: str) -> None:
        """Keep a row, if it is a segment; `where` says to the user which one it is."""
        start_s, end_s = self._number_of(start, "start", where), self._number_of(end, "end", where)
        confidence = self._number_of(score, "score", where)
        if not -inf < confidence < inf:
            raise InputError(f"{self.path}: the score of {where} is {confidence}; it must be finite")
        if not isinstance(label, str) or not label:
            raise InputError(f"{self.path}: {where} has no label; wanted a class name, got {label!r}")
        if self.classes is not None and label not in self.classes:
            hint = did_you_mean(label, self.classes)
            raise InputError(
                f"{self.path}: {where} has label {label!r}, which is not among the {len(self.classes)} classes{hint}"
            )
        if video not in self._videos:
            self.video(video)
        self._labels.add(label)
        if not -inf < start_s < end_s < inf:
            self._dropped += 1
            self._first_dropped = self._first_dropped or f"{where}: [{start_s}, {end_s}]"
            known = self._videos[video]
            self._videos[video] = replace(known, untimed=tuple(sorted({*known.untimed, label})))
        else:
            self._rows[video].append((label, start_s, end_s, confidence))

    def annotations(self, *, predicted: bool = False) -> Annotations:
        """What was gathered, with one warning for all that was not."""
        if self._dropped:
            warn(
                f"{self.path}: left out {self._dropped} segment(s) without start < end, "
                f"the first is {self._first_dropped}"
            )
        if self._again:
            warn(f"{self.path}: {some(sorted(self._again))} is there more than once; its instances were put together")
        number = self.classes or {name: i for i, name in enumerate(sorted(self._labels))}
        classes = tuple(number)
        videos = {
            name: replace(video, instances=_as_instances(self._rows[name], number).named(classes))
            for name, video in self._videos.items()
        }
        return Annotations(classes, videos, predicted)

    def _number_of(self, value: Any, what: str, where: str) -> float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{self.path}: the {what} of {where} is {value!r}, not a number") from None


def warn(text: str) -> None:
    """Say that something in a file was left out or changed."""
    warnings.warn(text, DataWarning, stacklevel=3)


def in_writing_order(content: Annotations) -> Iterator[tuple[str, list[Row]]]:
    """Each video with its rows: videos by name; predictions the best first, annotations by start.

    >>> two = Video("", None, Instances([[1.0, 2.0], [4.0, 5.0]], scores=[0.25, 0.5]))
    >>> videos = {"b": Video("", None, Instances.empty()), "a": two}
    >>> list(in_writing_order(Annotations(("Run",), videos, predicted=True)))
    [('a', [('Run', 4.0, 5.0, 0.5), ('Run', 1.0, 2.0, 0.25)]), ('b', [])]
    """
    classes = content.classes
    if len(set(classes)) != len(classes):
        raise InputError("class names must differ from each other")
    for name in sorted(content.videos):
        if not name:
            raise InputError("a video needs a name, got ''")
        found = content.videos[name].instances.wanted_in("seconds", "files").sorted()
        if len(found) and int(found.class_ids.max()) >= len(classes):
            raise InputError(
                f"video {name} has an instance of class number {found.class_ids.max()}, "
                f"but there are {len(classes)} classes"
            )
        labels = [classes[number] for number in found.class_ids.tolist()]
        rows = list(zip(labels, found.starts.tolist(), found.ends.tolist(), found.scores.tolist(), strict=True))
        yield name, rows if content.predicted else in_time(rows)


def in_time(rows: list[Row]) -> list[Row]:
    """The rows by start, then end, then label."""
    return sorted(rows, key=lambda row: (row[1], row[2], row[0]))


def _as_instances(rows: list[Row], number: dict[str, int]) -> Instances:
    if not rows:
        return Instances.empty()
    labels, starts, ends, scores = zip(*rows, strict=True)
    return Instances(list(zip(starts, ends, strict=True)), scores, [number[label] for label in labels])
