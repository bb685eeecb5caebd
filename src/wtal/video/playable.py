"""Video files as browsers play them: the file itself, or a copy of it that is made once and kept in a cache folder.

H.264 in MP4 is what all of today's browsers play. The copy is on the clock that features are extracted by, so that a
second on the page is a second of the instances.
"""

import hashlib
import heapq
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from wtal.errors import MissingExtraError
from wtal.files import written_whole
from wtal.reading import refusing
from wtal.video.decode import opened, probe, timed

#: what browsers play: by the ending of a file its type, and the codecs that may be inside
_PLAYED = {
    ".mp4": ("video/mp4", {"h264", "vp9", "av1", "aac", "mp3", "opus", "flac"}),
    ".m4v": ("video/mp4", {"h264", "vp9", "av1", "aac", "mp3", "opus", "flac"}),
    ".webm": ("video/webm", {"vp8", "vp9", "av1", "opus", "vorbis"}),
}
#: ticks a second of a copy's pictures: all usual frame rates are whole numbers of them
_TICKS = 90_000
#: samples a second of its sound
_RATE = 48_000
_making: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)


def browser_type(path: Path) -> str | None:
    """The media type under which browsers play this file as it is; None if they do not.

    Where nothing is installed that can look into it, the ending of its name is believed.
    """
    kind, codecs = _PLAYED.get(path.suffix.lower(), ("", set()))
    if not kind:
        return None
    try:
        with refusing(path), opened(path) as (container, stream):
            inside = {one.codec_context.name for one in (stream, *container.streams.audio)}
            plain = stream.codec_context.pix_fmt in (None, "yuv420p", "yuvj420p")
    except MissingExtraError:
        return kind
    return kind if plain and {_codec(name) for name in inside} <= codecs else None


def playable(path: Path, cache: Path | None = None) -> tuple[Path, str]:
    """A file with the same pictures and sound that browsers play, and its media type.

    Args:
        path: A video file of any kind.
        cache: Folder for copies, which are atomic and made once; by default wtal/videos in the user's cache folder.
    """
    kind = browser_type(path)
    if kind is not None:
        return path, kind
    about = path.stat()
    identity = f"{path.resolve()}\0{about.st_size}\0{about.st_mtime_ns}"
    name = hashlib.blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    copy = (cache or default_cache()) / f"{name}.mp4"
    with _making[copy]:  # who asks for it while it is made waits for it
        if not copy.exists():
            probe(path)  # what is no video, or cannot be looked into, is said before anything is written
            with written_whole(copy, "wb") as file, refusing(path, "cannot be made playable in a browser"):
                _transcode(path, file)
    return copy, "video/mp4"


def default_cache() -> Path:
    """Where copies lie if no other folder is named."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wtal" / "videos"


def _codec(name: str) -> str:
    """A codec by the name of its format, where decoders have names of their own.

    >>> _codec("libdav1d"), _codec("mp3float"), _codec("h264")
    ('av1', 'mp3', 'h264')
    """
    own = {"libdav1d": "av1", "libaom-av1": "av1", "libvpx": "vp8", "libvpx-vp9": "vp9", "libopus": "opus"}
    return own.get(name, name.removesuffix("float"))


def _transcode(path: Path, file: Any) -> None:
    import av

    with av.open(file, "w", format="mp4") as copy:
        with opened(path) as (container, stream):
            pictures: Any = copy.add_stream("libx264", rate=25, options={"preset": "veryfast", "crf": "23"})
            # an encoder of 4:2:0 takes pairs of rows and columns
            pictures.width, pictures.height = (max(2, side // 2 * 2) for side in (stream.width, stream.height))
            pictures.pix_fmt = "yuv420p"
            pictures.codec_context.time_base = pictures.time_base = Fraction(1, _TICKS)
            pictures.codec_context.gop_size = 50  # seeking is what such a page is for
            pictures.codec_context.sample_aspect_ratio = stream.sample_aspect_ratio or 1
            sound: Any = copy.add_stream("aac", rate=_RATE, layout="stereo") if container.streams.audio else None
        resampler = av.AudioResampler(format="fltp", layout="stereo", rate=_RATE, frame_size=1024)
        for _, _, frame in heapq.merge(_pictures(path), _sound(path), key=lambda one: one[:2]):
            if isinstance(frame, av.VideoFrame):
                same = frame.reformat(width=pictures.width, height=pictures.height, format="yuv420p")
                copy.mux(pictures.encode(same))
            else:
                for part in resampler.resample(frame):
                    copy.mux(sound.encode(part))
        copy.mux(pictures.encode())
        if sound is not None:
            for part in resampler.resample(None):
                copy.mux(sound.encode(part))
            copy.mux(sound.encode())


def _pictures(path: Path) -> Iterator[tuple[Fraction, int, Any]]:
    with opened(path) as (container, stream):
        last = -1
        for begin, _, frame in timed(path, container, stream):
            # decoders of old formats mark frames with what they were; the encoder has to choose for itself
            frame.pict_type = 0
            frame.time_base, last = Fraction(1, _TICKS), max(last + 1, round(begin * _TICKS))
            frame.pts = last
            yield begin, 0, frame


def _sound(path: Path) -> Iterator[tuple[Fraction, int, Any]]:
    import av

    with opened(path) as (container, _):
        if not container.streams.audio:
            return
        start = Fraction(container.start_time or 0, 1_000_000)
        try:
            for frame in container.decode(audio=0):
                if frame.pts is None or frame.time_base is None:
                    continue
                frame.pts = max(0, round(frame.pts - start / frame.time_base))
                yield frame.pts * frame.time_base, 1, frame
        except av.FFmpegError:
            return  # sound that ends in damage is not worth the pictures
