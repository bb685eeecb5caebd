"""Frames of a video file on an even clock: any container and codec that FFmpeg reads, in constant memory.

A frame is placed by its presentation time, so files with a variable frame rate, dropped frames or any other rate come
out at the rate that is asked for: picture k is the one that a player shows in the middle of [k, k + 1) / fps.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped, UInt8

from wtal.errors import InputError, MissingExtraError
from wtal.reading import refusing

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.reformatter import VideoReformatter
    from av.video.stream import VideoStream

#: containers that store no presentation times: what FFmpeg makes up for them is wrong with packed B-frames
_WITHOUT_TIMES = ("avi",)
#: seconds by which a file may end before its header says so
_SLACK_S = 2


@dataclass(frozen=True)
class Geometry:
    """The size of pictures: the shorter side in pixels, and a square cut out of the middle if `crop` is given."""

    short_side: int = 256
    crop: int | None = 224

    def __post_init__(self) -> None:
        if self.short_side < 1 or not 1 <= (self.crop or 1) <= self.short_side:
            raise InputError(f"pictures need 1 <= crop <= short_side, got {self.crop} and {self.short_side}")

    def scaled(self, width: Fraction | int, height: Fraction | int) -> tuple[int, int]:
        """Width and height with the shorter side as wanted.

        >>> Geometry(256).scaled(320, 240), Geometry(256).scaled(1080, 1920)
        ((341, 256), (256, 455))
        """
        short = min(width, height)
        return round(width * self.short_side / short), round(height * self.short_side / short)


def middle_square(pictures: Shaped[np.ndarray, "*n h w c"], side: int) -> Shaped[np.ndarray, "*n {side} {side} c"]:
    """The square in the middle of pictures."""
    top, left = ((length - side) // 2 for length in pictures.shape[-3:-1])
    return pictures[..., top : top + side, left : left + side, :]


@dataclass(frozen=True)
class VideoInfo:
    """What a file's header says about its pictures; `duration_s` is None where it does not say."""

    width: int
    height: int
    fps: float | None
    duration_s: float | None


class Picture:
    """One picture of the even clock; its pixels are made when they are asked for, so unused ones cost nothing."""

    def __init__(
        self, frame: "VideoFrame", size: tuple[int, int], crop: int | None, scaler: "VideoReformatter"
    ) -> None:
        self._frame, self._size, self._crop, self._scaler = frame, size, crop, scaler

    @cached_property
    def pixels(self) -> UInt8[np.ndarray, "h w 3"]:
        """RGB, upright, scaled and cut."""
        frame, (width, height) = self._frame, self._size
        scaled = self._scaler.reformat(
            frame, width=width, height=height, format="rgb24", interpolation="BILINEAR", threads=1
        )
        upright = np.rot90(scaled.to_ndarray(), round(frame.rotation / 90))  # both count counterclockwise
        return np.ascontiguousarray(upright if self._crop is None else middle_square(upright, self._crop))


def probe(path: Path) -> VideoInfo:
    """What the file's header says; a file that is no video is an error that names it."""
    with refusing(path), opened(path) as (container, stream):
        rate = stream.average_rate
        duration = _declared_s(container, stream)
        return VideoInfo(
            stream.width, stream.height, float(rate) if rate else None, float(duration) if duration else None
        )


def read_pictures(path: Path, *, fps: float = 25.0, geometry: Geometry | None = None) -> Iterator[Picture]:
    """The pictures at 0, 1/fps, 2/fps, … seconds; damage is an error that names the file and the time."""
    if not (np.isfinite(fps) and fps > 0):
        raise InputError(f"fps must be a positive number, got {fps}")
    rate, size = Fraction(fps), geometry or Geometry()
    shown: Picture | None = None
    count = 0  # pictures given so far; the next one is at the middle of its interval, half a step later
    with refusing(path), opened(path) as (container, stream):
        from av.video.reformatter import VideoReformatter

        scaler = VideoReformatter()  # one for all frames: each would prepare its own tables otherwise
        end, scaled = Fraction(0), (0, 0)
        for start, until, frame in timed(path, container, stream):
            end = until
            while shown is not None and count + Fraction(1, 2) < start * rate:
                yield shown
                count += 1
            if shown is None:  # a recording may change its size on the way; its pictures do not
                scaled = size.scaled(frame.width * Fraction(stream.sample_aspect_ratio or 1), frame.height)
            shown = Picture(frame, scaled, size.crop, scaler)
        if shown is None:
            raise InputError(f"{path} is damaged or empty: not one frame of its video can be decoded")
        declared = _declared_s(container, stream)
        if declared and end < declared * Fraction(9, 10) - _SLACK_S:
            raise InputError(
                f"{path} is cut off or damaged: it ends at {float(end):.2f} s, but should last {float(declared):.2f} s"
            )
        while count == 0 or count + Fraction(1, 2) < end * rate:
            yield shown
            count += 1


