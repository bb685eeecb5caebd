"""Videos that are done, kept one by one, so that nothing of a long `wtal localize` is lost or done twice.

A file of JSON lines beside the output: the settings first, then a line for each video, on disk before the next begins.
It holds ranked lists, so that another decision needs no second look at the videos.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wtal.decide import Mark, marks
from wtal.errors import InputError
from wtal.files import written_whole
from wtal.instances import Instances
from wtal.propose import Cut
from wtal.reading import from_json, read_text
from wtal.timebase import TimeBase
from wtal.typed import differences, parse, plain


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


class Journal:
    """The videos that were done with the same settings, by name; what was done with others is dropped.

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
