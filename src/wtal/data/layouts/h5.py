"""One HDF5 file: a dataset (snippets, dimensions) per video, or a group per video with `rgb` and `flow`."""

from pathlib import Path
from typing import Any

import numpy as np

from wtal.data.arrays import as_features
from wtal.data.findings import Finding, some
from wtal.data.layouts import Given
from wtal.data.layouts.folder import read_tags
from wtal.data.listing import ORDER
from wtal.data.record import class_list
from wtal.data.source import Source, Streams, no_videos
from wtal.data.truth import read_with_findings
from wtal.errors import InputError, MissingExtraError


def read(path: Path, given: Given) -> Source:
    """The file at `path` with the tags of `given.tags` or `given.gt`."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError("h5py", "h5") from error
    if not (given.tags or given.gt):
        raise InputError("the layout h5 holds features only; say where the tags are with --tags CSV or --gt JSON")
    tagged = read_tags(path.parent, given)
    try:
        with h5py.File(path, "r") as file:
            there = {name for name in tagged if name in file}
            extra = sorted(set(file) - there)
    except OSError as error:
        raise InputError(f"{path} is cut off or is not an HDF5 file ({error})") from error
    if not there:
        raise no_videos("h5", path, ["a dataset per video, or a group per video with rgb and flow"])

    def load(name: str) -> Streams:
        with h5py.File(path, "r") as file:
            node = file[name]
            if hasattr(node, "keys"):
                return {stream: _array(node[stream], name) for stream in ORDER if stream in node}
            return {"features": _array(node, name)}

    findings = []
    if missing := sorted(set(tagged) - there):
        what = f"{len(missing)} of {len(tagged)} videos have no features: {some(missing)}"
        findings.append(Finding("warning", None, what, "they are left out"))
    if extra:
        what = f"{len(extra)} feature sets belong to no listed video: {some(extra)}"
        findings.append(Finding("note", None, what, "they are left out; give them a tag to use them"))
    records = tuple(record for name, record in tagged.items() if name in there)
    truth, said = read_with_findings(given.gt) if given.gt else (None, [])
    return Source("h5", class_list(given.classes, tagged.values()), records, load, truth, (*findings, *said))


def _array(node: Any, name: str) -> Any:
    return as_features(np.asarray(node), name)
