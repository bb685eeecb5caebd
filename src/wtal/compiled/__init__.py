"""The loops that are compiled: each was measured as the hot one of its caller (see benchmarks/).

Numba is imported here and nowhere else, and these modules only where a loop runs, so that all else comes up quickly.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
