"""How good snippet targets are: against the true instances of the training videos, which training never sees."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.annotations import Annotations
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.timebase import TimeBase


@dataclass(frozen=True, eq=False)
class TargetQuality:
    """Snippet average precision in percent of each class that has truth, over the videos that hold the class."""

    classes: tuple[str, ...]
    ap: Float[np.ndarray, " k"]

    @property
    def mean(self) -> float:
        """The mean over classes."""
        return float(self.ap.mean())


Curves = Mapping[str, Float[np.ndarray, "_ _"]]
"""A value for each snippet and class of each video, by its name."""
Clock = TimeBase | Mapping[str, TimeBase]
"""One time base for all videos, or each video's own by its name."""


def target_quality(targets: Curves, annotations: Annotations, timebase: Clock) -> TargetQuality:
    """How well each class's targets rank the snippets of the videos that hold it: inside an action above outside.

    Any curve over snippets can stand for targets: G, ΔG, or the TCAM itself, which targets ought to beat.

    >>> from wtal.annotations import Video
    >>> truth = Annotations(("Run",), {"a": Video("train", None, Instances([[1.28, 2.56]]))})
    >>> target_quality({"a": np.array([[0.0], [0.1], [0.9], [0.8], [0.0]])}, truth, TimeBase()).mean
    100.0
    """
    names, ap = [], []
    for name, values, right in _paired(targets, annotations, timebase):
        names.append(name)
        ap.append(100.0 * average_precision(values, right))
    return TargetQuality(tuple(names), np.array(ap))


def target_calibration(
    targets: Curves, annotations: Annotations, timebase: Clock, *, bins: int = 10
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"], Int[np.ndarray, " b"]]:
    """See `calibration`, over all classes' targets in the videos that hold the class.

    >>> from wtal.annotations import Video
    >>> truth = Annotations(("Run",), {"a": Video("train", None, Instances([[1.28, 2.56]]))})
    >>> mean, share, n = target_calibration({"a": np.array([[0.0], [0.1], [0.9], [0.8], [0.0]])}, truth, TimeBase())
    >>> share.tolist(), n.tolist()
    ([0.0, 0.0, 1.0, 1.0], [2, 1, 1, 1])
    """
    pairs = list(_paired(targets, annotations, timebase))
    return calibration(np.concatenate([p[1] for p in pairs]), np.concatenate([p[2] for p in pairs]), bins=bins)


def _paired(
    targets: Curves, annotations: Annotations, timebase: Clock
) -> Iterator[tuple[str, Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]]:
    """Each class that has truth here: its targets in the videos that hold it, and which snippets are in an action."""
    unknown = sorted(targets.keys() - annotations.videos.keys())
    if unknown:
        raise InputError(
            f"targets of {len(unknown)} videos that the annotations do not have, the first is {unknown[0]}"
        )
    holding: dict[int, list[str]] = {}
    for video in targets:
        for class_id in np.unique(annotations.videos[video].instances.class_ids).tolist():
            holding.setdefault(class_id, []).append(video)
    anything = False
    for class_id, videos in sorted(holding.items()):
        ranked, right = [], []
        for video in videos:
            values = targets[video][:, class_id].astype(np.float64)
            clock = timebase if isinstance(timebase, TimeBase) else timebase[video]
            ranked.append(values)
            right.append(inside(annotations.videos[video].instances.of_class(class_id), len(values), clock))
        if np.concatenate(right).any():
            anything = True
            yield annotations.classes[class_id], np.concatenate(ranked), np.concatenate(right)
    if not anything:
        raise InputError("none of these videos has a true instance, so there is nothing to compare targets with")


def inside(actions: Instances, n_snippets: int, timebase: TimeBase) -> Bool[np.ndarray, " t"]:
    """Which snippets have their centre in one of the actions (in seconds).

    >>> inside(Instances([[0.64, 1.28]]), 3, TimeBase()).tolist()
    [False, True, False]
    """
    centres = timebase.to_seconds(np.arange(n_snippets) + 0.5)
    within: Bool[np.ndarray, "n t"] = (actions.starts[:, None] <= centres) & (centres < actions.ends[:, None])
    return np.asarray(within.any(axis=0))


def average_precision(values: Float[np.ndarray, " n"], right: Bool[np.ndarray, " n"]) -> float:
    """Area under the precision-recall curve of a ranking with ties, which count as one place.

    >>> average_precision(np.array([0.5, 0.5, 0.1]), np.array([True, False, True])).__round__(4)
    0.5833
    """
    order = np.argsort(-values, kind="stable")
    last_of_tie = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)
    found = np.cumsum(right[order])[last_of_tie]
    precision = found / (last_of_tie + 1)
    return float(np.diff(found, prepend=0) @ precision / right.sum())


def calibration_error(mean: Float[np.ndarray, " b"], share: Float[np.ndarray, " b"], n: Int[np.ndarray, " b"]) -> float:
    """How far targets are from the share of snippets that are right, in percent: a mean over snippets, bin by bin.

    >>> calibration_error(np.array([0.0, 1.0]), np.array([0.0, 0.5]), np.array([3, 1]))
    12.5
    """
    return 100.0 * float(np.abs(mean - share) @ n / n.sum())


def calibration(
    values: Float[np.ndarray, " n"], right: Bool[np.ndarray, " n"], *, bins: int = 10
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"], Int[np.ndarray, " b"]]:
    """Mean target, share of snippets that are right, and number of snippets, in equal bins of [0, 1].

    Empty bins are left out; targets outside [0, 1] count to the nearest bin.

    >>> mean, share, n = calibration(np.array([0.05, 0.95, 0.95]), np.array([False, True, False]))
    >>> share.tolist(), n.tolist()
    ([0.0, 0.5], [1, 2])
    """
    which = np.clip((values * bins).astype(np.int64), 0, bins - 1)
    count = np.bincount(which, minlength=bins)
    filled = count > 0
    mean = np.bincount(which, values, bins)[filled] / count[filled]
    share = np.bincount(which, right, bins)[filled] / count[filled]
    return mean, share, count[filled]
