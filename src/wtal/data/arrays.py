"""Arrays from .npy files that somebody else wrote: read without running code, complained about by file name."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError
from wtal.reading import read_npy

_AGAIN = "; download or extract it again, or say `layout='wtalc'` if it is of that layout"


def as_features(array: Any, where: str) -> Float[np.ndarray, "t d"]:
    """`array` if it is a (snippets, dimensions) array of floats; otherwise an error that names `where`."""
    if not isinstance(array, np.ndarray) or array.ndim != 2 or not np.issubdtype(array.dtype, np.floating):
        got = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise InputError(f"{where}: features must be floats of shape (snippets, dimensions), got {got}")
    return array


def read_features(path: Path) -> Float[np.ndarray, "t d"]:
    """The (snippets, dimensions) features in a .npy file."""
    return as_features(read_npy(path, then=_AGAIN), str(path))


#: no extractor gives values beyond this, and squares of what is far beyond it are no numbers in single precision
LARGEST = 1e6


def usable(features: Float[np.ndarray, "t d"]) -> bool:
    """Whether all values are numbers, and none so large that a model's sums would not be.

    >>> [usable(np.array([[1.0, value]], kind)) for value, kind in ((-2, "f2"), (1e30, "f4"), (np.nan, "f4"))]
    [True, False, False]
    """
    # the extremes of an array with a NaN are NaN
    return float(features.min(initial=0)) >= -LARGEST and float(features.max(initial=0)) <= LARGEST
