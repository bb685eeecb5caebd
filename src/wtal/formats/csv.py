"""CSV with one instance per line: `video,label,start,end,score`, times in seconds."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from wtal.errors import InputError
from wtal.files import written_whole
from wtal.formats.rows import RowReader, in_writing_order
from wtal.instances import Instances, Unit
from wtal.reading import read_text, refusing

COLUMNS = ("video", "label", "start", "end", "score")


def read_predictions(path: Path | str, classes: Sequence[str], unit: Unit = "seconds") -> dict[str, Instances]:
    """The instances of each video; columns may come in any order, and further ones are ignored.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pred.csv"
    >>> write_predictions(path, {"a": Instances([[1.0, 2.5]], [0.5], [0])}, ["Run"])
    >>> path.read_text()
    'video,label,start,end,score\\na,Run,1.0,2.5,0.5\\n'
    >>> read_predictions(path, ["Run"])["a"].segments.tolist()
    [[1.0, 2.5]]
    """
    rows = RowReader(path, classes)
    text = read_text(Path(path), newline="")
    with refusing(path, "is not CSV"):
        lines = csv.DictReader(io.StringIO(text, newline=""))
        missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            raise InputError(f"{path}: no column {', '.join(missing)} in the first line; wanted {','.join(COLUMNS)}")
        for line in lines:
            where = f"line {lines.line_num}"
            if not line["video"] or line["score"] is None:
                raise InputError(f"{path}: {where} is not whole; wanted {','.join(COLUMNS)}")
            rows.add(line["video"], line["label"], line["start"], line["end"], line["score"], where=where)
    return rows.instances(unit)


def write_predictions(path: Path | str, predictions: Mapping[str, Instances], classes: Sequence[str]) -> None:
    """Write one line per instance: videos by name, the best instance first; a video without any has no line."""
    with written_whole(Path(path)) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for video, rows in in_writing_order(predictions, classes):
            writer.writerows((video, *row) for row in rows)
