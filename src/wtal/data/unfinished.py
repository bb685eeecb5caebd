"""Features under way: each video's rows are appended to a file of its own as they come, so that a kill loses nothing.

FOLDER/what.json     what makes the features; another extractor's work is not gone on with
FOLDER/NAME.rows     a video's vectors so far: float32, row after row
FOLDER/NAME.json     which video file they are from, their streams, and the duration once the video is through
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from wtal.data.streams import Streams, by_stream
from wtal.errors import InputError
from wtal.files import written_whole
from wtal.reading import read_json_object, refusing
from wtal.typed import parse


@dataclass(frozen=True)
class UnfinishedVideo:
    """One video's progress; `duration_s` is None until it is through."""

    file: str
    streams: dict[str, int]
    duration_s: float | None = None


@dataclass(frozen=True)
class UnfinishedFeatures:
    """A folder of features under way. Use it through `open_unfinished`."""

    folder: Path

    def video(self, name: str, file: str) -> UnfinishedVideo | None:
        """What is there of a video, if it is of that very file."""
        video = self._read(name)
        return video if video is not None and video.file == file else None

    def resume(self, name: str, file: str, batch: int) -> int:
        """The number of snippets that are there already: whole batches, since what is behind may be half written."""
        rows = self.folder / f"{name}.rows"
        video = self.video(name, file)
        if video is None or not rows.exists():
            rows.unlink(missing_ok=True)
            return 0
        row_bytes = 4 * sum(video.streams.values())
        done = rows.stat().st_size // (row_bytes * batch) * batch
        os.truncate(rows, done * row_bytes)
        return done

    def append(self, name: str, file: str, vectors: Float32[np.ndarray, "n d"], streams: Mapping[str, int]) -> None:
        """Add the next snippets of a video; they are on disk when this returns."""
        known = self.video(name, file)
        if known is not None and known.streams != dict(streams):
            raise InputError(f"{name}: has {dict(streams)} dimensions, but {known.streams} before the interruption")
        try:
            if known is None:
                self._write(name, UnfinishedVideo(file, dict(streams)))
            with (self.folder / f"{name}.rows").open("ab") as rows:
                rows.write(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
                rows.flush()
                os.fsync(rows.fileno())
        except OSError as error:
            raise InputError(f"cannot write {self.folder}: {error.strerror}; make room and run again") from error

    def finish(self, name: str, file: str, duration_s: float) -> None:
        """A video is through."""
        video = self.video(name, file)
        if video is None:
            raise InputError(f"{name}: {self.folder} was changed by somebody else meanwhile; run again")
        self._write(name, UnfinishedVideo(video.file, video.streams, duration_s))

    def load(self, name: str) -> Streams:
        """A finished video's features by stream."""
        video = self._read(name)
        if video is None:
            raise InputError(f"{self.folder} has nothing of {name}; run again")
        rows = self.folder / f"{name}.rows"
        with refusing(rows):
            array = np.fromfile(rows, dtype="<f4").reshape(-1, sum(video.streams.values()))
            return by_stream(array, video.streams)

    def _read(self, name: str) -> UnfinishedVideo | None:
        path = self.folder / f"{name}.json"
        known = read_json_object(path)
        if known is None:
            return None
        with refusing(path):
            video = parse(UnfinishedVideo, known)
            if not video.streams or min(video.streams.values()) < 1:
                raise InputError(f"streams of {video.streams} dimensions")
            return video

    def _write(self, name: str, video: UnfinishedVideo) -> None:
        with written_whole(self.folder / f"{name}.json") as file:
            json.dump(asdict(video), file)


def open_unfinished(folder: Path, what: Mapping[str, Any], *, anew: bool = False) -> UnfinishedFeatures:
    """The work in `folder`, begun or gone on with; another extractor's is refused, or dropped if `anew`.

    Who calls this holds the store that the features are for (`wtal.locks`).
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error
    known = read_json_object(folder / "what.json")
    if known is not None and known != dict(what):
        if not anew:
            raise InputError(
                f"{folder} holds unfinished work of another extractor or other settings ({known}); finish that "
                "with the options of before, or drop it with `overwrite=True`"
            )
        for old in (*folder.glob("*.rows"), *folder.glob("*.json")):
            old.unlink()
    with written_whole(folder / "what.json") as file:
        json.dump(dict(what), file, indent=1)
    return UnfinishedFeatures(folder)
