"""Annotation and prediction files: tolerant readers, strict writers; the suffix chooses the format."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from wtal.formats import activitynet, csv
from wtal.formats.activitynet import read_annotations, write_annotations
from wtal.instances import Instances, Unit

__all__ = ["read_annotations", "read_predictions", "write_annotations", "write_predictions"]


def read_predictions(path: Path | str, classes: Sequence[str], unit: Unit = "seconds") -> dict[str, Instances]:
    """The instances of each video in a `.csv` file, or in ActivityNet JSON under any other suffix.

    `unit` is what the file counts in, since such files do not say.
    """
    if Path(path).suffix.lower() == ".csv":
        return csv.read_predictions(path, classes, unit)
    return activitynet.read_predictions(path, classes, unit)


def write_predictions(path: Path | str, predictions: Mapping[str, Instances], classes: Sequence[str]) -> None:
    """Write the instances of each video as CSV if the suffix is `.csv`, else as ActivityNet JSON."""
    if Path(path).suffix.lower() == ".csv":
        csv.write_predictions(path, predictions, classes)
    else:
        activitynet.write_predictions(path, predictions, classes)
