"""The linear program behind LinPro, in elastic form, solved by HiGHS; and the most even of its optimal solutions.

The most even one is that of least ℓ₂ norm, which is unique. It is a quadratic program of its own: minimise ½Σ h·x² over
the optimal face {A x = b, 0 ≤ x ≤ u}. Its dual has no constraints and one variable per instance, is smooth, concave and
piecewise quadratic, and Newton's method ends on it after a few steps.

Why no library does this: for one generation of labels of THUMOS14's 188 training videos (215 programs with up to 215
instances) the linear programs take 0.22 s. On top of that the Newton steps below take 0.08 s.
`scipy.optimize.lsq_linear(method="bvls")`, with the constraints as a penalty, takes 0.52 s and would make scipy a
requirement of the method. DAQP takes 0.13 s, but its matrices grow with the square of a program's size. HiGHS's own QP
solver stopped with an error on a tenth of the programs. All that end agree to 1e-8.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

#: Cost of a unit of slack against 1 for a unit of label. The dual values of feasible programs stay below 10 on real
#: data; the second price is there for the program that needs more, before its constraints are called contradictory.
PRICES = (1e3, 1e6)
SLACK_TOLERANCE = 1e-8
#: Rows that are solved together where fewer would do: a step costs about the same up to here.
ROWS = 64
_solvers = local()


@dataclass(frozen=True, eq=False)
class Program:
    """min size·x + price·‖slack‖₁ under contrast @ x + slack = target, 0 ≤ x ≤ upper, with an optimal vertex of it.

    Its variables are x, then the positive and the negative parts of the slack.
    """

    contrast: Float[np.ndarray, "n g"]
    target: Float[np.ndarray, " n"]
    size: Float[np.ndarray, " g"]
    upper: Float[np.ndarray, " v"]
    solution: Float[np.ndarray, " v"]
    #: variables that may lie between their bounds in an optimal solution; all others sit where `solution` has them
    free: Bool[np.ndarray, " v"]

    @property
    def matrix(self) -> Float[np.ndarray, "n v"]:
        """The constraints of all variables."""
        slack = np.eye(len(self.target))
        return np.hstack([self.contrast, slack, -slack])

    @property
    def x(self) -> Float[np.ndarray, " g"]:
        """The labels of the vertex, one for each group of snippets."""
        return self.solution[: len(self.size)]


def solve_elastic(
    contrast: Float[np.ndarray, "n g"],
    target: Float[np.ndarray, " n"],
    size: Float[np.ndarray, " g"],
    upper: float,
) -> Program:
    """The elastic program with a vertex that solves it; the slack is 0 whenever the plain program is feasible."""
    import highspy

    n, g = contrast.shape
    v = g + 2 * n
    columns, rows = np.nonzero(contrast.T)
    each = np.arange(n)
    start = np.append(np.searchsorted(columns, np.arange(g)), len(columns) + np.arange(2 * n + 1)).astype(np.int32)
    index = np.concatenate([rows, each, each]).astype(np.int32)
    value = np.concatenate([contrast[rows, columns], np.ones(n), -np.ones(n)])
    bound = np.concatenate([np.full(g, upper), np.full(2 * n, np.inf)])

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = v, n
    lp.col_lower_, lp.col_upper_ = np.zeros(v), bound
    lp.row_lower_ = lp.row_upper_ = target
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = start, index, value
    solver = _solver()
    for price in PRICES:
        lp.col_cost_ = cost = np.concatenate([size, np.full(2 * n, price)])
        solver.passModel(lp)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS: {solver.modelStatusToString(solver.getModelStatus())}")
        answer = solver.getSolution()
        solution = np.clip(np.array(answer.col_value), 0.0, bound)
        if solution[g:].sum() <= SLACK_TOLERANCE:
            break
    # By complementary slackness with any optimal dual, the optimal solutions are exactly the feasible ones that keep
    # the variables of non-zero reduced cost at their bounds.
    free = np.abs(np.array(answer.col_dual)) <= 1e-7 * cost
    return Program(contrast, target, size, bound, solution, free)


def _solver() -> Any:
    """This thread's HiGHS, kept because making one costs as much as solving with it."""
    import highspy

    if not hasattr(_solvers, "highs"):
        _solvers.highs = highspy.Highs()
        _solvers.highs.setOptionValue("output_flag", False)
        _solvers.highs.setOptionValue("threads", 1)
        _solvers.highs.setOptionValue("solver", "simplex")
        _solvers.highs.setOptionValue("presolve", "off")  # groups have done its work; it added 40 % on real programs
        # contrasts of a thousandth are common, so HiGHS's usual 1e-7 is too coarse
        _solvers.highs.setOptionValue("primal_feasibility_tolerance", 1e-9)
        _solvers.highs.setOptionValue("dual_feasibility_tolerance", 1e-9)
    return _solvers.highs


