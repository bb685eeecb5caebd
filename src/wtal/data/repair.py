"""Mending a store: what can be put right is, what is lost is listed, and the rest can be used again."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wtal.data.findings import Finding
from wtal.data.index import INDEX, Entry, Index, open_index, write_index
from wtal.data.shards import HEADER_BYTES, digest_of, entry_of, map_shard, shard_name, write_header
from wtal.data.store import FIRST_FORM
from wtal.data.writer import writing
from wtal.errors import InputError, some
from wtal.files import clear_partial
from wtal.progress import Progress, silent, tracked
from wtal.reading import read_text


def repair(path: Path, *, progress: Progress = silent) -> list[Finding]:
    """Mend the store at `path` and say what was wrong: notes say what is mended, errors which videos are lost.

    Every video's bytes are compared with their digest. A lost or damaged index is made again from the lines beside the
    shards; shards of an append that was killed before its end are taken in; what is cut off or damaged is left out;
    shards that no video needs any more are removed. Nobody else writes meanwhile: the store is held.
    """
    with writing(path):
        return _repair(path, progress)


def _repair(path: Path, progress: Progress) -> list[Finding]:
    if (path / FIRST_FORM).exists() and not (path / INDEX).exists():
        raise InputError(f"{path} is of the first form (index.json), which cannot be mended; convert again")
    beside = dict(_beside(path))
    if not beside:
        raise InputError(f"{path} is not a store: it has no shards ({shard_name(0)} and {_lines(path, 0).name})")
    clear_partial(path / INDEX)
    index, findings = _index(path)
    known = set() if index is None else set(index.shards)
    entries = {} if index is None else {entry.record.name: entry for entry in index}
    head = max(beside.items())[1][0] if index is None else dict(index.head)
    torn = [number for number in beside if number not in known]
    for number in torn:
        for entry in map(entry_of, beside[number][1:]):
            if index is None or entry.record.name not in entries:
                entries[entry.record.name] = entry
    if index is not None and torn:
        findings.append(_mended(f"{len(torn)} shards of an append that was never finished are taken in"))
    head["classes"] = _classes(head["classes"], entries.values())
    used = sorted({entry.shard for entry in entries.values()})
    shards, lost = _sound(path, head, used, findings), []
    for name, entry in list(tracked(entries.items(), "checking", progress)):
        if not _whole(path, entry, head, shards):
            lost.append(name)
            del entries[name]
    if lost:
        what = f"the features of {len(lost)} videos are lost: {some(lost)}"
        findings.append(Finding("error", None, what, "the rest can be used; extract or add those again"))
    if not entries:
        raise InputError(f"nothing of {path} can be saved; convert again")
    if findings or index is None or shards != index.shards:
        write_index(path / INDEX, head, shards, entries.values())
    _clear(path, {entry.shard for entry in entries.values()} if index is not None else set(shards), findings)
    return findings


def _mended(what: str) -> Finding:
    return Finding("note", None, what, "mended")


def _lines(path: Path, number: int) -> Path:
    return (path / shard_name(number)).with_suffix(".jsonl")


def _beside(path: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The lines beside each shard that is there, by its number."""
    for file in sorted(path.glob("features-*.jsonl")):
        number = file.stem.removeprefix("features-")
        if number.isdecimal() and file.with_suffix(".npy").exists():
            try:
                yield int(number), [json.loads(line) for line in read_text(file).splitlines()]
            except (ValueError, InputError):  # then what the index says is all that there is
                continue


def _index(path: Path) -> tuple[Index | None, list[Finding]]:
    """The index if it is usable, and what is said about it if not."""
    try:
        index = open_index(path / INDEX) if (path / INDEX).exists() else None
        if index is not None and not index.damage():
            list(index)
            return index, []
    except InputError:
        pass
    what = f"{INDEX} was lost or damaged and is made again from the lines beside the shards, tags as they were then"
    return None, [_mended(what)]


def _classes(classes: list[str], entries: Iterable[Entry]) -> list[str]:
    return [*classes, *sorted({tag for entry in entries for tag in entry.record.tags} - set(classes))]


def _sound(path: Path, head: dict[str, Any], numbers: Iterable[int], findings: list[Finding]) -> dict[int, int]:
    """How many whole snippets each shard has; one that was cut off gets a header that says so."""
    dtype, width, shards = np.dtype(head["dtype"]).newbyteorder("<"), sum(head["streams"].values()), {}
    for number in numbers:
        file = path / shard_name(number)
        if not file.exists():
            findings.append(Finding("error", None, f"{file.name} is gone", "its videos are lost"))
            continue
        shards[number] = rows = max(0, file.stat().st_size - HEADER_BYTES) // (width * dtype.itemsize)
        try:
            map_shard(file, (rows, width), head["dtype"])
        except InputError:
            findings.append(_mended(f"{file.name} was cut off or its header damaged: {rows} whole snippets are left"))
            os.truncate(file, HEADER_BYTES + rows * width * dtype.itemsize)
            with file.open("r+b") as opened:
                write_header(opened, (rows, width), dtype)
    return shards


def _whole(path: Path, entry: Entry, head: dict[str, Any], shards: dict[int, int]) -> bool:
    """Whether a video's features are those that were written."""
    rows, end = shards.get(entry.shard, 0), entry.first + entry.snippets
    if end > rows:
        return False
    shard = map_shard(path / shard_name(entry.shard), (rows, sum(head["streams"].values())), head["dtype"])
    return digest_of(shard[entry.first : end]) == entry.digest


def _clear(path: Path, used: set[int], findings: list[Finding]) -> None:
    """Remove shards that no video needs."""
    unused = [file for file in path.glob("features-*.npy") if file.name not in map(shard_name, used)]
    if unused:
        size = sum(file.stat().st_size for file in unused)
        findings.append(_mended(f"{len(unused)} shards that no video needs ({size / 1e6:,.1f} MB) are removed"))
    for file in unused:
        file.unlink()
        file.with_suffix(".jsonl").unlink(missing_ok=True)
