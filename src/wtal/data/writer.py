"""Writing a store: streamed video by video, and atomic; or more videos into one that is there, while others read it."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from wtal.data.arrays import LARGEST, usable
from wtal.data.index import INDEX, Entry, write_index
from wtal.data.shards import ShardWriter, shard_name
from wtal.data.store import Store, is_store
from wtal.data.video_record import VideoRecord
from wtal.errors import InputError
from wtal.files import clear_partial, partial_prefix
from wtal.locks import held
from wtal.timebase import TimeBase

Dtype = Literal["float32", "float16"]
_NOT_FINITE = f"NaN, above {LARGEST:g}, or above 65504 in float16; extract again, or leave the video out"


@dataclass(eq=False)
class StoreWriter:
    """Takes one video after another; memory stays at one video. Use it through `new_store` or `extend_store`."""

    folder: Path
    classes: tuple[str, ...]
    timebase: TimeBase
    layout: str
    dtype: np.dtype[Any]
    extraction: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)
    old: Store | None = None
    """The store as it is, if it is there already."""
    entries: dict[str, Entry] = field(default_factory=dict)
    shards: dict[int, int] = field(default_factory=dict)
    _shard: ShardWriter | None = None

    def add(
        self, record: VideoRecord, features: Float[np.ndarray, "t d"], streams: Mapping[str, int] | None = None
    ) -> None:
        """Append a video. `streams` names the columns, left to right; by default as before, at first one stream."""
        name, (t, d) = record.name, features.shape
        widths = dict(streams) if streams is not None else self.streams or {"features": d}
        self.streams = self.streams or widths
        if widths != self.streams or sum(widths.values()) != d:
            raise InputError(f"{name}: has {d} dimensions {widths}, the videos before it {self.streams}")
        self._refuse_wrong(record)
        if t == 0:
            raise InputError(f"{name}: has no snippets; extract its features again or leave it out")
        with np.errstate(over="ignore"):  # what overflows float16 is found by the next line
            block = np.ascontiguousarray(features, dtype=self.dtype)
        if not usable(block):
            raise InputError(f"{name}: features are not finite, or too large, as {self.dtype}; {_NOT_FINITE}")
        if not block.any():
            raise InputError(f"{name}: features are zero everywhere; extract them again or leave the video out")
        if self._shard is not None and self._shard.full:
            self._end_shard()
        if self._shard is None:
            number = max(self.shards, default=-1) + 1
            self._shard = ShardWriter(self.folder / shard_name(number), number, self.dtype, d, self._head())
        self.entries[name] = self._shard.add(record, block, self.files.get(name))

    def keep(self, record: VideoRecord) -> None:
        """Take over a video whose features are in the store already, under what the record says now."""
        if self.old is None:
            raise InputError(f"{record.name}: a new store has nothing to keep")
        self._refuse_wrong(record)
        entry = self.old.entry(record.name)
        self.entries[record.name] = replace(entry, record=record, file=self.files.get(record.name, entry.file))

    def _refuse_wrong(self, record: VideoRecord) -> None:
        if record.name in self.entries:
            raise InputError(f"{record.name}: the data set names this video twice")
        if unknown := [tag for tag in record.tags if tag not in self.classes]:
            raise InputError(f"{record.name}: tag {unknown[0]} is not in the class list {list(self.classes)}")

    def _head(self) -> dict[str, Any]:
        return {
            "layout": self.layout,
            "classes": list(self.classes),
            "dtype": self.dtype.name,
            "streams": self.streams,
            "timebase": asdict(self.timebase),
            "extraction": self.extraction,
        }

    def _end_shard(self) -> None:
        if self._shard is not None:
            self._shard.close()
            self.shards[self._shard.number] = self._shard.n_snippets
            self._shard = None

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        """Let the videos be seen: the last shard, then the index; or remove what was written."""
        try:
            if failed is None and not self.entries:
                raise InputError("a store needs at least one video")
            if failed is None:
                self._end_shard()
                write_index(self.folder / INDEX, self._head(), self.shards, self.entries.values())
                return
        except BaseException:
            self._drop()
            raise
        self._drop()

    def _drop(self) -> None:
        if self._shard is not None:
            self._shard.drop()
        for number in self.shards.keys() - (self.old.index.shards.keys() if self.old is not None else set()):
            path = self.folder / shard_name(number)
            path.unlink(missing_ok=True)
            path.with_suffix(".jsonl").unlink(missing_ok=True)


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
    kind, clock = np.dtype(dtype).newbyteorder("<"), timebase or TimeBase()
    with (
        writing(path),
        _appearing(path, overwrite=overwrite) as beside,
        StoreWriter(beside, classes, clock, layout, kind, extraction, files or {}) as writer,
    ):
        yield writer


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
    if path.exists() and not (is_store(path) or (path.is_dir() and not any(path.iterdir()))):
        raise InputError(f"{path} is not a store, so it is not overwritten; choose another place")
    beside = None
    try:
        clear_partial(path)
        beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=partial_prefix(path), suffix=".partial"))
        yield beside
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o777 & ~umask)  # mkdtemp makes folders private; give ours what mkdir would have given
        _move_into_place(beside, path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def extend_store(
    path: Path,
    *,
    anew: bool = False,
    classes: tuple[str, ...] | None = None,
    files: Mapping[str, str] | None = None,
) -> Iterator[StoreWriter]:
    """A writer that adds videos to the store at `path`; they are seen, all at once, if the block ends without an error.

    Who has the store open goes on reading it as it was. Features are never copied: what is added lies in shards of its
    own, so add many videos at a time.

    Args:
        path: A store of this form.
        anew: Start with no video: those of before stay only as far as `keep` takes them over, in that order.
        classes: The class names, if they are to be others.
        files: What identifies the video files that the features come from.
    """
    with writing(path):
        old = Store.open(path)
        head = old.index.head
        if not old.extensible:
            raise InputError(f"{path} is of the first form (index.json): nothing can be added to it; convert it again")
        kind = np.dtype(old.dtype).newbyteorder("<")
        about = (classes or old.classes, old.clock, head["layout"], kind, old.extraction, files or {})
        there = {} if anew else dict(old.entries)
        try:
            clear_partial(path / INDEX)
            with StoreWriter(path, *about, dict(old.streams), old, there, dict(old.index.shards)) as writer:
                yield writer
        except OSError as error:
            raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> InputError:
    full = error.errno == errno.ENOSPC
    return InputError(f"cannot write {path}: {'the disk is full' if full else error.strerror or error}")


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
