"""Whole snippets: the integers in which the W-TALC form measures, at 25 frames a second and 16 frames a snippet."""

import numpy as np
from jaxtyping import Float

from wtal.instances import Unit
from wtal.timebase import TimeBase

#: The W-TALC form knows one clock.
CLOCK = TimeBase(fps=25.0, stride_frames=16.0)


def rounded(seconds: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """The nearest whole snippet, halves to the even one: what the W-TALC form does to the truth.

    >>> rounded(np.array([0.32, 0.96, 1.0])).tolist()
    [0.0, 2.0, 2.0]
    """
    return np.rint(CLOCK.to_positions(seconds))


def cut_down(bounds: Float[np.ndarray, "*shape"], *, unit: Unit) -> Float[np.ndarray, "*shape"]:
    """The whole snippet below: what the W-TALC form does to predictions.

    In seconds it is the last snippet whose own second is not later, so that a whole position that was turned
    into seconds comes back as itself, whatever the last bit of the product.

    >>> cut_down(np.array([4.48, 4.479, 35.2]), unit="seconds").tolist()
    [7.0, 6.0, 55.0]
    >>> cut_down(np.array([6.99]), unit="snippets").tolist()
    [6.0]
    """
    if unit == "snippets":
        return np.trunc(bounds)
    size = np.abs(bounds)
    nearest = np.rint(CLOCK.to_positions(size))
    return np.copysign(np.where(CLOCK.to_seconds(nearest) <= size, nearest, nearest - 1.0), bounds)
