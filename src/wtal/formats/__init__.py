"""Annotation and prediction files: tolerant readers, strict writers; the suffix chooses the format.

A new format of predictions is one module with `read_predictions` and `write_predictions`, and a line in `FORMATS`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from wtal.errors import InputError
from wtal.formats import activitynet, csv
from wtal.formats.activitynet import read_annotations, write_annotations
from wtal.instances import Instances, Unit, wanted_predictions
from wtal.typed import as_path

__all__ = ["FORMATS", "read_annotations", "read_predictions", "write_annotations", "write_predictions"]

#: suffix of a file of predictions -> the module that reads and writes it
FORMATS: dict[str, ModuleType] = {".json": activitynet, ".csv": csv}


def read_predictions(path: Path | str, classes: Sequence[str], unit: Unit = "seconds") -> dict[str, Instances]:
    """Read predicted instances.

    Args:
        path: ActivityNet JSON (`.json`), or a `.csv` file with columns video, label, start, end, score.
        classes: Class names; a label's position among them becomes the class id.
        unit: What the file counts in, since such files do not say.

    Returns:
        The instances of each video, by the video's name.
    """
    found: dict[str, Instances] = _format(path).read_predictions(path, classes, unit)
    return found


def write_predictions(path: Path | str, predictions: Mapping[str, Instances], classes: Sequence[str]) -> None:
    """Write predicted instances.

    Args:
        path: The file; its suffix says the form: `.json` (ActivityNet) or `.csv`.
        predictions: Instances of each video in seconds, by the video's name.
        classes: Class names; class id `i` is written as `classes[i]`.
    """
    wanted_predictions(predictions)
    _format(path).write_predictions(path, predictions, classes)


def _format(path: Path | str) -> ModuleType:
    suffix = as_path(path, "path").suffix.lower()
    if suffix not in FORMATS:
        got = f"ends with {suffix}" if suffix else "has no ending"
        raise InputError(f"{path} {got}; files of predictions end with {' or '.join(FORMATS)}")
    return FORMATS[suffix]
