"""Mean average precision: the number that papers compare."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.annotations import Annotations
from wtal.errors import InputError
from wtal.evaluate.ambiguous import Intervals
from wtal.evaluate.inputs import Case, prepare
from wtal.evaluate.matching import match
from wtal.evaluate.protocols import Protocol
from wtal.instances import Instances
from wtal.notebook import data_frame, table


@dataclass(frozen=True, eq=False)
class Score:
    """Average precision in percent of each class at each threshold, and on what it was measured.

    Args:
        protocol: Name of the protocol.
        tiou: Its tIoU thresholds.
        classes: Names of the classes that have a true instance.
        ap: Average precision of each of these classes at each threshold.
        averages: The ranges of thresholds that are reported as one number.
        n_videos: Number of evaluated videos.
        n_truth: Number of true instances in them.
        n_predictions: Number of predictions that were ranked.
        n_ambiguous: Predictions that the ambiguity list dropped; None if the list was off.
    """

    protocol: str
    tiou: tuple[float, ...]
    classes: tuple[str, ...]
    ap: Float[np.ndarray, "k t"]
    averages: tuple[tuple[float, float], ...]
    n_videos: int
    n_truth: int
    n_predictions: int
    n_ambiguous: int | None

    @property
    def map(self) -> Float[np.ndarray, " t"]:
        """The mean over classes at each threshold."""
        return self.ap.mean(axis=0)

    @property
    def at(self) -> dict[float, float]:
        """The same by threshold."""
        return dict(zip(self.tiou, self.map.tolist(), strict=True))

    @property
    def average(self) -> dict[str, float]:
        """The mean over each of the protocol's ranges of thresholds, both ends included, by name."""
        inside = {f"{low}:{high}": [low <= threshold <= high for threshold in self.tiou] for low, high in self.averages}
        return {name: float(self.map[chosen].mean()) for name, chosen in inside.items()}

    @property
    def headline(self) -> float:
        """The number that papers compare: the mean over the widest range of thresholds."""
        return headline(self.average)[1]

    def __repr__(self) -> str:
        average = ", ".join(f"{value:.1f} over tIoU {name}" for name, value in self.average.items())
        return f"Score({self.protocol}: mAP {average}; {len(self.classes)} classes, {self.n_videos} videos)"

    def _repr_html_(self) -> str:
        rows = [["mAP (%)", *(f"{value:.1f}" for value in self.map)]]
        rows += [[name, *(f"{value:.1f}" for value in row)] for name, row in zip(self.classes, self.ap, strict=True)]
        return f"<div>{escape(repr(self))}</div>{table(['tIoU', *(f'{t:g}' for t in self.tiou)], rows)}"

    def to_pandas(self) -> Any:
        """Average precision in percent as a DataFrame: a row for each class, a column for each tIoU (needs pandas)."""
        return data_frame(dict(zip(self.tiou, self.ap.T, strict=True)), index=list(self.classes))

    def as_dict(self) -> dict[str, Any]:
        """All but the classes as plain values to be written as JSON."""
        return {
            "protocol": self.protocol,
            "tiou": list(self.tiou),
            "map": [round(value, 4) for value in self.map.tolist()],
            "average": {name: round(value, 4) for name, value in self.average.items()},
            "ambiguous": {"used": self.n_ambiguous is not None, "dropped": self.n_ambiguous or 0},
            "n_videos": self.n_videos,
            "n_truth": self.n_truth,
            "n_predictions": self.n_predictions,
        }


def headline(average: Mapping[str, float]) -> tuple[str, float]:
    """Of a score's averages the one over the widest range, which protocols name last.

    >>> headline({"0.1:0.5": 60.0, "0.3:0.7": 40.0, "0.1:0.7": 50.0})
    ('0.1:0.7', 50.0)
    """
    return list(average.items())[-1]


def score(
    predictions: Mapping[str, Instances],
    annotations: Annotations,
    *,
    protocol: str | Protocol = "thumos14",
    split: str | None = None,
    ambiguous: Intervals | None = None,
) -> Score:
    """The mean average precision (mAP) of predictions under a protocol.

    Args:
        predictions: Instances of each video, by the video's name.
        annotations: The truth.
        protocol: A name in `PROTOCOLS`, or a protocol of your own.
        split: Evaluates the videos of this split instead of the protocol's own.
        ambiguous: Drops predictions that touch these intervals (`wtal.evaluate.read_ambiguous`).

    Returns:
        Average precision by class and threshold; `average` has the numbers that papers report.
    """
    return mean_average_precision(
        prepare(predictions, annotations, protocol=protocol, split=split, ambiguous=ambiguous)
    )


def mean_average_precision(case: Case) -> Score:
    """The average precision of every class that has truth; one without predictions counts 0, for itself only.

    >>> from wtal.annotations import Video
    >>> truth = Instances([[0.0, 4.0], [5.0, 9.0]], class_ids=[0, 1])
    >>> known = Annotations(("Run", "Jump"), {"a": Video("test", 60.0, truth)})
    >>> mean_average_precision(prepare({"a": truth[:1]}, known)).map.tolist()
    [50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0]
    """
    if not len(case.truth):
        raise InputError("there is no true instance in these videos, so there is nothing to score against")
    right = match(case, case.protocol.tiou) >= 0
    return Score(
        case.protocol.name,
        case.protocol.tiou,
        tuple(case.classes[class_id] for class_id in case.class_ids.tolist()),
        100.0 * ap_per_class(right, case.predictions.class_ids, case.truth.class_ids),
        case.protocol.averages,
        case.n_videos,
        len(case.truth),
        len(case.predictions),
        case.n_ambiguous,
    )


def ap_per_class(
    right: Bool[np.ndarray, "n t"], class_ids: Int[np.ndarray, " n"], truth_class_ids: Int[np.ndarray, " m"]
) -> Float[np.ndarray, "k t"]:
    """The interpolated average precision of each class that has truth, in the order of their numbers."""
    present, n_truth = np.unique(truth_class_ids, return_counts=True)
    by_class = np.argsort(class_ids, kind="stable")
    first, past = (np.searchsorted(class_ids[by_class], present, side=side) for side in ("left", "right"))
    ap = [interpolated_ap(right[by_class[f:p]], int(n)) for f, p, n in zip(first, past, n_truth, strict=True)]
    return np.array(ap, np.float64).reshape(len(present), right.shape[1])


def interpolated_ap(right: Bool[np.ndarray, "n t"], n_truth: int) -> Float[np.ndarray, " t"]:
    """Area under the precision-recall curve, precision taken as the best at that recall or beyond (VOC 2011).

    One column per threshold, best prediction first. No prediction at all gives 0.

    >>> interpolated_ap(np.array([[True], [False], [True]]), n_truth=2).round(4).tolist()
    [0.8333]
    """
    if n_truth < 1:
        raise ValueError("average precision needs at least one true instance")
    precision = np.cumsum(right, axis=0) / np.arange(1, len(right) + 1)[:, None]
    best_beyond = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
    return (best_beyond * right).sum(axis=0) / n_truth
