"""The most even of all optimal solutions of a linear program: the one of least ℓ₂ norm, which is unique.

A quadratic program of its own: minimise ½Σ h·x² over the optimal face {A x = b, 0 ≤ x ≤ u}. Its dual has no constraints
and one variable per instance, is smooth, concave and piecewise quadratic, and Newton's method ends on it after a
few steps. (HiGHS's QP solver was tried first: it stopped with an error on a tenth of the real programs.)
"""

import numpy as np
from jaxtyping import Float

from wtal.compiled import Booleans, Floats, Integers, compiled
from wtal.pseudo.program import Program


def least_norm(program: Program, *, steps: int = 100) -> Float[np.ndarray, " g"]:
    """The labels of least norm, per group; a group counts as often as it has snippets, a slack once."""
    g = len(program.size)
    weight = np.concatenate([program.size, np.ones(len(program.solution) - g)])
    return _on_face(
        program.start,
        program.index,
        program.value,
        program.target,
        weight,
        program.upper,
        program.solution,
        program.free,
        steps,
    )[:g]


@compiled
def _on_face(
    start: Integers,
    index: Integers,
    value: Floats,
    target: Floats,
    weight: Floats,
    upper: Floats,
    solution: Floats,
    free: Booleans,
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
        slope, length, found = (gradient * step).sum(), 1.0, False
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


@compiled
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
    free: Booleans,
) -> float:
    """The negative dual at `dual`; fills `raw` = Aᵀdual / weight and the x that goes with it."""
    worth = -float((rest * dual).sum())  # not @, for which numba wants scipy
    for j in range(len(weight)):
        if free[j]:
            total = 0.0
            for p in range(start[j], start[j + 1]):
                total += value[p] * dual[index[p]]
            raw[j] = total / weight[j]
            x[j] = min(max(raw[j], 0.0), upper[j])
            worth += weight[j] * x[j] * (raw[j] - x[j] / 2.0)
    return worth


@compiled
def _add_outers(
    skyline: Floats,
    begin: Integers,
    first: Integers,
    start: Integers,
    index: Integers,
    value: Floats,
    weight: Floats,
    chosen: Booleans,
) -> None:
    """Add A diag(1 / weight) Aᵀ over the chosen columns."""
    for j in range(len(weight)):
        if chosen[j]:
            for p in range(start[j], start[j + 1]):
                i = index[p]
                for q in range(start[j], p + 1):
                    skyline[begin[i] + index[q] - first[i]] += value[p] * value[q] / weight[j]


@compiled
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
