"""Arrays from .npy files that somebody else wrote: read without running code, complained about by file name."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from wtal.errors import InputError


def read_array(path: Path) -> Shaped[np.ndarray, "..."]:
    """The array of a .npy file; a file that is cut off, pickled or something else is refused by name."""
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
            beyond = file.read(1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError, MemoryError) as error:
        if "Object arrays" in str(error):
            raise InputError(
                f"{path} holds pickled Python objects, wanted a plain array of numbers; "
                f"if this is the W-TALC layout, convert it with --layout wtalc"
            ) from error
        raise InputError(
            f"{path} is cut off or is not a .npy file ({path.stat().st_size} bytes; {error}); "
            f"download or extract it again"
        ) from error
    if beyond:
        raise InputError(f"{path} has bytes after the end of its array; download or extract it again")
    return np.asarray(array)


def as_features(array: Any, where: str) -> Float[np.ndarray, "t d"]:
    """`array` if it is a (snippets, dimensions) array of floats; otherwise an error that names `where`."""
    if not isinstance(array, np.ndarray) or array.ndim != 2 or not np.issubdtype(array.dtype, np.floating):
        got = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise InputError(f"{where}: features must be floats of shape (snippets, dimensions), got {got}")
    return array


def read_features(path: Path) -> Float[np.ndarray, "t d"]:
    """The (snippets, dimensions) features in a .npy file."""
    return as_features(read_array(path), str(path))