def timed(
    path: Path, container: "InputContainer", stream: "VideoStream"
) -> Iterator[tuple[Fraction, Fraction, "VideoFrame"]]:
    """Frames in the order in which they are shown, each with the seconds at which it begins and ends."""
    timeless = container.format.name in _WITHOUT_TIMES
    usual = 1 / Fraction(stream.average_rate or stream.guessed_rate or 25)
    # a player's clock starts with the container, whose sound may start before the pictures
    origin = None if timeless or container.start_time is None else Fraction(container.start_time, 1_000_000)
    begin = end = Fraction(0)
    first, torn = True, False
    try:
        for packet in container.demux(stream):
            # recordings that were joined have such packets at the seams; at the end it means that more was there
            torn = packet.is_corrupt if packet.size else torn
            for frame in packet.decode():
                if frame.is_corrupt:
                    if first:  # a recording that starts between two key frames
                        continue
                    raise InputError(f"{path} is damaged at {float(end):.2f} s (a frame is not whole)")
                stamp = frame.dts if timeless else frame.pts
                if stamp is None or stream.time_base is None:
                    begin = end
                else:
                    clock = stamp * Fraction(stream.time_base)
                    origin = clock if origin is None else origin
                    # decoders give frames in the order of showing, so a time that goes back is wrong
                    begin = clock - origin if clock - origin > begin or first else end
                lasts = usual if timeless or not frame.duration else frame.duration * (frame.time_base or usual)
                begin, first = max(begin, Fraction(0)), False
                end = begin + lasts
                yield begin, end, frame
    except InputError:
        raise
    except Exception as error:  # FFmpeg's own, and what its wrapper makes of times and rates that cannot be
        raise InputError(f"{path} is damaged at {float(end):.2f} s ({_reason(error)})") from error
    if torn:
        raise InputError(f"{path} is cut off: it ends at {float(end):.2f} s in the middle of a frame")


def _declared_s(container: "InputContainer", stream: "VideoStream") -> Fraction | None:
    """How long the pictures last by the header; unknown where only the whole file's length is, and it has sound."""
    if stream.duration and stream.time_base:
        return stream.duration * Fraction(stream.time_base)
    if tag := stream.metadata.get("DURATION"):  # Matroska: 00:00:04.000000000
        try:
            hours, minutes, seconds = tag.split(":")
            return Fraction(int(hours) * 3600 + int(minutes) * 60) + Fraction(seconds)
        except (ValueError, ZeroDivisionError):
            return None
    alone = len(container.streams) == 1
    return Fraction(container.duration, 1_000_000) if alone and container.duration else None


@contextmanager
def opened(path: Path) -> Iterator[tuple["InputContainer", "VideoStream"]]:
    """The file and the stream of its pictures; what is no video is an error that names it."""
    try:
        import av
        from av.stream import Disposition
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "av", "video") from error
    if not path.is_file():
        raise InputError(f"{path} is {'a folder, not a video file' if path.is_dir() else 'not there'}")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes)")
    try:
        # titles and comments may be in any encoding; we have no use for them
        container = av.open(str(path), metadata_errors="ignore")
    except Exception as error:
        raise InputError(f"{path} is not a video that FFmpeg can read ({_reason(error)})") from error
    with container:
        # the cover picture of a song is a video stream too
        moving = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
        if not moving:
            kinds = sorted({stream.type for stream in container.streams})
            raise InputError(f"{path} has no moving pictures, only {' and '.join(kinds) or 'nothing'}")
        stream = next((s for s in moving if s.disposition & Disposition.default), moving[0])
        stream.thread_type = "AUTO"
        yield container, stream


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
