"""Many video files, one after the other; each is kept when it is done, so that nothing is lost or done twice."""

import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from wtal.decide import Mark, marks
from wtal.engine import LOCAL, Engine
from wtal.errors import InputError
from wtal.extract import fingerprint
from wtal.files import written_whole
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.progress import Progress, silent
from wtal.propose import Cut, Proposer
from wtal.reading import from_json, read_text
from wtal.timebase import TimeBase
from wtal.typed import differences, parse, plain
from wtal.video.decode import probe
from wtal.video.extractor import Extractor
from wtal.video.pipeline import video_features
from wtal.video.snippets import Sampling


@dataclass(frozen=True, eq=False)
class Seen:
    """What was found in one video: the ranked list in seconds, and how the video's snippets lie on its clock."""

    instances: Instances
    clock: TimeBase
    n_snippets: int
    duration_s: float = np.inf

    def marks(self, instances: Instances, cut: Cut | None) -> list[tuple[Mark, ...]]:
        """What is odd about each of these instances of the video."""
        return marks(instances, self.clock, self.n_snippets, self.duration_s, cut)


def look(
    localizer: Localizer,
    files: Mapping[str, Path],
    opened: tuple[Extractor, Sampling],
    *,
    proposer: Proposer | None = None,
    journal: "Journal | None" = None,
    skip_bad: bool = False,
    engine: Engine = LOCAL,
    progress: Progress = silent,
) -> Iterator[tuple[str, "Seen | InputError"]]:
    """What is in each video file, as soon as it is known: first those that the journal has, then the others.

    Args:
        localizer: The trained model.
        files: The video files by name.
        opened: What turns them into features: `localizer.open_extractor()`.
        proposer: Settings that take the place of the model's own.
        journal: Where videos are kept that are done.
        skip_bad: Give the error in place of what is in a file that cannot be read, instead of raising it.
        engine: Where the work is done.
        progress: Hears how many seconds of video are done.
    """
    prints = {} if journal is None else {name: fingerprint(path) for name, path in files.items()}
    left_s: dict[str, float] = {}
    for name, path in files.items():
        if journal is not None and (done := journal.get(name, prints[name])) is not None:
            yield name, done
            continue
        try:
            left_s[name] = probe(path).duration_s or 0.0
        except InputError as error:
            yield name, left_out(error, skip_bad)
    before = accumulate(left_s.values(), initial=0.0)
    items = [(files[name], before_s) for name, before_s in zip(left_s, before, strict=False)]
    total_s = sum(left_s.values())
    heard = silent if engine.remote else progress
    task = partial(_seen, localizer=localizer, opened=opened, proposer=proposer, total_s=total_s, progress=heard)
    for (name, length_s), (_, before_s), seen in zip(left_s.items(), items, engine.stream(task, items), strict=True):
        if isinstance(seen, InputError):
            yield name, left_out(seen, skip_bad)
            continue
        if journal is not None:
            journal.add(name, prints[name], seen)
        if engine.remote:
            progress("extracting", before_s + length_s, total_s, {"video": name})
        yield name, seen


def _seen(
    items: Sequence[tuple[Path, float]],
    localizer: Localizer,
    opened: tuple[Extractor, Sampling],
    proposer: Proposer | None,
    total_s: float,
    progress: Progress,
) -> Generator[Seen | InputError, None, None]:
    """What is in each of these files, before which there are so many seconds of others."""
    for path, before_s in items:

        def heard(step: str, at_s: float, _: float, detail: Mapping[str, Any], /, before_s: float = before_s) -> None:
            progress(step, before_s + at_s, total_s, detail)

        try:
            made = video_features(path, *opened, progress=heard)
            ranked = localizer(made.array, made.timebase, duration_s=made.duration_s, proposer=proposer)
        except InputError as error:
            yield error
        else:
            clock = made.timebase.at(localizer.card.offset_snippets)
            yield Seen(ranked, clock, len(made.array), made.duration_s)


def left_out(error: InputError, skip_bad: bool) -> InputError:
    """The error of a file that cannot be read, if such files may be left out; otherwise it is raised."""
    if not skip_bad:
        raise InputError(f"{error} (what is done is kept; `skip_bad=True` leaves such files out)") from error
    return error


class Journal:
    """The videos that were done with the same settings, by name; what was done with others is dropped.

    A file of JSON lines: the settings, then a line for each video, on disk before the next video begins. It holds
    ranked lists, so that another decision needs no second look at the videos.

    Args:
        path: Where the journal lies; its folder may not be there yet.
        settings: All that decides what is found, as plain data.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        #: what differs from the settings of the journal that was there, in words
        self.changed: list[str] = []
        self._done: dict[str, tuple[str, Seen]] = {}
        header, *lines = self._read() or [None]
        known = header.get("settings") if isinstance(header, dict) else None
        if isinstance(known, dict):
            self.changed = differences(known, plain(settings))
        if isinstance(known, dict) and not self.changed:
            for line in lines:
                self._take(line)
        else:
            lines = []
        # written anew, without a line that was cut short
        with written_whole(path) as file:
            for line in ({"settings": plain(settings)}, *lines):
                file.write(json.dumps(line) + "\n")

    def get(self, name: str, file: str) -> Seen | None:
        """What was found in a video, if it is done and its file is still the same."""
        known, seen = self._done.get(name, ("", None))
        return seen if known == file else None

    def add(self, name: str, file: str, seen: Seen) -> None:
        """Keep what was found in a video; it is on disk when this returns."""
        found = seen.instances
        line = {
            "name": name,
            "file": file,
            "segments": found.segments.tolist(),
            "scores": found.scores.tolist(),
            "class_ids": found.class_ids.tolist(),
            "clock": plain(seen.clock),
            "n_snippets": seen.n_snippets,
            "duration_s": seen.duration_s,
        }
        try:
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}") from error
        self._done[name] = file, seen

    def _read(self) -> list[Any]:
        lines = []
        for text in read_text(self.path).splitlines() if self.path.exists() else ():
            try:
                lines.append(from_json(text, self.path))
            except InputError:  # the last line of a command that was killed
                break
        return lines

    def _take(self, line: Any) -> None:
        try:
            found = Instances(line["segments"], line["scores"], line["class_ids"])
            clock = parse(TimeBase, line["clock"])
            seen = Seen(found, clock, int(line["n_snippets"]), float(line["duration_s"]))
            self._done[str(line["name"])] = str(line["file"]), seen
        except (InputError, KeyError, TypeError, ValueError):
            raise InputError(f"{self.path} is damaged; remove it to look at all videos again") from None
