"""Feature files on disk, matched with the videos that a data set names."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from wtal.data.arrays import read_features
from wtal.data.findings import Finding, some
from wtal.data.record import VideoRecord
from wtal.data.source import Streams, halves
from wtal.errors import InputError

Files = dict[str, dict[str, Path]]
_SUFFIX = re.compile(r"[-_.](rgb|flow)$", re.IGNORECASE)
ORDER = ("rgb", "flow", "features")  # the streams' order side by side


def find_files(folder: Path) -> Files:
    """The .npy files under `folder` by video and stream.

    A stream is the folder `rgb` or `flow` that a file lies in, or its name's ending (`NAME_rgb.npy`); any other
    file holds all of a video's features.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder of features")
    found: Files = {}
    for path in sorted(folder.rglob("*.npy")):
        stem, stream = path.stem, "features"
        above = [part.lower() for part in path.relative_to(folder).parts[:-1]]
        inside = [part for part in above if part in ("rgb", "flow")]
        if inside:
            stream = inside[-1]
        elif match := _SUFFIX.search(stem):
            stem, stream = stem[: match.start()], match[1].lower()
        streams = found.setdefault(stem, {})
        if stream in streams:
            raise InputError(f"two files for the {stream} of video {stem}: {streams[stream]} and {path}")
        streams[stream] = path
    return found


def match_files(
    named: Mapping[str, VideoRecord], files: Files, *, prefix: str = ""
) -> tuple[tuple[VideoRecord, ...], Files, list[Finding]]:
    """The videos that have all their streams, their files, and what is missing or left over.

    A file may carry `prefix` before the video's name. The exact name goes first: there are ActivityNet videos
    whose own name starts with `v_`.
    """
    chosen: Files = {}
    findings: list[Finding] = []
    kinds = {frozenset(streams) for streams in files.values()}
    wanted = max(kinds, key=len) if kinds else frozenset()
    missing: dict[str, list[str]] = {}
    used = set()
    for name, record in named.items():
        key = next((key for key in (name, prefix + name) if key in files), None)
        if key is None:
            missing.setdefault(record.split, []).append(name)
            continue
        used.add(key)
        if absent := wanted - set(files[key]):
            what = f"no {' or '.join(sorted(absent))} file beside {' and '.join(sorted(files[key]))}"
            findings.append(Finding("error", name, what, "extract it again, or leave the video out with --skip-bad"))
            continue
        chosen[name] = files[key]
    for split, names in missing.items():
        total = sum(record.split == split for record in named.values())
        what = f"{len(names)} of {total} {split} videos have no features: {some(names)}"
        findings.append(Finding("warning", None, what, "they are left out"))
    if extra := sorted(set(files) - used):
        what = f"{len(extra)} feature files belong to no listed video: {some(extra)}"
        findings.append(Finding("note", None, what, "they are left out; give them a tag to use them"))
    return tuple(named[name] for name in chosen), chosen, findings


def file_loader(files: Files, *, joined: bool = False) -> Callable[[str], Streams]:
    """How to read a video's streams; `joined` files hold RGB and flow side by side and are taken apart."""

    def load(name: str) -> Streams:
        paths = files[name]
        if joined and list(paths) == ["features"]:
            return halves(read_features(paths["features"]))
        return {stream: read_features(paths[stream]) for stream in ORDER if stream in paths}

    return load


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not empty."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def the_one(candidates: Iterable[Path], wanted: str) -> Path:
    """The only file there is, or an error that says what was wanted."""
    found = sorted(candidates)
    if len(found) != 1:
        got = some([str(path) for path in found]) if found else "none"
        raise InputError(f"wanted {wanted}, found {got}")
    return found[0]
