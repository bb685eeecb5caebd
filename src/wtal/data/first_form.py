"""Stores of the first form, which are read but not written any more: index.json and one features.npy."""

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from wtal.data.index import FORMAT, Entry, Index, fill, rows_of
from wtal.data.video_record import VideoRecord
from wtal.errors import InputError
from wtal.reading import names_of, read_json_object, refusing
from wtal.timebase import TimeBase

FEATURES = "features.npy"


def open_first_form(path: Path) -> Index:
    """What index.json says, as an index in memory."""
    return Index(partial(_load, path), path)


def _load(path: Path) -> sqlite3.Connection:
    index = read_json_object(path)
    if index is None or index.get("format") != FORMAT:
        raise InputError(f"{path} is not the index of a store; make one with wtal data convert")
    if index.get("version") != 1:
        raise InputError(f"{path} has version {index.get('version')}, this wtal reads 1; convert again")
    with refusing(path, "lacks or misspells", "; convert again"):
        return _filled(index)


def _filled(index: dict[str, Any]) -> sqlite3.Connection:
    clock, start, entries = TimeBase(**index["timebase"]), 0, []
    files = index["source"].get("files", {})
    for video in index["videos"]:
        name, snippets, split, tags = video["name"], video["snippets"], video["split"], video["tags"]
        if type(snippets) is not int or not isinstance(split, str) or not isinstance(tags, list):
            raise InputError(f"video {name} has the split {split!r}, {snippets!r} snippets and the tags {tags!r}")
        own = TimeBase(**video["timebase"]) if "timebase" in video else clock
        names_of([name, *tags], "videos")
        record = VideoRecord(name, split, tuple(tags), video.get("duration_s"), own)
        entries.append(Entry(record, snippets, 0, start, None, files.get(name)))
        start += snippets
    head = {
        "version": 1,
        "layout": index["source"]["layout"],
        "classes": index["classes"],
        "dtype": index["features"]["dtype"],
        "streams": index["features"]["streams"],
        "digest": index["features"]["digest"],
        "timebase": index["timebase"],
        "extraction": index.get("extraction"),
        "fingerprint": fingerprint(index),
        "first_form": index,
    }
    database = sqlite3.connect(":memory:", check_same_thread=False)
    fill(database, head, {0: start}, rows_of(entries, clock))
    return database


def fingerprint(index: Mapping[str, Any], splits: Mapping[str, str] | None = None) -> str:
    """As it was computed then, so that runs know their data sets again; `splits` are those of a fold."""
    content = {key: value for key, value in index.items() if key != "source"}
    if splits is not None:
        content["videos"] = [{**video, "split": splits[video["name"]]} for video in index["videos"]]
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
