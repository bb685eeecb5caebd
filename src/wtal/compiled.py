"""The loops that are compiled: each was measured as the hot one of its caller (see benchmarks/).

Numba is imported here and nowhere else, so that whatever does not need these loops stays quick to import.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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


@njit(cache=True)
def greedy_groups(
    starts: Floats,
    ends: Floats,
    scores: Floats,
    labels: Integers,
    threshold: float,
    own_length: bool,
    pad: float,
) -> tuple[Integers, Integers]:
    """The best segment of each group, and each one's group: the best free one takes all of its class that overlap it.

    Equal scores go by start, then end. `own_length` divides the intersection by the taken segment's length instead of
    the union; `pad` is added to lengths and intersections (1 where the positions are inclusive integers). The anchor
    always belongs to its own group. Each group takes a pass over what is left, to find its anchor and its members.
    """
    n = len(starts)
    group = np.full(n, -1, np.int64)
    anchors = np.empty(n, np.int64)
    left = np.arange(n)
    n_groups = 0
    while len(left):
        best = left[0]
        for i in left:
            if scores[i] > scores[best] or (
                scores[i] == scores[best]
                and (starts[i] < starts[best] or (starts[i] == starts[best] and ends[i] < ends[best]))
            ):
                best = i
        kept = 0
        for i in left:
            shared = min(ends[best], ends[i]) - max(starts[best], starts[i]) + pad
            whole = ends[i] - starts[i] + pad
            if not own_length:
                whole += ends[best] - starts[best] + pad - shared
            if i == best or (labels[i] == labels[best] and shared > 0.0 and shared > threshold * whole):
                group[i] = n_groups
            else:
                left[kept] = i
                kept += 1
        left = left[:kept]
        anchors[n_groups] = best
        n_groups += 1
    return anchors[:n_groups], group


@njit(cache=True)
def softmax_by_group(logits: Floats, group: Integers, m: int) -> Floats:
    """Softmax inside each group; the best logit is subtracted first, so that exp() stays in range at any size."""
    best = np.full(m, -np.inf)
    for i in range(len(logits)):
        best[group[i]] = max(best[group[i]], logits[i])
    weights = np.exp(logits - best[group])
    total = sums_by_group(weights.reshape(-1, 1), group, m)
    for i in range(len(logits)):
        weights[i] /= total[group[i], 0]
    return weights


@njit(cache=True)
def sums_by_group(values: Floats, group: Integers, m: int) -> Floats:
    """Sum of the rows of each group."""
    total = np.zeros((m, values.shape[1]))
    for i in range(len(values)):
        for k in range(values.shape[1]):
            total[group[i], k] += values[i, k]
    return total


@njit(cache=True)
def ranges_by_group(values: Floats, group: Integers, m: int) -> tuple[Floats, Floats]:
    """Least and greatest of the rows of each group."""
    low = np.full((m, values.shape[1]), np.inf)
    high = np.full((m, values.shape[1]), -np.inf)
    for i in range(len(values)):
        for k in range(values.shape[1]):
            low[group[i], k] = min(low[group[i], k], values[i, k])
            high[group[i], k] = max(high[group[i], k], values[i, k])
    return low, high


@njit(cache=True)
def soft_nms_scores(
    starts: Floats,
    ends: Floats,
    labels: Integers,
    scores: Floats,
    gaussian: bool,
    threshold: float,
    sigma: float,
) -> Floats:
    """Scores after soft-NMS: the best instance left is final and makes the others of its class decay.

    Instances come sorted by class, then best first, which settles ties.
    """
    n = len(starts)
    scores = scores.copy()
    final = np.zeros(n, np.bool_)
    first = 0
    while first < n:
        last = first
        while last < n and labels[last] == labels[first]:
            last += 1
        for _ in range(first, last):
            best = -1
            for i in range(first, last):
                if not final[i] and (best < 0 or scores[i] > scores[best]):
                    best = i
            final[best] = True
            for i in range(first, last):
                shared = min(ends[best], ends[i]) - max(starts[best], starts[i])
                if final[i] or shared <= 0.0:
                    continue
                iou = shared / (ends[best] - starts[best] + ends[i] - starts[i] - shared)
                if gaussian:
                    scores[i] *= np.exp(-iou * iou / sigma)
                elif iou > threshold:
                    scores[i] *= 1.0 - iou
        first = last
    return scores


@njit(cache=True, inline="always")
def _tiou(start_a: float, end_a: float, start_b: float, end_b: float) -> float:
    """Intersection over union; 0 where both are empty, as segments of a whole-snippet grid can be."""
    shared = min(end_a, end_b) - max(start_a, start_b)
    if shared <= 0.0:
        return 0.0
    return shared / ((end_a - start_a) + (end_b - start_b) - shared)


@njit(cache=True)
def match_greedily(
    segments: Floats,
    first_truth: Integers,
    past_truth: Integers,
    truth: Floats,
    thresholds: Floats,
) -> Integers:
    """The true segment that each prediction finds at each threshold (n, thresholds), or -1.

    Predictions come best first; prediction i may find the true segments `first_truth[i]:past_truth[i]`. It
    takes the one of highest tIoU that is not taken yet at that threshold; of equals the first.
    """
    n = len(segments)
    found = np.full((n, len(thresholds)), -1, np.int64)
    taken = np.zeros((len(thresholds), len(truth)), np.bool_)
    most = 0
    for i in range(n):
        most = max(most, past_truth[i] - first_truth[i])
    tious = np.empty(most, np.float64)
    for i in range(n):
        first, past = first_truth[i], past_truth[i]
        highest = 0.0
        for j in range(first, past):
            tious[j - first] = _tiou(segments[i, 0], segments[i, 1], truth[j, 0], truth[j, 1])
            highest = max(highest, tious[j - first])
        for t in range(len(thresholds)):
            if highest < thresholds[t] or highest == 0.0:
                continue
            best = -1
            best_tiou = 0.0
            for j in range(first, past):
                tiou = tious[j - first]
                if tiou >= thresholds[t] and tiou > best_tiou and not taken[t, j]:
                    best = j
                    best_tiou = tiou
            if best >= 0:
                taken[t, best] = True
                found[i, t] = best
    return found


@njit(cache=True)
def highest_tious(
    segments: Floats,
    labels: Integers,
    first_truth: Integers,
    past_truth: Integers,
    truth: Floats,
    truth_labels: Integers,
) -> Floats:
    """Each prediction's highest tIoU with a true segment of its own class, and of another class (n, 2)."""
    highest = np.zeros((len(segments), 2), np.float64)
    for i in range(len(segments)):
        for j in range(first_truth[i], past_truth[i]):
            tiou = _tiou(segments[i, 0], segments[i, 1], truth[j, 0], truth[j, 1])
            other = 0 if labels[i] == truth_labels[j] else 1
            highest[i, other] = max(highest[i, other], tiou)
    return highest


