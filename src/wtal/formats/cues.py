"""Cues, of which subtitles consist: a time line `start --> end`, and below it the text that is shown."""

import html
import re
from collections.abc import Iterable, Iterator

from wtal.errors import InputError
from wtal.formats.rows import Row, RowReader

_STAMP = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMES = re.compile(rf"\s*{_STAMP}\s*-->\s*{_STAMP}(?:\s.*)?$")
#: markup of either format (<i>, <c.yellow>, <v Ann>, <00:01.000>, {\an8}), and nothing else that is in brackets
_MARKUP = re.compile(r"</?(?:[biuc]|ruby|rt|v|lang|font)(?:[.\s][^<>]*)?>|<[\d:.]+>|\{\\[^{}]*\}", re.IGNORECASE)
_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def add_cues(text: str, rows: RowReader, video: str) -> None:
    """The cues of a text as instances, labelled with what they say; blocks without a time line are none."""
    rows.video(video)
    for number, block in enumerate(_blocks(text), start=1):
        at = next((i for i, line in enumerate(block) if "-->" in line), None)
        if at is None:
            continue
        where = f"cue {number}"
        times = _TIMES.match(block[at])
        if times is None:
            raise InputError(
                f"{rows.path}: {where} has the time line {block[at][:60]!r}; wanted 0:00:01.500 --> 0:00:04"
            )
        start, end = _seconds(times.groups()[:4]), _seconds(times.groups()[4:])
        label = html.unescape(_MARKUP.sub("", " ".join(line.strip() for line in block[at + 1 :]))).strip()
        rows.add(video, label, start, end, where=where)


def cue_lines(rows: Iterable[Row], comma: str) -> Iterator[str]:
    """Time line and text of each row; whatever a player could take for markup is escaped.

    >>> list(cue_lines([("<b>", 1.5, 4.0, 1.0)], ","))
    ['00:00:01,500 --> 00:00:04,000\\n&lt;b&gt;']
    """
    for label, start, end, _ in rows:
        first = max(0, round(start * 1000))
        last = max(first + 1, round(end * 1000))
        text = html.escape(_BREAKS.sub(" ", label), quote=False)
        yield f"{_clock(first, comma)} --> {_clock(last, comma)}\n{text}"


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in [*re.split(r"\r\n|\r|\n", text), ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _seconds(stamp: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = stamp
    whole = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return float(f"{whole}.{fraction or 0}")


def _clock(milliseconds: int, comma: str) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{comma}{rest:03d}"
