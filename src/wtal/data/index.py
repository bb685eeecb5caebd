"""The index of a store: an SQLite file with one row per video, which is opened in no time and never changed in place.

A writer makes a new file and renames it over the old one. Whoever has the old one open goes on reading that, so that
readers need no locks, on network drives either, and always see the data set as it was when they opened it.
"""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from wtal.data.video_record import VideoRecord
from wtal.errors import InputError
from wtal.files import partial_prefix
from wtal.reading import names_of, refusing
from wtal.timebase import TimeBase

INDEX = "index.sqlite"
FORMAT = "wtal-store"
VERSION = 2
_TABLES = """
CREATE TABLE head (json TEXT NOT NULL);
CREATE TABLE shards (number INTEGER PRIMARY KEY, snippets INTEGER NOT NULL);
CREATE TABLE videos (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, split TEXT NOT NULL, tags TEXT NOT NULL, duration_s REAL,
  timebase TEXT, snippets INTEGER NOT NULL, shard INTEGER NOT NULL, first INTEGER NOT NULL, digest TEXT, file TEXT
);
"""
#: of the table of videos
Rows = list[tuple[Any, ...]]
_COLUMNS = "name, split, tags, duration_s, timebase, snippets, shard, first, digest, file"


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index says of one video: the record, and where its features lie."""

    record: VideoRecord
    snippets: int
    shard: int
    first: int
    """The shard's row that is the video's first snippet."""
    digest: str | None = None
    """Of the features' bytes."""
    file: str | None = None
    """What identifies the video file that they are from, if that is known."""


class Index:
    """An open index. Threads may share it; after a fork it opens the same file again.

    Args:
        connect: Opens the database.
        path: The file that errors name.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self.connect, self.path = connect, path
        self._open()
        self.head: Mapping[str, Any] = self._read_head()
        with refusing(path, "is damaged", _MEND.format(path.parent)):
            #: of every video that does not say otherwise
            self.clock = TimeBase(**self.head["timebase"])
        #: how many snippets each shard holds, by its number
        self.shards: dict[int, int] = dict(self._rows("SELECT number, snippets FROM shards ORDER BY number"))
        if not all(type(n) is int and n >= 0 for pair in self.shards.items() for n in pair):
            raise InputError(f"{path} is damaged: shards {self.shards}{_MEND.format(path.parent)}")

    def _open(self) -> None:
        self._lock, self._process = threading.Lock(), os.getpid()
        self._tags: dict[str, tuple[str, ...]] = {}
        with refusing(self.path, "is not the index of a store", _MEND.format(self.path.parent)):
            self._database = self.connect()

    def __del__(self) -> None:
        if "_database" in self.__dict__:
            self._database.close()

    def __len__(self) -> int:
        return int(self._rows("SELECT count(*) FROM videos")[0][0])

    def __iter__(self) -> Iterator[Entry]:
        """All videos in order."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM videos ORDER BY number")
        with refusing(self.path, "is damaged", f"; see wtal data repair {self.path.parent}"):
            for row in rows:
                yield self._entry(row)

    def __getitem__(self, name: str) -> Entry:
        found = self._rows(f"SELECT {_COLUMNS} FROM videos WHERE name = ?", name)
        if not found:
            raise KeyError(name)
        with refusing(self.path, "is damaged", f"; see wtal data repair {self.path.parent}"):
            return self._entry(found[0])

    def damage(self) -> str:
        """What is wrong with the file itself, in SQLite's words; nothing if it is whole."""
        said = self._rows("PRAGMA integrity_check")[0][0]
        return "" if said == "ok" else str(said).splitlines()[0]

    def _rows(self, query: str, *values: Any) -> list[Any]:
        if self._process != os.getpid():  # SQLite's connections must not be carried over a fork
            self._open()
            self.refuse_other(self._read_head()["fingerprint"])
        with self._lock, refusing(self.path, "is damaged", _MEND.format(self.path.parent)):
            return self._database.execute(query, values).fetchall()

    def _read_head(self) -> dict[str, Any]:
        with refusing(self.path, "is damaged", _MEND.format(self.path.parent)):
            found = dict(self._database.execute("SELECT name, type FROM sqlite_master"))
            if any(found.get(name) != "table" for name in ("head", "shards", "videos")):
                raise InputError(f"{self.path} is not the index of a store; make one with wtal data convert")
            head = json.loads(self._database.execute("SELECT json FROM head").fetchone()[0])
            if head["version"] not in (1, VERSION):
                raise InputError(f"{self.path} has version {head['version']}, this wtal reads {VERSION}; convert again")
            return dict(head)

    def refuse_other(self, fingerprint: str) -> None:
        """Refuse to go on if this is not the index that had this fingerprint."""
        if fingerprint != self.head["fingerprint"]:
            raise InputError(f"{self.path.parent} has been changed since it was opened; start again")

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        name, split, tags, duration_s, clock, snippets, shard, first, digest, file = row
        known = self._tags.get(tags)
        if known is None:
            known = self._tags[tags] = tuple(names_of(json.loads(tags), f"the tags of video {name}"))
        if not (
            type(name) is type(split) is str
            and type(snippets) is type(shard) is type(first) is int
            and 0 <= first <= first + snippets <= self.shards.get(shard, 0)
            and (duration_s is None or 0 < duration_s < inf)
        ):
            raise InputError(f"video {name!r} of split {split!r} has {snippets!r} snippets, {duration_s!r} seconds")
        timebase = self.clock if clock is None else TimeBase(**json.loads(clock))
        return Entry(VideoRecord(name, split, known, duration_s, timebase), snippets, shard, first, digest, file)


