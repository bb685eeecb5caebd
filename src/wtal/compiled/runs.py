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
    outer_weight: float,
    bonus: float,
    zero_below: bool,
) -> Floats:
    """Start, end, score and inner mean of each run of `cutting > level`, level by level, from left to right.

    Curves have `cells` cells per snippet, results are in snippets. Levels ascend, so that each run lies in one of the
    level below and only those are searched. Means come from the cumulative sum, so a run costs the same whatever its
    length. With `zero_below` what the level cuts off counts as 0, which makes a sum of its own for each level.
    """
    n = len(cutting)
    total = np.zeros(n + 1)
    for i in range(n):
        total[i + 1] = total[i] + scoring[i]
    found = np.empty((len(levels) * ((n + 1) // 2), 4))
    count = 0
    # runs of the level below; below the lowest, the whole curve
    starts, ends = np.zeros((n + 1) // 2 + 1, np.int64), np.full((n + 1) // 2 + 1, n)
    n_below = 1 if n else 0
    for level in levels:
        n_here = 0
        if zero_below:
            for i in range(n):
                total[i + 1] = total[i] + (scoring[i] if cutting[i] > level else 0.0)
        next_starts, next_ends = np.empty_like(starts), np.empty_like(ends)
        for run in range(n_below):
            start = -1
            for i in range(starts[run], ends[run] + 1):
                if i < ends[run] and cutting[i] > level:
                    start = i if start < 0 else start
                elif start >= 0:
                    next_starts[n_here], next_ends[n_here] = start, i
                    n_here += 1
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
                        inner = inside / inside_length if inside_length > 0.0 else 0.0
                        outer = (left_part + right_part) / outside if outside > 0.0 else 0.0
                        found[count, 0] = low
                        found[count, 1] = high
                        found[count, 2] = inner - outer_weight * outer + bonus
                        found[count, 3] = inner
                        count += 1
                    start = -1
        starts, ends, n_below = next_starts, next_ends, n_here
    return found[:count].copy()  # the scratch space is for the worst case, and far larger


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