@njit(cache=True)
def ranks_of_first_cover(
    segments: Floats,
    ranks: Integers,
    first_truth: Integers,
    past_truth: Integers,
    truth: Floats,
    thresholds: Floats,
) -> Integers:
    """The rank in its video of the first proposal that covers each true segment (truth, thresholds).

    A true segment that no proposal covers has the largest integer instead.
    """
    cover = np.full((len(truth), len(thresholds)), np.iinfo(np.int64).max, np.int64)
    for i in range(len(segments)):
        for j in range(first_truth[i], past_truth[i]):
            tiou = _tiou(segments[i, 0], segments[i, 1], truth[j, 0], truth[j, 1])
            for t in range(len(thresholds)):
                if tiou >= thresholds[t] and tiou > 0.0 and ranks[i] < cover[j, t]:
                    cover[j, t] = ranks[i]
    return cover


@njit(cache=True)
def least_norm_on_face(
    start: Integers,
    index: Integers,
    value: Floats,
    target: Floats,
    weight: Floats,
    upper: Floats,
    solution: Floats,
    free: NDArray[np.bool_],
    steps: int,
) -> Floats:
    """argmin ½Σ weight·x² under A x = target, 0 ≤ x ≤ upper, x = solution where not free; it has a solution.

    A comes by columns (entries `start[v]` to `start[v + 1]` of `index` and `value`, rows ascending). At the optimum
    x = clip(Aᵀdual / weight, 0, upper); the dual is found by Newton steps. Matrices are kept as skylines, row by row
    from the first row that shares a variable: rows that are sorted in time make them narrow.
    """
    n, v = len(target), len(weight)
    rest = target.copy()
    first = np.arange(n)
    for j in range(v):
        for p in range(start[j], start[j + 1]):
            if free[j]:
                first[index[p]] = min(first[index[p]], index[start[j]])
            else:
                rest[index[p]] -= value[p] * solution[j]
    begin = np.zeros(n + 1, np.int64)  # row i of a skyline: columns first[i] to i, from begin[i] on
    for i in range(n):
        begin[i + 1] = begin[i] + i - first[i] + 1
    scale = max(np.abs(rest).max() if n else 0.0, 1e-12)
    full = np.zeros(begin[n])
    _add_outers(full, begin, first, start, index, value, weight, free)
    trace = 1e-12
    for i in range(n):
        trace += full[begin[i + 1] - 1]

    dual, raw, x = np.zeros(n), np.zeros(v), solution.copy()
    worth = _dual_value(dual, rest, raw, x, start, index, value, weight, upper, free)
    trial_raw, trial_x, moving = raw.copy(), x.copy(), free.copy()
    for _ in range(steps):
        gradient = -rest
        for j in range(v):
            if free[j]:
                # variables resting on a bound with nothing pushing them off count as movable: at the start all do
                moving[j] = -1e-12 * scale <= raw[j] <= upper[j]
                for p in range(start[j], start[j + 1]):
                    gradient[index[p]] += value[p] * x[j]
        if n == 0 or np.abs(gradient).max() <= 1e-10 * scale:
            break
        # Where all variables of a row rest on bounds nothing curves, so a trace of all of them is added; where rows
        # say the same even that is singular, and a trace of damping picks the shortest step.
        hessian = 1e-6 * full
        _add_outers(hessian, begin, first, start, index, value, weight, moving)
        for i in range(n):
            hessian[begin[i + 1] - 1] += 1e-12 * trace
        step = _skyline_solve(hessian, begin, first, -gradient)
        slope, length, found = gradient @ step, 1.0, False
        while slope < 0.0 and length > 1e-12:
            trial = dual + length * step
            trial_worth = _dual_value(trial, rest, trial_raw, trial_x, start, index, value, weight, upper, free)
            # near the end the fall is below the rounding of the value, which must not stop a good step
            if trial_worth <= worth + 1e-4 * length * slope + 1e-14 * abs(worth):
                found = True
                break
            length /= 2.0
        if not found:
            break
        dual, worth = trial, trial_worth
        raw[:], x[:] = trial_raw, trial_x
    return x