def least_norm(program: Program, *, steps: int = 100) -> Float[np.ndarray, " g"]:
    """The labels of least norm, per group; a group counts as often as it has snippets, a slack once."""
    g, n = len(program.size), len(program.target)
    weight = np.append(program.size, np.ones(2 * n))
    matrix, x = program.matrix, program.solution.copy()
    rest = program.target - matrix[:, ~program.free] @ x[~program.free]
    scale = max(float(np.abs([program.target, rest]).max()), 1e-12)
    touches = (matrix != 0) & program.free
    for rows in _independent(touches):
        own = np.flatnonzero(touches[rows].any(axis=0))
        x[own] = _on_face(matrix[rows, own], rest[rows], weight[own], program.upper[own], scale, steps)
    return x[:g]


def _independent(touches: Bool[np.ndarray, "n v"]) -> Iterator[slice]:
    """Runs of rows, ROWS or more where there are as many, that share no variable with the rows of another run.

    Rows come sorted in time, so that instances far from each other are apart here, too, and long videos cost in
    proportion to their length.
    """
    n = len(touches)
    used = touches[:, touches.any(axis=0)]
    first, last = used.argmax(axis=0), n - 1 - used[::-1].argmax(axis=0)
    crossing = np.cumsum(np.bincount(first, minlength=n) - np.bincount(last, minlength=n))
    begin = 0
    for end in (np.flatnonzero(crossing == 0) + 1).tolist():
        if end - begin >= ROWS or end == n:
            yield slice(begin, end)
            begin = end


def _on_face(
    a: Float[np.ndarray, "n v"],
    b: Float[np.ndarray, " n"],
    weight: Float[np.ndarray, " v"],
    upper: Float[np.ndarray, " v"],
    scale: float,
    steps: int,
) -> Float[np.ndarray, " v"]:
    """argmin ½Σ weight·x² under a x = b, 0 ≤ x ≤ upper, where such x exist, to 1e-10 of `scale`.

    There x = clip(aᵀdual / weight, 0, upper), and the dual is found by Newton steps.
    """
    scaled = a / weight
    # Where all variables of a row rest on bounds nothing curves, so a trace of all of them is added; where rows say
    # the same even that is singular, and a trace of damping picks the shortest step.
    curvature = scaled @ a.T
    damping = 1e-6 * curvature + 1e-12 * (np.trace(curvature) + 1e-12) * np.eye(len(b))

    def at(dual: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, " v"], Float[np.ndarray, " v"], float]:
        """x before and after it is clipped, and the negative dual."""
        raw = dual @ scaled
        x = np.clip(raw, 0.0, upper)
        return raw, x, float((weight * x) @ (raw - x / 2.0) - b @ dual)

    dual = np.zeros(len(b))
    raw, x, worth = at(dual)
    for _ in range(steps):
        gradient = a @ x - b
        if np.abs(gradient).max() <= 1e-10 * scale:
            break
        # variables resting on a bound with nothing pushing them off count as movable: at the start all do
        moving = (raw >= -1e-12 * scale) & (raw <= upper)
        step = np.linalg.solve(scaled[:, moving] @ a[:, moving].T + damping, -gradient)
        slope, length = float(gradient @ step), 1.0
        while slope < 0.0 and length > 1e-12:
            trial = at(dual + length * step)
            # near the end the fall is below the rounding of the value, which must not stop a good step
            if trial[2] <= worth + 1e-4 * length * slope + 1e-14 * abs(worth):
                break
            length /= 2.0
        else:
            break
        dual, (raw, x, worth) = dual + length * step, trial
    return x
