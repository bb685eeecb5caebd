"""The linear program behind LinPro, in elastic form, solved by HiGHS."""

from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

#: Cost of a unit of slack against 1 for a unit of label. The dual values of feasible programs stay below 10 on real
#: data; the second price is there for the program that needs more, before its constraints are called contradictory.
PRICES = (1e3, 1e6)
SLACK_TOLERANCE = 1e-8
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
