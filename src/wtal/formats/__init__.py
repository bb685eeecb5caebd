"""Annotation and prediction files: tolerant readers, strict writers; the suffix chooses the format."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from wtal.formats import activitynet, csv
from wtal.formats.activitynet import read_annotations, write_annotations
from wtal.instances import Instances, Unit

__all__ = ["read_annotations", "read_predictions", "write_annotations", "write_predictions"]


def read_predictions(path: Path | str, classes: Sequence[str], unit: Unit = "seconds") -> dict[str, Instances]:
    """Read predicted instances.

    Args:
        path: A `.csv` file with columns video, label, start, end, score; or ActivityNet JSON under any other suffix.
        classes: Class names; a label's position among them becomes the class id.
        unit: What the file counts in, since such files do not say.

    Returns:
        The instances of each video, by the video's name.
    """
    if Path(path).suffix.lower() == ".csv":
        return csv.read_predictions(path, classes, unit)
    return activitynet.read_predictions(path, classes, unit)


def write_predictions(path: Path | str, predictions: Mapping[str, Instances], classes: Sequence[str]) -> None:
    """Write predicted instances.

    Args:
        path: The file: CSV if its suffix is `.csv`, else ActivityNet JSON.
        predictions: Instances of each video in seconds, by the video's name.
        classes: Class names; class id `i` is written as `classes[i]`.
    """
    if Path(path).suffix.lower() == ".csv":
        csv.write_predictions(path, predictions, classes)
    else:
        activitynet.write_predictions(path, predictions, classes)
