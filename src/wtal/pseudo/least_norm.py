"""The most even of all optimal solutions of a linear program: the one of least ℓ₂ norm, which is unique.

A quadratic program of its own: minimise ½Σ h·x² over the optimal face {A x = b, 0 ≤ x ≤ u}. Its dual has no constraints
and one variable per instance, is smooth, concave and piecewise quadratic, and Newton's method ends on it after a
few steps. (HiGHS's QP solver was tried first: it stopped with an error on a tenth of the real programs.)
"""

import numpy as np
from jaxtyping import Float

from wtal.pseudo.program import Program

Vector = Float[np.ndarray, " _"]


def least_norm(program: Program, *, steps: int = 100) -> Float[np.ndarray, " g"]:
    """The labels of least norm, per group; a group counts as often as it has snippets, a slack once."""
    free = program.free
    solution = program.solution.copy()
    matrix = program.matrix[:, free]
    target = program.target - program.matrix[:, ~free] @ solution[~free]
    weight = np.concatenate([program.size, np.ones(len(solution) - len(program.size))])[free]
    solution[free] = _least_norm(matrix, target, weight, program.upper[free], steps)
    return solution[: len(program.size)]


def _least_norm(
    a: Float[np.ndarray, "n v"],
    b: Float[np.ndarray, " n"],
    weight: Float[np.ndarray, " v"],
    upper: Float[np.ndarray, " v"],
    steps: int,
) -> Float[np.ndarray, " v"]:
    """argmin ½Σ weight·x² under a @ x = b, 0 ≤ x ≤ upper, which has a solution."""
    towards = a.T / weight[:, None]  # at the optimum x = clip(towards @ dual, 0, upper)
    full = a @ towards
    damping = 1e-12 * max(float(np.trace(full)), 1e-12) * np.eye(len(b))
    dual = np.zeros(len(b))
    scale = max(float(np.abs(b).max(initial=0.0)), 1e-12)

    def at(dual: Vector) -> tuple[float, Vector, Vector]:
        raw = towards @ dual
        x = np.clip(raw, 0.0, upper)
        return float(weight @ (x * (raw - x / 2)) - b @ dual), raw, x

    value, raw, x = at(dual)
    for _ in range(steps):
        gradient = a @ x - b
        if np.abs(gradient).max(initial=0.0) <= 1e-10 * scale:
            break
        # variables resting on a bound with nothing pushing them off count as movable: at the start all do
        moving = (raw >= -1e-12 * scale) & (raw <= upper)
        # Where all variables of an instance rest on bounds nothing curves, so a trace of all of them is added; where
        # instances say the same even that is singular, and a trace of damping picks the shortest step.
        hessian = a[:, moving] @ towards[moving] + 1e-6 * full
        step = np.linalg.solve(hessian + damping, -gradient)
        length, slope = 1.0, float(gradient @ step)
        if slope >= 0:
            break
        while length > 1e-12:
            trial = at(dual + length * step)
            if trial[0] <= value + 1e-4 * length * slope:
                break
            length /= 2
        else:
            break
        dual = dual + length * step
        value, raw, x = trial
    return x
