"""Shards: the features of a store's videos in .npy files of some hundred megabytes, each written once.

features-00000.npy     videos' snippets, concatenated: float32 or float16 (Σt, d)
features-00000.jsonl   what lies in it: a line about the store, then one per video; an index can be made from these
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float
from numpy.lib import format as npy

from wtal.data.index import Entry
from wtal.data.video_record import VideoRecord
from wtal.errors import InputError
from wtal.files import clear_partial, partial_prefix, written_whole
from wtal.reading import map_npy, refusing
from wtal.timebase import TimeBase

#: a shard is closed at this size: few files even for terabytes, and little to fetch for one video
SHARD_BYTES = 2**28
#: what numpy writes before the values
HEADER_BYTES = 128


def shard_name(number: int) -> str:
    """The file name of a shard."""
    return f"features-{number:05d}.npy"


def digest_of(features: Float[np.ndarray, "t d"]) -> str:
    """What tells these bytes from others."""
    return hashlib.blake2b(np.ascontiguousarray(features).data, digest_size=16).hexdigest()


def refuse_cut(path: Path, shape: tuple[int, int], dtype: str) -> None:
    """Refuse a shard that is gone or of another size than the index says, without reading it."""
    wanted = HEADER_BYTES + shape[0] * shape[1] * np.dtype(dtype).itemsize
    there = path.stat().st_size if path.exists() else 0
    if there != wanted:
        raise InputError(
            f"{path} is missing, cut off or damaged ({there} bytes, {wanted} wanted); "
            f"see wtal data repair {path.parent}, or convert again"
        )


def map_shard(path: Path, shape: tuple[int, int], dtype: str) -> Float[np.ndarray, "n d"]:
    """A shard mapped into memory, if it is what the index says."""
    with refusing(path, "is missing, cut off or damaged", f"; see wtal data repair {path.parent}, or convert again"):
        matrix = map_npy(path)
    if matrix.shape != shape or matrix.dtype != np.dtype(dtype):
        raise InputError(f"{path} holds {matrix.dtype} {matrix.shape}, its index says {dtype} {shape}; convert again")
    return matrix


@dataclass(eq=False)
class ShardWriter:
    """One shard that is being written; it appears when it is closed."""

    path: Path
    number: int
    dtype: np.dtype[Any]
    width: int
    head: Mapping[str, Any]
    entries: list[Entry] = field(default_factory=list)
    n_snippets: int = 0

    def __post_init__(self) -> None:
        self._beside = self.path.with_name(f"{partial_prefix(self.path)}new.partial")
        clear_partial(self.path)
        self._file: BinaryIO = self._beside.open("wb")
        self._header()

    @property
    def full(self) -> bool:
        """Whether the next video belongs into another shard."""
        return self.n_snippets * self.width * self.dtype.itemsize >= SHARD_BYTES

    def add(self, record: VideoRecord, features: Float[np.ndarray, "t d"], file: str | None) -> Entry:
        """Append a video's features, which are of the shard's type."""
        self._file.write(features.data)
        entry = Entry(record, len(features), self.number, self.n_snippets, digest_of(features), file)
        self.n_snippets += len(features)
        self.entries.append(entry)
        return entry

    def _header(self) -> None:
        # numpy leaves room in the header for the first axis to grow, so the final count fits where 0 stood
        self._file.seek(0)
        write_header(self._file, (self.n_snippets, self.width), self.dtype)

    def close(self) -> None:
        """Write what is missing, and let the shard appear."""
        self._header()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        with written_whole(self.path.with_suffix(".jsonl")) as file:
            for line in (self.head, *map(_line, self.entries)):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._beside.replace(self.path)

    def drop(self) -> None:
        """Leave nothing behind."""
        self._file.close()
        self._beside.unlink(missing_ok=True)


def write_header(file: BinaryIO, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    """The start of a .npy file."""
    npy.write_array_header_1_0(file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})


def _line(entry: Entry) -> dict[str, Any]:
    known = {key: value for key, value in asdict(entry).items() if value is not None and key != "record"}
    return {**asdict(entry.record), **known}


def entry_of(line: Mapping[str, Any]) -> Entry:
    """What a line beside a shard says of a video."""
    record = VideoRecord(
        line["name"], line["split"], tuple(line["tags"]), line["duration_s"], TimeBase(**line["timebase"])
    )
    return Entry(record, line["snippets"], line["shard"], line["first"], line["digest"], line.get("file"))