@njit(cache=True)
def _dual_value(
    dual: Floats,
    rest: Floats,
    raw: Floats,
    x: Floats,
    start: Integers,
    index: Integers,
    value: Floats,
    weight: Floats,
    upper: Floats,
    free: NDArray[np.bool_],
) -> float:
    """The negative dual at `dual`; fills `raw` = Aᵀdual / weight and the x that goes with it."""
    worth = -float(rest @ dual)
    for j in range(len(weight)):
        if free[j]:
            total = 0.0
            for p in range(start[j], start[j + 1]):
                total += value[p] * dual[index[p]]
            raw[j] = total / weight[j]
            x[j] = min(max(raw[j], 0.0), upper[j])
            worth += weight[j] * x[j] * (raw[j] - x[j] / 2.0)
    return worth


@njit(cache=True)
def _add_outers(
    skyline: Floats,
    begin: Integers,
    first: Integers,
    start: Integers,
    index: Integers,
    value: Floats,
    weight: Floats,
    chosen: NDArray[np.bool_],
) -> None:
    """Add A diag(1 / weight) Aᵀ over the chosen columns."""
    for j in range(len(weight)):
        if chosen[j]:
            for p in range(start[j], start[j + 1]):
                i = index[p]
                for q in range(start[j], p + 1):
                    skyline[begin[i] + index[q] - first[i]] += value[p] * value[q] / weight[j]


@njit(cache=True)
def _skyline_solve(skyline: Floats, begin: Integers, first: Integers, right: Floats) -> Floats:
    """Solution of a positive definite system by Cholesky's method; the factor overwrites the skyline."""
    n = len(right)
    x = right.copy()
    for i in range(n):
        for j in range(first[i], i + 1):
            total = skyline[begin[i] + j - first[i]]
            for k in range(max(first[i], first[j]), j):
                total -= skyline[begin[i] + k - first[i]] * skyline[begin[j] + k - first[j]]
            if j < i:
                skyline[begin[i] + j - first[i]] = total / skyline[begin[j + 1] - 1]
            else:
                skyline[begin[i + 1] - 1] = np.sqrt(max(total, 1e-300))
        for k in range(first[i], i):
            x[i] -= skyline[begin[i] + k - first[i]] * x[k]
        x[i] /= skyline[begin[i + 1] - 1]
    for i in range(n - 1, -1, -1):
        x[i] /= skyline[begin[i + 1] - 1]
        for k in range(first[i], i):
            x[k] -= skyline[begin[i] + k - first[i]] * x[i]
    return x
