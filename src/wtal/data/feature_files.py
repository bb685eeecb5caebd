"""Feature files on disk, matched with the videos that a data set names."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from wtal.data.arrays import read_features
from wtal.data.findings import Finding
from wtal.data.source import Given, Source
from wtal.data.streams import ORDER, Streams, halves
from wtal.data.tags import Tagged
from wtal.data.video_record import VideoRecord, class_list
from wtal.errors import InputError, some
from wtal.reading import read_text

_T = TypeVar("_T")
_SUFFIX = re.compile(r"[-_.](rgb|flow)$", re.IGNORECASE)


def find_files(folder: Path) -> dict[str, dict[str, Path]]:
    """The .npy files under `folder` by video and stream.

    A stream is the folder `rgb` or `flow` that a file lies in, or its name's ending (`NAME_rgb.npy`); any other
    file holds all of a video's features.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder of features")
    found: dict[str, dict[str, Path]] = {}
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


def source_of_files(
    layout: str,
    path: Path,
    wanted: str,
    tagged: Tagged,
    files: Mapping[str, Mapping[str, _T]],
    given: Given,
    *,
    prefix: str = "",
    joined: bool = False,
    read: Callable[[_T], Float[np.ndarray, "t d"]] = read_features,  # type: ignore[assignment]
) -> Source:
    """The tagged videos that have all their streams; what is missing or left over is among the findings.

    Args:
        layout: Name of the layout.
        path: Where the data set is, for error texts.
        wanted: Which files the layout consists of, for error texts.
        tagged: The videos that the data set names.
        files: What features there are, by video and stream.
        given: What the user says.
        prefix: What a file may carry before the video's name. The exact name goes first: there are ActivityNet
            videos whose own name starts with `v_`.
        joined: Single files hold RGB and flow side by side, to be taken apart.
        read: The array of one entry of `files`.
    """
    key = {name: name if name in files else prefix + name for name in tagged.videos}
    missing = [record for name, record in tagged.videos.items() if key[name] not in files]
    findings = [*tagged.findings, *_left_out(missing, sorted(set(files) - set(key.values())), tagged)]
    complete = max((set(streams) for streams in files.values()), key=len, default=set())
    records = []
    for name, record in tagged.videos.items():
        there = set(files.get(key[name], ()))
        if there == complete and there:
            records.append(record)
        elif there:
            what = f"no {' or '.join(sorted(complete - there))} file beside {' and '.join(sorted(there))}"
            findings.append(Finding("error", name, what, "extract it again, or leave it out with `skip_bad=True`"))
    if not records:
        raise InputError(f"no features found for layout {layout} in {path}; wanted {wanted}")

    def load(name: str) -> Streams:
        streams = {stream: read(files[key[name]][stream]) for stream in ORDER if stream in files[key[name]]}
        return halves(streams["features"]) if joined and list(streams) == ["features"] else streams

    classes = class_list(given.classes, tagged.videos.values())
    return Source(layout, classes, tuple(records), load, tagged.truth, tuple(findings))


def _left_out(missing: Sequence[VideoRecord], extra: Sequence[str], tagged: Tagged) -> Iterator[Finding]:
    totals = Counter(record.split for record in tagged.videos.values())
    for split in dict.fromkeys(record.split for record in missing):
        names = [record.name for record in missing if record.split == split]
        what = f"{len(names)} of {totals[split]} {split} videos have no features: {some(names)}"
        yield Finding("warning", None, what, "they are left out")
    if extra:
        what = f"{len(extra)} feature files belong to no listed video: {some(extra)}"
        yield Finding("note", None, what, "they are left out; give them a tag to use them")


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not empty."""
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def the_one(candidates: Iterable[Path], wanted: str) -> Path:
    """The only file there is, or an error that says what was wanted."""
    found = sorted(candidates)
    if len(found) != 1:
        got = some([str(path) for path in found]) if found else "none"
        raise InputError(f"wanted {wanted}, found {got}")
    return found[0]
