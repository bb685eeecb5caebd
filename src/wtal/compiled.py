"""The decorator for loops that are compiled, each because a benchmark showed it to be the hot one of its caller.

Numba is imported here and nowhere else.
"""

from collections.abc import Callable
from inspect import unwrap
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """The same function as machine code, kept on disk from one process to the next."""
    made: Any = njit(cache=True)(unwrap(loop))  # the type checker of our tests wraps functions, which numba refuses
    return made
