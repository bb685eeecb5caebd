"""SubRip subtitles (.srt): what happens is shown while it happens, in any player; one video a file."""

from wtal.annotations import Annotations
from wtal.formats.cues import add_cues, cue_lines
from wtal.formats.form import FormatHints
from wtal.formats.rows import RowReader, in_time, in_writing_order

TITLE = "SRT subtitles"
KIND = "text"
HOLDS = frozenset[str]()


def read(content: str, rows: RowReader, given: FormatHints) -> bool:
    """Each cue's text is a label."""
    add_cues(content, rows, given.video)
    return False


def write(content: Annotations, given: FormatHints) -> str:  # noqa: ARG001
    """Numbered cues in the order of time.

    >>> from wtal.annotations import Video
    >>> from wtal.instances import Instances
    >>> print(write(Annotations(("Run",), {"a": Video("", None, Instances([[1.0, 2.5]]))}), FormatHints()))
    1
    00:00:01,000 --> 00:00:02,500
    Run
    """
    ((_, rows),) = in_writing_order(content)
    return "\n".join(f"{number}\n{cue}\n" for number, cue in enumerate(cue_lines(in_time(rows), ","), start=1))
