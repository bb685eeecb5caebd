"""One HDF5 file: a dataset (snippets, dimensions) per video, or a group per video with `rgb` and `flow`."""

from pathlib import Path
from typing import Any

import numpy as np

from wtal.data.arrays import as_features
from wtal.data.feature_files import source_of_files
from wtal.data.source import Given, Source
from wtal.data.streams import ORDER
from wtal.data.tags import read_tagged
from wtal.errors import InputError, MissingExtraError
from wtal.reading import LIMIT_BYTES, names_of, refusing

_WRONG = "is cut off or is not an HDF5 file"


def looks_like(path: Path) -> bool:
    """Whether it is called an HDF5 file."""
    return path.suffix in (".h5", ".hdf5")


def read(path: Path, given: Given) -> Source:
    """The file at `path` with the tags of `given.tags` or `given.gt`."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError("h5py", "h5") from error
    if not (given.tags or given.gt):
        raise InputError("the layout h5 holds features only; say where the tags are with `tags=CSV` or `gt=JSON`")
    with refusing(path, _WRONG), h5py.File(path, "r") as file:
        names = names_of(list(file), str(path))
        found = {name: {stream: (name, stream) for stream in _streams(file[name])} for name in names}

    def read_dataset(at: tuple[str, str]) -> Any:
        name, stream = at
        with refusing(path, _WRONG), h5py.File(path, "r") as file:
            node = file[name]
            data = node[stream] if hasattr(node, "keys") else node
            if data.dtype.kind == "f" and data.nbytes > LIMIT_BYTES:  # a small file can say so: it need not be filled
                raise InputError(f"{name} would take {data.nbytes / 2**30:.1f} GiB")
            return as_features(np.asarray(data) if data.dtype.kind == "f" else data, name)

    wanted = "a dataset per video, or a group per video with rgb and flow"
    return source_of_files("h5", path, wanted, read_tagged(given, found), found, given, read=read_dataset)


def _streams(node: Any) -> list[str]:
    return [stream for stream in ORDER if stream in node] if hasattr(node, "keys") else ["features"]
