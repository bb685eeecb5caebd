"""Writing a store: streamed video by video, and atomic."""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from jaxtyping import Float
from numpy.lib import format as npy

from wtal.data.arrays import LARGEST, usable
from wtal.data.store import STORE_FORMAT, STORE_VERSION
from wtal.data.video_record import VideoRecord
from wtal.errors import InputError
from wtal.files import clear_partial, partial_prefix
from wtal.locks import held
from wtal.timebase import TimeBase

Dtype = Literal["float32", "float16"]


@dataclass(eq=False)
class StoreWriter:
    """Takes one video after another; memory stays at one video. Use it through `new_store`."""

    folder: Path
    file: BinaryIO
    classes: tuple[str, ...]
    timebase: TimeBase
    layout: str
    dtype: np.dtype[Any]
    extraction: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)
    videos: dict[str, dict[str, Any]] = field(default_factory=dict)
    n_snippets: int = 0
    digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def add(
        self, record: VideoRecord, features: Float[np.ndarray, "t d"], streams: Mapping[str, int] | None = None
    ) -> None:
        """Append a video. `streams` names the columns, left to right; by default there is one stream."""
        name, (t, d) = record.name, features.shape
        widths = dict(streams) if streams is not None else {"features": d}
        if not self.streams:
            self.streams = widths
            self._header()
        if widths != self.streams or sum(widths.values()) != d:
            raise InputError(f"{name}: has {d} dimensions {widths}, the videos before it {self.streams}")
        if name in self.videos:
            raise InputError(f"{name}: the data set names this video twice")
        if t == 0:
            raise InputError(f"{name}: has no snippets; extract its features again or leave it out")
        if unknown := [tag for tag in record.tags if tag not in self.classes]:
            raise InputError(f"{name}: tag {unknown[0]} is not in the class list {list(self.classes)}")
        with np.errstate(over="ignore"):  # what overflows float16 is found by the next line
            block = np.ascontiguousarray(features, dtype=self.dtype)
        if not usable(block):
            raise InputError(f"{name}: features are not finite, or too large, as {self.dtype}; {_NOT_FINITE}")
        if not block.any():
            raise InputError(f"{name}: features are zero everywhere; extract them again or leave the video out")
        data = block.tobytes()
        self.file.write(data)
        self.digest.update(data)
        self.n_snippets += t
        self.videos[name] = _line(record, t, self.timebase)

    def _header(self) -> None:
        # numpy leaves room in the header for the first axis to grow, so the final count fits where 0 stood
        self.file.seek(0)
        shape = (self.n_snippets, sum(self.streams.values()))
        npy.write_array_header_1_0(
            self.file, {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        )

    def finish(self) -> None:
        """Write the final header and the index."""
        if not self.videos:
            raise InputError("a store needs at least one video")
        self._header()
        index = {
            "format": STORE_FORMAT,
            "version": STORE_VERSION,
            "source": {"layout": self.layout, **({"files": dict(self.files)} if self.files else {})},
            "classes": list(self.classes),
            "features": {
                "dtype": str(self.dtype),
                "snippets": self.n_snippets,
                "streams": self.streams,
                "digest": self.digest.hexdigest(),
            },
            "timebase": asdict(self.timebase),
            **({"extraction": dict(self.extraction)} if self.extraction else {}),
        }
        # one line per video, so that the index can be read and searched by eye
        head = json.dumps(index, indent=1, ensure_ascii=False).removesuffix("\n}")
        lines = ",\n  ".join(json.dumps(video, ensure_ascii=False) for video in self.videos.values())
        text = f'{head},\n "videos": [\n  {lines}\n ]\n}}\n'
        (self.folder / "index.json").write_text(text, encoding="utf-8")


_NOT_FINITE = f"NaN, above {LARGEST:g}, or above 65504 in float16; extract again, or leave the video out"


def _line(record: VideoRecord, t: int, default: TimeBase) -> dict[str, Any]:
    line: dict[str, Any] = {
        "name": record.name,
        "split": record.split,
        "snippets": t,
        "tags": list(record.tags),
    }
    if record.duration_s is not None:
        line["duration_s"] = record.duration_s
    if record.timebase != default:
        line["timebase"] = asdict(record.timebase)
    return line


@contextmanager
def new_store(
    path: Path,
    *,
    classes: tuple[str, ...],
    timebase: TimeBase | None = None,
    layout: str = "own",
    dtype: Dtype = "float32",
    overwrite: bool = False,
    extraction: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
) -> Iterator[StoreWriter]:
    """A writer whose store appears at `path` only if the block ends without an error.

    `extraction` and `files` say what made the features and from which video files, where that is known.

    >>> from wtal.data.store import Store
    >>> folder = Path(tempfile.mkdtemp())
    >>> with new_store(folder / "s", classes=("Run",)) as writer:
    ...     writer.add(VideoRecord("a", "train", ("Run",)), np.ones((3, 4), np.float32))
    >>> Store.open(folder / "s").features("a").shape
    (3, 4)
    """
    with (
        writing(path),
        _appearing(path, overwrite=overwrite) as beside,
        (beside / "features.npy").open("wb") as file,
    ):
        kind = np.dtype(dtype).newbyteorder("<")
        clock = timebase or TimeBase()
        writer = StoreWriter(beside, file, classes, clock, layout, kind, extraction, files or {})
        yield writer
        writer.finish()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the place of a store; one that a killed writer had moved aside to replace it is back."""
    with held(path, beside=True):
        aside = _aside(path)
        if aside.exists():
            if path.exists():
                shutil.rmtree(aside, ignore_errors=True)
            else:
                aside.rename(path)
        yield


@contextmanager
def _appearing(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """A new folder that takes the place of `path` if the block ends without an error."""
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another place or say `overwrite=True`")
    if path.exists() and not ((path / "index.json").exists() or (path.is_dir() and not any(path.iterdir()))):
        raise InputError(f"{path} is not a store, so it is not overwritten; choose another place")
    beside: Path | None = None
    try:
        clear_partial(path)
        beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=partial_prefix(path), suffix=".partial"))
        yield beside
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o777 & ~umask)  # mkdtemp makes folders private; give ours what mkdir would have given
        _move_into_place(beside, path)
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raise InputError(f"cannot write {path}: {'the disk is full' if full else error.strerror or error}") from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


def _move_into_place(beside: Path, path: Path) -> None:
    if not path.exists():
        beside.rename(path)
        return
    old = _aside(path)
    path.rename(old)
    beside.rename(path)
    shutil.rmtree(old)
