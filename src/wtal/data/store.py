"""Store: a folder with every video's features in one memory-mapped array and a readable index beside it.

STORE/features.npy   all videos' snippets, one under the other: float32 or float16 (Σt, d)
STORE/index.json     classes, streams, time base, the extractor if it was ours, and one line per video
STORE/gt.json        the true instances where they are known (ActivityNet form); training never opens it
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32

from wtal.annotations import Annotations
from wtal.data.streams import by_stream
from wtal.data.video_record import VideoRecord
from wtal.errors import InputError, did_you_mean
from wtal.reading import map_npy, names_of, read_json_object, refusing
from wtal.timebase import TimeBase
from wtal.typed import as_path

STORE_FORMAT = "wtal-store"
STORE_VERSION = 1
TRUTH = "gt.json"


@dataclass(frozen=True, eq=False)
class Store:
    """An open store. Opening reads the index only; a video's features are a slice of the memory map."""

    path: Path
    index: Mapping[str, Any]
    classes: tuple[str, ...]
    records: Mapping[str, VideoRecord]
    rows: Mapping[str, slice]
    streams: Mapping[str, int]
    """The widths of the streams (rgb, flow) that a feature vector consists of, from left to right."""
    matrix: Float[np.ndarray, "n d"]
    part: str = ""
    """Which part of the training videos is held out, such as 1/4, in a fold; else empty."""
    has_truth: bool = False
    """Whether the true instances are known: as the store was opened, so that a store that goes away is missed."""

    @classmethod
    def open(cls, path: Path | str) -> "Store":
        """The store in folder `path`."""
        path = as_path(path, "data")
        index = _read_index(path / "index.json")
        with refusing(path / "index.json", "lacks or misspells", "; convert again"):
            return cls._from_index(path, index)

    @classmethod
    def _from_index(cls, path: Path, index: dict[str, Any]) -> "Store":
        default = TimeBase(**index["timebase"])
        records: dict[str, VideoRecord] = {}
        rows, start = {}, 0
        for name, video in zip(names_of([v["name"] for v in index["videos"]], "videos"), index["videos"], strict=True):
            snippets = video["snippets"]
            _refuse_wrong_video(name, video, known=records)
            records[name] = VideoRecord(
                name,
                video["split"],
                tuple(video["tags"]),
                video.get("duration_s"),
                TimeBase(**video["timebase"]) if "timebase" in video else default,
            )
            rows[name] = slice(start, start + snippets)
            start += snippets
        streams, dtype = index["features"]["streams"], index["features"]["dtype"]
        if dtype not in ("float32", "float16") or not all(
            type(width) is int and width > 0 for width in streams.values()
        ):
            raise InputError(f"features of {dtype} in the streams {streams}; convert again")
        matrix = _map_features(path / "features.npy", (start, sum(streams.values())), dtype)
        classes, known = tuple(names_of(index["classes"], "classes")), (path / TRUTH).exists()
        return cls(path, index, classes, records, rows, streams, matrix, has_truth=known)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def extraction(self) -> Mapping[str, Any] | None:
        """What the features were made with, as wtal.video.extractor.Extraction writes it; None if by others."""
        return self.index.get("extraction")

    @property
    def clock(self) -> TimeBase:
        """How snippets lie on the clock of every video that does not say otherwise."""
        return TimeBase(**self.index["timebase"])

    @property
    def dimensions(self) -> int:
        """Length of one snippet's feature vector, all streams together."""
        return int(self.matrix.shape[1])

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
        features = self.matrix[self.rows[self._known(name)]]
        if stream is None:
            return features
        if stream not in self.streams:
            raise InputError(f"{self.path} has no stream {stream}; it has {', '.join(self.streams)}")
        return by_stream(features, self.streams)[stream]

    def length(self, name: str) -> int:
        """Number of snippets of a video."""
        rows = self.rows[self._known(name)]
        return int(rows.stop - rows.start)

    def timebase(self, name: str) -> TimeBase:
        """How a video's snippets lie on its clock."""
        return self.records[self._known(name)].timebase

    def duration_s(self, name: str) -> float:
        """Seconds a video lasts: as annotated, or as long as its snippets where that is not known."""
        record = self.records[self._known(name)]
        return record.duration_s or self.length(name) * record.timebase.snippet_s

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
        records = {name: replace(record, split=splits[name]) for name, record in self.records.items()}
        videos = [{**video, "split": splits[video["name"]]} for video in self.index["videos"]]
        return replace(self, records=records, index={**self.index, "videos": videos}, part=f"{number}/{of}")

    @cached_property
    def fingerprint(self) -> str:
        """What two stores share only if they would train the same: features, lengths, splits, tags and classes."""
        content = {key: value for key, value in self.index.items() if key != "source"}
        text = json.dumps(content, sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def truth(self) -> Annotations:
        """The true instances, for evaluation and diagnosis only; their labels are the store's class numbers."""
        from wtal.data.truth import read_truth

        truth = read_truth(self.path / TRUTH, self.classes)
        videos = {  # a fold has its own splits
            name: replace(video, split=self.records[name].split) if name in self.records else video
            for name, video in truth.videos.items()
        }
        return replace(truth, videos=videos)

    def _known(self, name: str) -> str:
        if name not in self.rows:
            raise InputError(f"{self.path} has no video {name}{did_you_mean(name, self.rows)}")
        return name


def is_store(path: Path) -> bool:
    """Whether a folder looks like a store."""
    return (path / "index.json").is_file() and (path / "features.npy").exists()


def _read_index(path: Path) -> dict[str, Any]:
    index = read_json_object(path)
    if index is None:
        raise InputError(f"{path.parent} is not a store (no index.json): make one with wtal data convert")
    if index.get("format") != STORE_FORMAT:
        raise InputError(f"{path} is not the index of a store; make one with wtal data convert")
    if index.get("version") != STORE_VERSION:
        raise InputError(f"{path} has version {index.get('version')}, this wtal reads {STORE_VERSION}; convert again")
    return index


def _map_features(path: Path, shape: tuple[int, int], dtype: str) -> Float[np.ndarray, "n d"]:
    with refusing(path, "is missing, cut off or damaged", "; convert again"):
        matrix = map_npy(path)
    if matrix.shape != shape or matrix.dtype != np.dtype(dtype):
        raise InputError(f"{path} holds {matrix.dtype} {matrix.shape}, its index says {dtype} {shape}; convert again")
    return matrix


def _refuse_wrong_video(name: str, video: Mapping[str, Any], *, known: Collection[str]) -> None:
    snippets, duration_s, tags = video["snippets"], video.get("duration_s"), video["tags"]
    if name in known:
        raise InputError(f"video {name} stands twice; convert again")
    if type(snippets) is not int or snippets < 0:
        raise InputError(f"video {name} has {snippets!r} snippets; convert again")
    if duration_s is not None and not 0 < duration_s < inf:
        raise InputError(f"video {name} lasts {duration_s!r} seconds; convert again")
    if not isinstance(video["split"], str) or not isinstance(tags, list):
        raise InputError(f"video {name} has the split {video['split']!r} and the tags {tags!r}; convert again")
    names_of(tags, f"the tags of video {name}")