_MEND = "; wtal data repair {} makes it again from the shards"


def open_index(path: Path) -> Index:
    """The index in this file; it stays readable when another takes its place."""
    return Index(partial(_connect, path), path)


def _connect(path: Path) -> sqlite3.Connection:
    # immutable: no locks are taken, since nobody changes the file in place
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    database = sqlite3.connect(uri, uri=True, check_same_thread=False)
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def fill(database: sqlite3.Connection, head: Mapping[str, Any], shards: Mapping[int, int], rows: Rows) -> None:
    """Write an index into an empty database."""
    database.executescript(_TABLES)
    with database:
        database.execute("INSERT INTO head VALUES (?)", (json.dumps(head, ensure_ascii=False),))
        database.executemany("INSERT INTO shards VALUES (?, ?)", shards.items())
        database.executemany(f"INSERT INTO videos ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def rows_of(entries: Iterable[Entry], default: TimeBase) -> Rows:
    """The rows of the table of videos; a video whose clock is the default one says nothing of it."""
    return [_row(entry, default) for entry in entries]


def _row(entry: Entry, default: TimeBase) -> tuple[Any, ...]:
    record = entry.record
    clock = None if record.timebase == default else json.dumps(asdict(record.timebase))
    tags = json.dumps(record.tags, ensure_ascii=False)
    place = (entry.snippets, entry.shard, entry.first, entry.digest, entry.file)
    return (record.name, record.split, tags, record.duration_s, clock, *place)


def write_index(path: Path, head: Mapping[str, Any], shards: Mapping[int, int], entries: Iterable[Entry]) -> None:
    """Write the index at `path`, over one that is there; the head gets the fingerprint of what it says."""
    rows = rows_of(entries, TimeBase(**head["timebase"]))
    head = {**head, "format": FORMAT, "version": VERSION, "fingerprint": fingerprint(head, rows)}
    beside = path.with_name(f"{partial_prefix(path)}new.partial")
    beside.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(beside)) as database:
            database.execute("PRAGMA journal_mode = OFF")  # nobody sees the file before it is whole
            database.execute("PRAGMA synchronous = OFF")
            fill(database, head, shards, rows)
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    except sqlite3.Error as error:
        raise InputError(f"cannot write {path}: {error}") from error
    finally:
        beside.unlink(missing_ok=True)


def fingerprint(head: Mapping[str, Any], rows: Rows) -> str:
    """What two stores share only if they would train the same: wherever their features lie."""
    said = {key: head.get(key) for key in ("classes", "dtype", "streams", "timebase", "extraction")}
    digest = hashlib.blake2b(json.dumps(said, sort_keys=True).encode(), digest_size=16)
    digest.update(json.dumps([(*row[:6], row[8]) for row in rows]).encode())
    return digest.hexdigest()
