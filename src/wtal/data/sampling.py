"""Which snippets of a long video a batch of fixed-size samples takes.

The sampling models see 750 (WUM on THUMOS14) or 75 (ActivityNet) segments per video: at random in training, so
that every snippet is seen sooner or later, evenly in testing.
"""

import numpy as np
from jaxtyping import Float, Int


def perturbed(t: int, n_segments: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    """`n_segments` snippet indices in order, one drawn from each of as many equal parts of `t` snippets.

    A video with fewer snippets than segments repeats some.

    >>> perturbed(4, 4, np.random.default_rng(0)).tolist()
    [0, 1, 2, 3]
    """
    edges = np.arange(n_segments + 1) * t // n_segments
    return rng.integers(edges[:-1], np.maximum(edges[1:], edges[:-1] + 1))


def even(t: int, n_segments: int) -> Int[np.ndarray, " n"]:
    """At most `n_segments` snippet indices, evenly spread from the first on; all of them if there are no more.

    >>> even(10, 4).tolist(), even(3, 4).tolist()
    ([0, 2, 5, 7], [0, 1, 2])
    """
    n = min(t, n_segments)
    return np.arange(n) * t // n if n else np.zeros(0, dtype=np.int64)


def stretched(values: Float[np.ndarray, "n c"], t: int) -> Float[np.ndarray, "t c"]:
    """What was found for evenly sampled snippets, on all `t` snippets: linear between the middles of their parts.

    >>> stretched(np.array([[0.0], [1.0]]), 4).tolist()
    [[0.0], [0.25], [0.75], [1.0]]
    """
    n = len(values)
    if n == t:
        return values
    at = np.clip((np.arange(t) + 0.5) * n / t - 0.5, 0, n - 1)
    left = np.minimum(at.astype(np.int64), max(n - 2, 0))
    share = (at - left)[:, None]
    return (1 - share) * values[left] + share * values[np.minimum(left + 1, n - 1)]
