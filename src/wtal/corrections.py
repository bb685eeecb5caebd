"""Corrections: what a person says happens when in a video, in a file of its own.

FILE                 ActivityNet annotations of the corrected videos alone, each with its revision, whether it is done,
                     and what every segment comes from
FILE.history.jsonl   every save, one line each

A save names the revision that it changes. Saves of several servers wait for each other (a lock on the history), so
none is lost: the later one is told that it is stale.
"""

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import IO, Any, Literal, TypeGuard, get_args

from wtal.errors import InputError, did_you_mean
from wtal.files import written_whole
from wtal.reading import names_of, printable, read_json_object, refusing

VERSION = "wtal corrections 1"
Origin = Literal["accepted", "moved", "relabelled", "added"]


class StaleError(InputError):
    """Somebody else has saved since the revision that was to be changed."""


@dataclass(frozen=True)
class Segment:
    """One action: seconds, class name, and whether it was found so, was changed, or is a person's own."""

    start: float
    end: float
    label: str
    origin: Origin = "added"


@dataclass(frozen=True)
class Correction:
    """What was saved of one video; `done` says that nothing is missing, so that it may be learned from."""

    revision: int
    segments: tuple[Segment, ...]
    done: bool
    split: str = ""
    duration_s: float | None = None


class Corrections:
    """The corrections in a file, as they are there now: another process may save to it too.

    Args:
        path: The file; it need not be there yet. One that is no file of corrections is refused.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: tuple[tuple[int, ...], dict[str, Correction]] = (), {}  # in one, since threads share it
        self.videos()

    @property
    def history(self) -> Path:
        """Where every save is kept."""
        return self.path.with_name(f"{self.path.name}.history.jsonl")

    def videos(self) -> Mapping[str, Correction]:
        """What is saved of each video, by name."""
        try:
            about = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        seen, videos = self._kept
        now = (about.st_ino, about.st_size, about.st_mtime_ns)
        if seen != now:
            videos = _read(self.path)
            self._kept = now, videos
        return videos

    def save(self, name: str, correction: Correction) -> int:
        """Replace what is saved of a video; the new revision, or StaleError if `correction.revision` is not the newest.

        Args:
            name: The video.
            correction: What it is to be, with the revision that it was made from; 0: none was saved yet.
        """
        with self._locked() as history:
            videos = _read(self.path) if self.path.exists() else {}  # afresh: a file's time is too coarse to rely on
            newest = videos[name].revision if name in videos else 0
            if correction.revision != newest:
                raise StaleError(
                    f"{name} was saved by somebody else meanwhile: revision {newest} is the newest, "
                    f"this one changes {correction.revision}; load it again"
                )
            saved = replace(correction, revision=newest + 1)
            line = {"saved": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "video": name, **asdict(saved)}
            _append(history, json.dumps(line, ensure_ascii=False))
            _write(self.path, videos | {name: saved})
            return saved.revision

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            history = self.history.open("a+b")
        except OSError as error:
            raise InputError(f"cannot write {self.history}: {error.strerror}") from error
        with history:
            try:
                import fcntl
            except ImportError:  # not on Windows, where nothing then keeps two servers apart
                pass
            else:
                fcntl.flock(history.fileno(), fcntl.LOCK_EX)
            yield history


def segments_of(given: Any, classes: Collection[str], duration_s: float) -> tuple[Segment, ...]:
    """The segments that somebody sends or a file holds, checked; in the order of time.

    >>> segments_of([{"start": 1, "end": 2.5, "label": "Run"}], ["Run"], 10.0)
    (Segment(start=1.0, end=2.5, label='Run', origin='added'),)
    """
    if not isinstance(given, list):
        raise InputError(f"segments must be a list, got {_short(given)}")
    found = []
    for number, one in enumerate(given):
        where = f"segment {number}"
        if not isinstance(one, dict):
            raise InputError(f"{where} must be an object, got {_short(one)}")
        start, end, label = one.get("start"), one.get("end"), one.get("label")
        origin = one.get("origin", "added")
        if not (_is_number(start) and _is_number(end) and 0 <= start < end <= duration_s + 1e-3 < inf):
            got = f"{_short(start)} and {_short(end)}"
            raise InputError(f"{where} must have 0 <= start < end <= {duration_s:g} s, got {got}")
        if not isinstance(label, str) or label not in classes:
            hint = did_you_mean(str(label), classes)
            raise InputError(f"{where} has the label {_short(label)}, which is not among the classes{hint}")
        if origin not in get_args(Origin):
            raise InputError(f"{where}: origin is one of {', '.join(get_args(Origin))}, got {_short(origin)}")
        found.append(Segment(float(start), float(end), label, origin))
    return tuple(sorted(found, key=lambda one: (one.start, one.end, one.label)))


def _read(path: Path) -> dict[str, Correction]:
    with refusing(path):
        content = read_json_object(path) or {}
        if content.get("version") != VERSION:
            raise InputError(
                f"{path} is not a file of corrections (its version is {_short(content.get('version'))}), and nothing "
                "else is written over: name another file"
            )
        return {name: _correction(name, one) for name, one in content["database"].items()}


def _correction(name: str, entry: dict[str, Any]) -> Correction:
    rows = [
        {"start": one["segment"][0], "end": one["segment"][1], "label": one["label"], "origin": one["origin"]}
        for one in entry["annotations"]
    ]
    revision, done, split, duration_s = entry["revision"], entry["done"], entry["subset"], entry.get("duration")
    if type(revision) is not int or revision < 1 or type(done) is not bool or not isinstance(split, str):
        raise InputError(f"video {name} has the revision {_short(revision)} and done {_short(done)}")
    if duration_s is not None and not (_is_number(duration_s) and 0 < duration_s < inf):
        raise InputError(f"video {name} lasts {_short(duration_s)} seconds")
    labels = names_of([one["label"] for one in rows], f"the labels of {name}")
    return Correction(revision, segments_of(rows, labels, duration_s or 1e9), done, split, duration_s)


def _write(path: Path, videos: Mapping[str, Correction]) -> None:
    database = {}
    for name, one in sorted(videos.items()):
        about: dict[str, Any] = {"subset": one.split}
        if one.duration_s is not None:
            about["duration"] = one.duration_s
        about |= {"revision": one.revision, "done": one.done}
        about["annotations"] = [
            {"label": part.label, "segment": [part.start, part.end], "origin": part.origin} for part in one.segments
        ]
        database[name] = about
    with written_whole(path) as file:
        json.dump({"version": VERSION, "database": database}, file, ensure_ascii=False, allow_nan=False, indent=1)
        file.write("\n")


def _append(history: IO[bytes], line: str) -> None:
    """One more line, on the disk when this returns; one that was cut off by a kill stays a line of its own."""
    history.seek(0, os.SEEK_END)
    if history.tell():
        history.seek(-1, os.SEEK_END)
        line = line if history.read(1) == b"\n" else f"\n{line}"
    try:
        history.write(f"{line}\n".encode())
        history.flush()
        os.fsync(history.fileno())
    except OSError as error:
        raise InputError(f"cannot write {history.name}: {error.strerror or error}") from error


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _short(value: Any) -> str:
    return printable(repr(value)[:60])
