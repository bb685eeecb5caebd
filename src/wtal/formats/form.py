"""What a format may have to be told beside the file."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

from wtal.errors import InputError
from wtal.named import without_ending


@dataclass(frozen=True)
class FormatHints:
    """What the user says, since not every format does.

    Args:
        fps: Frames per second, for formats that count frames.
        media: Where a video lies; `{name}` stands for its name.
        video: The name of the video that a file of one video is about.
    """

    fps: float | None = None
    media: str = "{name}.mp4"
    video: str = ""

    def media_of(self, name: str) -> str:
        """Where this video lies."""
        return self.media.replace("{name}", name)

    def frames_per_second(self, what: str) -> float:
        """The frame rate, which `what` cannot be read or written without."""
        if self.fps is None:
            raise InputError(f"{what} counts in frames: say how many the videos have in a second, such as `fps=25`")
        return self.fps

    def frames(self, what: str, start_s: float, end_s: float) -> tuple[int, int]:
        """The frames `[first, end)` of a segment, counted from 0; there is one at least.

        >>> FormatHints(fps=25).frames("this", 1.0, 1.001)
        (25, 26)
        """
        fps = self.frames_per_second(what)
        first = round(start_s * fps)
        return first, max(first + 1, round(end_s * fps))


def name_of(media: str) -> str:
    """The name of the video at a path or an address.

    >>> name_of("file:///D:/clips/my%20clip.mp4"), name_of("/data/local-files/?d=clips/a.mp4"), name_of("v_1.5")
    ('my clip', 'a', 'v_1.5')
    """
    if "://" in media or media.startswith("/data/"):  # an address, or a path on a Label Studio server
        parts = urlsplit(media)
        media = parse_qs(parts.query).get("d", [unquote(parts.path)])[0]
    return without_ending(PurePosixPath(media.replace("\\", "/")).name)
