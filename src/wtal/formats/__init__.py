"""Annotation and prediction files: tolerant readers, strict writers; the suffix chooses the format.

A new format of predictions is one module with `read_predictions` and `write_predictions`, and a line in `FORMATS`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from wtal.errors import InputError
from wtal.formats import activitynet, csv
from wtal.formats.activitynet import read_annotations, write_annotations
from wtal.instances import Instances, Unit

__all__ = ["FORMATS", "read_annotations", "read_predictions", "write_annotations", "write_predictions"]

#: suffix of a file of predictions -> the module that reads and writes it
FORMATS: dict[str, ModuleType] = {".json": activitynet, ".csv": csv}


def read_predictions(path: Path | str, classes: Sequence[str], unit: Unit = "seconds") -> dict[str, Instances]:
    """The instances of each video in a `.json` (ActivityNet) or `.csv` file.

    `unit` is what the file counts in, since such files do not say.
    """
    found: dict[str, Instances] = _format(path).read_predictions(path, classes, unit)
    return found


def write_predictions(path: Path | str, predictions: Mapping[str, Instances], classes: Sequence[str]) -> None:
    """Write the instances of each video as the suffix says: `.json` (ActivityNet) or `.csv`."""
    _format(path).write_predictions(path, predictions, classes)


def _format(path: Path | str) -> ModuleType:
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        got = f"ends with {suffix}" if suffix else "has no ending"
        raise InputError(f"{path} {got}; files of predictions end with {' or '.join(FORMATS)}")
    return FORMATS[suffix]
