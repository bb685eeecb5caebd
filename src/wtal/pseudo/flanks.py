"""The flanks of a segment: how far to look on either side for the outer part of the Inner-Outer Contrast."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from wtal.typed import check_fields


@dataclass(frozen=True)
class Flanks:
    """Flank width as a function of the segment's length, both in snippets: `scale * length ** power`.

    Attributes:
        scale: Width of the flanks of a segment of one snippet.
        power: How the width grows with the length; 1 is in proportion.

    >>> Flanks(0.25).width(np.array([8.0])).tolist()
    [2.0]
    """

    scale: float
    """Width per length, in snippets."""
    power: float = 1.0
    """Below 1, flanks of long segments are relatively narrower."""

    def __post_init__(self) -> None:
        check_fields(self)

    def width(self, lengths: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """Width of one flank for segments of these lengths."""
        return self.scale * lengths**self.power


#: α of the paper's α·(e−s), which gives no value; a quarter is what its base model RSKP uses.
QUARTER = Flanks(0.25)
#: The rule in the authors' released code.
RELEASED = Flanks(0.0785, 0.9)
