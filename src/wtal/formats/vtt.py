"""WebVTT (.vtt): subtitles as browsers show them; one video a file."""

from wtal.annotations import Annotations
from wtal.errors import InputError
from wtal.formats.cues import add_cues, cue_lines
from wtal.formats.form import FormatHints
from wtal.formats.rows import RowReader, in_time, in_writing_order

TITLE = "WebVTT subtitles"
KIND = "text"
HOLDS = frozenset[str]()


def read(content: str, rows: RowReader, given: FormatHints) -> bool:
    """Each cue's text is a label."""
    if not content.startswith("WEBVTT"):
        raise InputError(f"{rows.path}: a WebVTT file begins with WEBVTT, this one with {content[:20]!r}")
    add_cues(content, rows, given.video)
    return False


def write(content: Annotations, given: FormatHints) -> str:  # noqa: ARG001
    """Cues in the order of time."""
    ((_, rows),) = in_writing_order(content)
    return "\n\n".join(["WEBVTT", *cue_lines(in_time(rows), ".")]) + "\n"
