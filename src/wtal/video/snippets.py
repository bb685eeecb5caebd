"""Snippets: windows of a fixed number of frames, laid on a video at a fixed step, so that a snippet index is a time."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from wtal.errors import InputError
from wtal.timebase import TimeBase
from wtal.video.decode import Picture


@dataclass(frozen=True)
class Sampling:
    """The clock of features: snippet i is the frames [i·stride, i·stride + length) of the video at `fps`."""

    fps: float = 25.0
    """Frames a second that videos are brought to, whatever their own rate."""
    length_frames: int = 16
    """Frames of a snippet."""
    stride_frames: int = 16
    """Frames from one snippet to the next."""

    def __post_init__(self) -> None:
        if self.length_frames < 1 or self.stride_frames < 1:
            raise InputError(
                f"snippets need at least one frame and step, got {self.length_frames} and {self.stride_frames}"
            )
        self.timebase  # noqa: B018  checks the rate

    @property
    def timebase(self) -> TimeBase:
        """How snippets lie in time: grid cell [i, i + 1) has the middle of snippet i's frames in its middle.

        >>> Sampling(stride_frames=8).timebase
        TimeBase(fps=25.0, stride_frames=8.0, offset_snippets=0.5)
        """
        offset = (self.length_frames / self.stride_frames - 1) / 2
        return TimeBase(float(self.fps), float(self.stride_frames), offset)


@dataclass(eq=False)
class SnippetFrames:
    """The snippets of a stream of pictures, from number `start` on; `n_frames` counts the pictures seen.

    `picks` are the frames of a snippet that are wanted, by number; one beyond the snippet's length looks ahead. What
    the video lacks at its end is filled with its last picture, if at least half of the snippet is there; a video
    shorter than that is one snippet.
    """

    pictures: Iterable[Picture]
    sampling: Sampling
    picks: Sequence[int]
    start: int = 0
    n_frames: int = 0

    def __iter__(self) -> Iterator[UInt8[np.ndarray, "p h w 3"]]:
        length, stride = self.sampling.length_frames, self.sampling.stride_frames
        picks = sorted(set(self.picks))
        complete = max(picks[-1], length - 1)  # how many snippets there are must not depend on the picks
        held: deque[tuple[int, UInt8[np.ndarray, "h w 3"]]] = deque()
        number, last = self.start, None
        for index, last in enumerate(self.pictures):
            self.n_frames = index + 1
            # with overlap, a frame may be a different pick of several snippets
            nearest = range(max(number, (index - picks[-1]) // stride), index // stride + 1)
            if any(index - snippet * stride in picks for snippet in nearest):
                held.append((index, last.pixels))
            if index == number * stride + complete:
                yield _stacked(held, number * stride, picks)
                number += 1
                while held and held[0][0] < number * stride:
                    held.popleft()
        if last is None:
            return
        while self.n_frames - number * stride >= length / 2 or number == 0:
            held.append((self.n_frames - 1, last.pixels))
            yield _stacked(held, number * stride, picks)
            number += 1


def _stacked(
    held: Iterable[tuple[int, UInt8[np.ndarray, "h w 3"]]], first: int, picks: Sequence[int]
) -> UInt8[np.ndarray, "p h w 3"]:
    """The picked frames of the snippet that begins at frame `first`; the last one stands for those that are missing."""
    by_index = dict(held)
    last = by_index[max(by_index)]
    return np.stack([by_index.get(first + pick, last) for pick in picks])
