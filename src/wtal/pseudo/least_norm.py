"""The most even of all optimal solutions of a linear program: the one of least ℓ₂ norm, which is unique.

A quadratic program of its own: minimise ½Σ h·x² over the optimal face {A x = b, 0 ≤ x ≤ u}. Its dual has no constraints
and one variable per instance, is smooth, concave and piecewise quadratic, and Newton's method ends on it after a
few steps. (HiGHS's QP solver was tried first: it stopped with an error on a tenth of the real programs.)
"""

import numpy as np
from jaxtyping import Float

from wtal.pseudo.program import Program


def least_norm(program: Program, *, steps: int = 100) -> Float[np.ndarray, " g"]:
    """The labels of least norm, per group; a group counts as often as it has snippets, a slack once."""
    from wtal.compiled.least_norm import least_norm_on_face

    g = len(program.size)
    weight = np.concatenate([program.size, np.ones(len(program.solution) - g)])
    return least_norm_on_face(
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
