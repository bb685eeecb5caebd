"""CSV with one instance per line: `video,label,start,end,score`, times in seconds; annotations have no score."""

import csv
import io

from wtal.annotations import Annotations
from wtal.errors import InputError
from wtal.formats.form import FormatHints
from wtal.formats.rows import RowReader, in_writing_order
from wtal.reading import refusing

TITLE = "CSV"
KIND = "text"
HOLDS = frozenset({"several videos", "scores"})
COLUMNS = ("video", "label", "start", "end", "score")


def read(content: str, rows: RowReader, given: FormatHints) -> bool:  # noqa: ARG001  there is nothing to ask
    """Whether there are scores; columns may come in any order, and further ones are ignored."""
    with refusing(rows.path, "is not CSV"):
        lines = csv.DictReader(io.StringIO(content, newline=""))
        there = lines.fieldnames or ()
        missing = [name for name in COLUMNS[:4] if name not in there]
        if missing:
            all_of_them = ",".join(COLUMNS)
            raise InputError(f"{rows.path}: no column {', '.join(missing)} in the first line; wanted {all_of_them}")
        wanted = [name for name in COLUMNS if name in there]
        for line in lines:
            where = f"line {lines.line_num}"
            if not line["video"] or any(line[name] is None for name in wanted):
                raise InputError(f"{rows.path}: {where} is not whole; wanted {','.join(wanted)}")
            score = line.get("score", 1.0)
            rows.add(line["video"], line["label"], line["start"], line["end"], score, where=where)
    return "score" in there


def write(content: Annotations, given: FormatHints) -> str:  # noqa: ARG001
    """One line per instance: videos by name, the best instance first; a video without any has no line.

    >>> from wtal.annotations import Video
    >>> from wtal.instances import Instances
    >>> video = Video("", None, Instances([[1.0, 2.5]], [0.5]))
    >>> write(Annotations(("Run",), {"a": video}, predicted=True), FormatHints())
    'video,label,start,end,score\\na,Run,1.0,2.5,0.5\\n'
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    columns = len(COLUMNS) if content.predicted else len(COLUMNS) - 1
    writer.writerow(COLUMNS[:columns])
    for video, rows in in_writing_order(content):
        writer.writerows((video, *row)[:columns] for row in rows)
    return file.getvalue()
