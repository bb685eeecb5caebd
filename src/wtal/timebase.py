"""TimeBase: the only place where snippet positions and seconds meet."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.typed import check_fields, wanted_type


@dataclass(frozen=True)
class TimeBase:
    """How the snippet grid lies on the video's clock.

    Snippet `i` covers grid positions `[i, i + 1)`; grid position `p` is at second
    `(p + offset_snippets) * stride_frames / fps`. The offset is explicit because it matters: on the usual
    THUMOS14 features half a snippet is worth about two points of mAP.

    Args:
        fps: Frames a second of the video that the features were made from.
        stride_frames: Frames from one snippet to the next.
        offset_snippets: Where the first snippet starts, in snippets.

    >>> TimeBase().to_seconds(np.array([0.0, 25.0])).tolist()
    [0.0, 16.0]
    >>> TimeBase(offset_snippets=-0.5).to_seconds(np.array([25.0])).tolist()
    [15.68]
    """

    fps: float = 25.0
    stride_frames: float = 16.0
    offset_snippets: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("fps", "stride_frames"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"{name} must be a positive number, got {value}")
        if not np.isfinite(self.offset_snippets):
            raise InputError(f"offset_snippets must be a number, got {self.offset_snippets}")

    @property
    def snippet_s(self) -> float:
        """Seconds from the start of one snippet to the start of the next."""
        return self.stride_frames / self.fps

    def at(self, offset_snippets: float | None) -> "TimeBase":
        """This clock with the first snippet starting elsewhere; None: as it is.

        >>> TimeBase(stride_frames=8).at(-0.5)
        TimeBase(fps=25.0, stride_frames=8.0, offset_snippets=-0.5)
        """
        return self if offset_snippets is None else replace(self, offset_snippets=offset_snippets)

    def to_seconds(self, positions: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Seconds at these grid positions."""
        # multiplied before divided: whole positions give the float nearest to the exact second
        return (positions + self.offset_snippets) * self.stride_frames / self.fps

    def end_s(self, n_snippets: int) -> float:
        """Seconds at the end of the last of so many snippets.

        >>> TimeBase(offset_snippets=-0.5).end_s(25)
        15.68
        """
        return float(self.to_seconds(np.array([float(n_snippets)]))[0])

    def to_positions(self, seconds: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Grid positions at these seconds: the inverse of `to_seconds`."""
        return seconds * self.fps / self.stride_frames - self.offset_snippets

    def instances_to_seconds(self, instances: Instances, *, duration_s: float = np.inf) -> Instances:
        """Instances of the snippet grid in seconds, cut to the video.

        Args:
            instances: Instances in snippets.
            duration_s: Length of the video; what lies beyond it is cut off, and dropped if nothing is left.

        >>> found = Instances([[0.0, 2.0]], unit="snippets")
        >>> TimeBase(offset_snippets=-0.5).instances_to_seconds(found).segments.tolist()
        [[0.0, 0.96]]
        """
        wanted_type(instances, Instances, "instances")
        instances.wanted_in("snippets", "seconds on the clock")
        segments = self.segments_to_seconds(instances.segments, duration_s=duration_s)
        kept = segments[:, 0] < segments[:, 1]
        return Instances(segments[kept], instances.scores[kept], instances.class_ids[kept], names=instances.names)

    def segments_to_seconds(
        self, segments: Float[np.ndarray, "n 2"], *, duration_s: float = np.inf
    ) -> Float[np.ndarray, "n 2"]:
        """Segments of the snippet grid in seconds, cut to the video: of what lies beyond it no length is left."""
        return np.clip(self.to_seconds(segments), 0.0, duration_s)

    def instances_to_snippets(self, instances: Instances) -> Instances:
        """Instances in seconds on the snippet grid, in fractions of snippets.

        >>> TimeBase().instances_to_snippets(Instances([[0.0, 1.28]])).segments.tolist()
        [[0.0, 2.0]]
        """
        wanted_type(instances, Instances, "instances")
        instances.wanted_in("seconds", "positions on the snippet grid")
        positions = self.to_positions(instances.segments)
        return Instances(positions, instances.scores, instances.class_ids, unit="snippets", names=instances.names)
