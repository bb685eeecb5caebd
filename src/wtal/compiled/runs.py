"""Runs of a curve above thresholds, with their contrast."""

import numpy as np
from numba import njit

from wtal.compiled import Floats


@njit(cache=True)
def runs_with_contrast(
    cutting: Floats,
    scoring: Floats,
    levels: Floats,
    cells: int,
    min_length: float,
    before: float,
    after: float,
    flank_scale: float,
    flank_power: float,
    truncate: bool,
) -> Floats:
    """Start, end, inner and outer mean of each run of `cutting > level`, level by level, from left to right.

    Curves have `cells` cells per snippet, results are in snippets. Means come from the cumulative sum, so a run costs
    the same whatever its length.
    """
    n = len(cutting)
    total = np.zeros(n + 1)
    for i in range(n):
        total[i + 1] = total[i] + scoring[i]
    found = np.empty((len(levels) * ((n + 1) // 2), 4))
    count = 0
    for level in levels:
        start = -1
        for i in range(n + 1):
            above = i < n and cutting[i] > level
            if above and start < 0:
                start = i
            elif not above and start >= 0:
                length = (i - start) / cells
                if length >= min_length:
                    low, high = start / cells - before, i / cells + after
                    width = flank_scale * length**flank_power
                    left, right, last = low - width, high + width, n / cells
                    if truncate:
                        left, right, last = np.trunc(left), np.trunc(right), last - 1.0
                    inside, inside_length = _integral(total, low, high, cells)
                    left_part, left_length = _integral(total, left, low, cells)
                    right_part, right_length = _integral(total, high, min(right, last), cells)
                    outside = left_length + right_length
                    found[count, 0] = low
                    found[count, 1] = high
                    found[count, 2] = inside / inside_length if inside_length > 0.0 else 0.0
                    found[count, 3] = (left_part + right_part) / outside if outside > 0.0 else 0.0
                    count += 1
                start = -1
    return found[:count]


@njit(cache=True)
def _integral(total: Floats, low: float, high: float, cells: int) -> tuple[float, float]:
    """Integral of a curve over a span, and how much of the span lies on the curve.

    The integral of a step function is linear between cell borders, so interpolating its cumulative sum is exact.
    """
    n = len(total) - 1
    a, b = min(max(low * cells, 0.0), float(n)), min(max(high * cells, 0.0), float(n))
    if b <= a:
        return 0.0, 0.0
    i, j = min(int(a), n - 1), min(int(b), n - 1)
    at_a = total[i] + (a - i) * (total[i + 1] - total[i])
    at_b = total[j] + (b - j) * (total[j + 1] - total[j])
    return (at_b - at_a) / cells, (b - a) / cells
