"""Rows of a file become Instances: what every reader checks, and what every writer checks."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from wtal.errors import DataWarning, InputError, did_you_mean
from wtal.instances import Instances, Unit


class RowReader:
    """The instances of each video, gathered row by row; rows that are no segment are counted, not kept."""

    def __init__(self, path: Path | str, classes: Sequence[str]) -> None:
        self.path = path
        self.classes = classes
        self._number = {name: number for number, name in enumerate(classes)}
        self._rows: dict[str, list[tuple[float, float, float, int]]] = {}
        self._dropped = 0
        self._first_dropped = ""

    def video(self, name: str) -> None:
        """Make room for a video, which may have no instance at all."""
        self._rows.setdefault(name, [])

    def add(self, video: str, label: Any, start: Any, end: Any, score: Any, *, where: str) -> bool:
        """Whether it was kept, since it is a segment; `where` says to the user which one it is."""
        start_s, end_s = self._number_of(start, "start", where), self._number_of(end, "end", where)
        confidence = self._number_of(score, "score", where)
        if not -inf < confidence < inf:
            raise InputError(f"{self.path}: the score of {where} is {confidence}; it must be finite")
        if not (isinstance(label, str) and label in self._number):
            hint = did_you_mean(str(label), self.classes)
            raise InputError(
                f"{self.path}: {where} has label {label!r}, which is not among the {len(self.classes)} classes{hint}"
            )
        if not -inf < start_s < end_s < inf:
            self._dropped += 1
            self._first_dropped = self._first_dropped or f"{where}: [{start_s}, {end_s}]"
            return False
        self._rows.setdefault(video, []).append((start_s, end_s, confidence, self._number[label]))
        return True

    def instances(self, unit: Unit = "seconds") -> dict[str, Instances]:
        """What was gathered, with one warning for all that was not."""
        if self._dropped:
            warnings.warn(
                f"{self.path}: left out {self._dropped} segment(s) without start < end, "
                f"the first is {self._first_dropped}",
                DataWarning,
                stacklevel=3,
            )
        return {video: _as_instances(rows, unit) for video, rows in self._rows.items()}

    def _number_of(self, value: Any, what: str, where: str) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(f"{self.path}: the {what} of {where} is {value!r}, not a number") from None


def in_writing_order(
    predictions: Mapping[str, Instances], classes: Sequence[str]
) -> Iterator[tuple[str, list[tuple[str, float, float, float]]]]:
    """Each video with its rows (label, start, end, score): videos by name, the best instance first.

    >>> two = Instances([[4.0, 5.0], [1.0, 2.0]], scores=[0.25, 0.5])
    >>> list(in_writing_order({"b": Instances.empty(), "a": two}, ["Run"]))
    [('a', [('Run', 1.0, 2.0, 0.5), ('Run', 4.0, 5.0, 0.25)]), ('b', [])]
    """
    if len(set(classes)) != len(classes):
        raise InputError("class names must differ from each other")
    for video in sorted(predictions):
        if not video:
            raise InputError("a video needs a name, got ''")
        found = predictions[video].wanted_in("seconds", "files").sorted()
        if len(found) and int(found.class_ids.max()) >= len(classes):
            raise InputError(
                f"video {video} has an instance of class number {found.class_ids.max()}, "
                f"but there are {len(classes)} classes"
            )
        names = [classes[number] for number in found.class_ids.tolist()]
        yield (
            video,
            list(zip(names, found.starts.tolist(), found.ends.tolist(), found.scores.tolist(), strict=True)),
        )


def _as_instances(rows: list[tuple[float, float, float, int]], unit: Unit) -> Instances:
    if not rows:
        return Instances.empty(unit)
    starts, ends, scores, class_ids = zip(*rows, strict=True)
    return Instances(list(zip(starts, ends, strict=True)), scores, class_ids, unit=unit)
