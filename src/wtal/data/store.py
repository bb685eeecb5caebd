"""Store: a folder with the videos' features in memory-mapped shards, and an index beside them.

STORE/index.sqlite           classes, streams, time base, the extractor if it was ours, and one row per video
STORE/features-00000.npy …   shards of the features: float32 or float16 (wtal.data.shards)
STORE/features-00000.jsonl … what lies in each shard, from which a lost index is made again
STORE/gt.json                the true instances where they are known (ActivityNet form); training never opens it
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32

from wtal.annotations import Annotations
from wtal.data import first_form
from wtal.data.index import INDEX, Entry, Index, open_index
from wtal.data.remote import Remote, url_of
from wtal.data.shards import map_shard, refuse_cut, shard_name
from wtal.data.streams import by_stream
from wtal.data.video_record import VideoRecord
from wtal.errors import InputError, did_you_mean
from wtal.reading import names_of, refusing
from wtal.timebase import TimeBase
from wtal.typed import as_path

TRUTH = "gt.json"
FIRST_FORM = "index.json"
#: shards of a remote store that are mapped at a time
OPEN_SHARDS = 16


@dataclass(frozen=True, eq=False)
class Store:
    """An open store, as it was when it was opened: what others add meanwhile is seen by those who open it then.

    Opening reads a few pages of the index, whatever the number of videos; a video's features are a slice of a memory
    map. A store can be pickled: it is opened again where it is unpickled.
    """

    path: Path
    index: Index
    classes: tuple[str, ...]
    streams: Mapping[str, int]
    """The widths of the streams (rgb, flow) that a feature vector consists of, from left to right."""
    dtype: str
    """Of the features: float32 or float16."""
    fingerprint: str
    """What two stores share only if they would train the same: features, lengths, splits, tags and classes."""
    part: str = ""
    """Which part of the training videos is held out, such as 1/4, in a fold; else empty."""
    has_truth: bool = False
    """Whether the true instances are known: as the store was opened, so that a store that goes away is missed."""
    splits: Mapping[str, str] | None = None
    """The videos' splits in a fold, where they are not those of the index."""
    remote: Remote | None = None
    """Where it is, if that is a URL; files are fetched from there as they are needed."""
    _maps: dict[int, Float[np.ndarray, "n d"]] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, path: Path | str) -> "Store":
        """The store in folder `path`, or at a URL such as s3://bucket/store."""
        path = as_path(path, "data")
        url = url_of(path)
        if url is not None:
            return cls._fetched(path, Remote(url))
        if (path / INDEX).is_file():
            index = open_index(path / INDEX)
        elif (path / FIRST_FORM).is_file():
            index = first_form.open_first_form(path / FIRST_FORM)
        elif (path / shard_name(0)).exists():
            raise InputError(f"{path} has shards but no {INDEX}: wtal data repair {path} makes it again")
        else:
            raise InputError(f"{path} is not a store (no {INDEX}): make one with wtal data convert")
        with refusing(index.path, "lacks or misspells", "; convert again"):
            store = cls._of(path, index)
        for number in store.index.shards:
            refuse_cut(*store._shard(number))
        return store

    @classmethod
    def _of(cls, path: Path, index: Index) -> "Store":
        head = index.head
        classes, streams, dtype = names_of(head["classes"], "classes"), head["streams"], head["dtype"]
        if dtype not in ("float32", "float16") or not all(type(n) is int and n > 0 for n in streams.values()):
            raise InputError(f"features of {dtype} in the streams {streams}; convert again")
        known = (path / TRUTH).exists()
        return cls(path, index, tuple(classes), streams, dtype, str(head["fingerprint"]), has_truth=known)

    @classmethod
    def _fetched(cls, path: Path, remote: Remote) -> "Store":
        if not remote.exists(INDEX):
            raise InputError(f"{remote.url} is not a store (no {INDEX}); copy one there, of wtal data convert")
        index = open_index(remote.fetch(INDEX))
        with refusing(f"{remote.url}/{INDEX}", "lacks or misspells", "; convert again"):
            return replace(cls._of(path, index), remote=remote, has_truth=remote.exists(TRUTH))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.place, self.index.head["fingerprint"], self.part, self.splits, self.fingerprint)

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """All of the index, by name."""
        return {entry.record.name: entry for entry in self.index}

    @cached_property
    def records(self) -> Mapping[str, VideoRecord]:
        """What is known about each video besides its features and its true instances, by name."""
        if self.splits is None:
            return {name: entry.record for name, entry in self.entries.items()}
        return {name: replace(entry.record, split=self.splits[name]) for name, entry in self.entries.items()}

    def __len__(self) -> int:
        return len(self.index)

    @property
    def extraction(self) -> Mapping[str, Any] | None:
        """What the features were made with, as wtal.video.extractor.Extraction writes it; None if by others."""
        return self.index.head.get("extraction")

    @property
    def extensible(self) -> bool:
        """Whether videos can be added: not if it is of the first form."""
        return "first_form" not in self.index.head

    @property
    def clock(self) -> TimeBase:
        """How snippets lie on the clock of every video that does not say otherwise."""
        return self.index.clock

    @property
    def dimensions(self) -> int:
        """Length of one snippet's feature vector, all streams together."""
        return sum(self.streams.values())

    @property
    def place(self) -> str:
        """Where it can be opened again, from any folder."""
        return str(self.path.resolve()) if self.remote is None else self.remote.url

    def has_split(self, split: str) -> bool:
        """Whether there is a video of that split."""
        return any(record.split == split for record in self.records.values())

    def names(self, split: str | None = None) -> tuple[str, ...]:
        """The videos of a split ("train", "val", "test"), or all of them, in the order of the index."""
        chosen = tuple(n for n, record in self.records.items() if split in (None, record.split))
        if split is not None and not chosen:
            there = sorted({record.split for record in self.records.values()})
            raise InputError(f"{self.path} has no video of split {split}; it has {there}")
        return chosen

    def features(self, name: str, stream: str | None = None) -> Float[np.ndarray, "t _"]:
        """One video's features, or one stream of them, straight from the memory map (read-only)."""
        entry = self.entry(name)
        features = self._map(entry.shard)[entry.first : entry.first + entry.snippets]
        if stream is None:
            return features
        if stream not in self.streams:
            raise InputError(f"{self.path} has no stream {stream}; it has {', '.join(self.streams)}")
        return by_stream(features, self.streams)[stream]

    def length(self, name: str) -> int:
        """Number of snippets of a video."""
        return self.entry(name).snippets

    def timebase(self, name: str) -> TimeBase:
        """How a video's snippets lie on its clock."""
        return self.entry(name).record.timebase

    def duration_s(self, name: str) -> float:
        """Seconds a video lasts: as annotated, or as long as its snippets where that is not known."""
        entry = self.entry(name)
        return entry.record.duration_s or entry.snippets * entry.record.timebase.snippet_s

    def tags(self, split: str | None = None) -> Float32[np.ndarray, "n c"]:
        """The tags of the split's videos, 1 where a video carries the class: rows as `names`, columns as classes."""
        names = self.names(split)
        column = {tag: number for number, tag in enumerate(self.classes)}
        out = np.zeros((len(names), len(self.classes)), dtype=np.float32)
        for row, name in enumerate(names):
            for tag in self.records[name].tags:
                if tag not in column:
                    hint = did_you_mean(tag, self.classes)
                    raise InputError(f"{self.path}: tag {tag!r} of {name} is not in the class list{hint}")
                out[row, column[tag]] = 1
        return out

    def tag_ids(self) -> dict[str, list[int]]:
        """The class numbers that each video carries, by its name."""
        return {name: np.flatnonzero(row).tolist() for name, row in zip(self.names(), self.tags(), strict=True)}

    def fold(self, number: int, of: int, *, split: str = "train") -> "Store":
        """The same store with the split's videos divided anew: one of `of` parts, from 1 on, is there to test on.

        The parts take turns through each class's videos, so that every class is in all of them if it can be. What was
        the test split is set aside as "unused": settings are chosen without it.
        """
        if not 1 <= number <= of or of < 2:
            raise InputError(f"a fold is one of 2 or more parts, such as 1/4; got {number}/{of}")
        by_class = sorted(self.names(split), key=lambda name: self.records[name].tags)
        held_out = set(by_class[number - 1 :: of])
        if not held_out:
            raise InputError(f"{self.path} has {len(by_class)} videos of split {split}, too few for {of} parts")
        splits = dict.fromkeys(self.names(), "unused")
        splits |= {name: "test" if name in held_out else "train" for name in by_class}
        part = f"{number}/{of}"
        old = self.index.head.get("first_form")
        changed = hashlib.blake2b(f"{self.fingerprint} {part} {split}".encode(), digest_size=16).hexdigest()
        fingerprint = changed if old is None else first_form.fingerprint(old, splits)
        return replace(self, splits=splits, part=part, fingerprint=fingerprint)

    def truth(self) -> Annotations:
        """The true instances, for evaluation and diagnosis only; their labels are the store's class numbers."""
        from wtal.data.truth import read_truth

        truth = read_truth(self._file(TRUTH) if self.has_truth else self.path / TRUTH, self.classes)
        videos = {  # a fold has its own splits, and videos that were added meanwhile are no part of this
            name: replace(video, split=self.records[name].split)
            for name, video in truth.videos.items()
            if name in self.records
        }
        return replace(truth, videos=videos)

    def entry(self, name: str) -> Entry:
        """What the index says of a video; that one alone is looked up, unless all of it has been read already."""
        try:
            return self.entries[name] if "entries" in self.__dict__ else self.index[name]
        except KeyError:
            raise InputError(f"{self.path} has no video {name}{did_you_mean(name, self.records)}") from None

    def _map(self, number: int) -> Float[np.ndarray, "n d"]:
        if number not in self._maps:
            if self.remote is not None and len(self._maps) >= OPEN_SHARDS:
                self._maps.pop(next(iter(self._maps)))  # or the disk could not take back what made room
            self._maps[number] = map_shard(*self._shard(number))
        return self._maps[number]

    def _shard(self, number: int) -> tuple[Path, tuple[int, int], str]:
        """Where a shard lies, its shape and its type."""
        name = shard_name(number) if self.extensible else first_form.FEATURES
        return self._file(name), (self.index.shards[number], self.dimensions), self.dtype

    def _file(self, name: str) -> Path:
        return self.path / name if self.remote is None else self.remote.fetch(name)


def _again(place: str, index: str, part: str, splits: Mapping[str, str] | None, fingerprint: str) -> Store:
    """The same store in another process."""
    store = Store.open(place)
    store.index.refuse_other(index)
    return replace(store, part=part, splits=splits, fingerprint=fingerprint)


def is_store(path: Path) -> bool:
    """Whether a folder, or a URL, looks like a store."""
    if (url := url_of(path)) is not None:
        return Remote(url).exists(INDEX)
    try:
        return (path / INDEX).is_file() or ((path / FIRST_FORM).is_file() and (path / first_form.FEATURES).exists())
    except OSError:  # no path at all, such as one with a name that is too long
        return False
