"""Confidence from tags alone: how likely it is that the class of a found instance is right.

An instance of a class that its video does not carry is wrong for certain, whatever its times. So videos with tags that
the model has not learned from tell how often instances of a score have the right class, without any annotation of time.
That is all it tells: the class is right, not the boundary.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.decide import prominence, standing
from wtal.errors import InputError
from wtal.evaluate.target_quality import calibration, calibration_error
from wtal.instances import Instances

#: Each video's confidence is checked with a fit to the other parts of the videos, one of so many.
PARTS = 5


@dataclass(frozen=True, eq=False)
class Judged:
    """Instances of tagged videos: how prominent each is, whether its class is among the tags, its video's number."""

    prominence: Float[np.ndarray, " n"]
    right: Bool[np.ndarray, " n"]
    videos: Int[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.prominence)

    def __getitem__(self, chosen: Bool[np.ndarray, " n"]) -> "Judged":
        return Judged(self.prominence[chosen], self.right[chosen], self.videos[chosen])


@dataclass(frozen=True, eq=False)
class Reliability:
    """What a confidence says and what comes true, in bins: mean confidence, share that is right, number of instances.

    Every instance's confidence is of a fit that did not see its video.
    """

    mean: Float[np.ndarray, " b"]
    share: Float[np.ndarray, " b"]
    n: Int[np.ndarray, " b"]

    @property
    def error(self) -> float:
        """The expected calibration error, in points."""
        return calibration_error(self.mean, self.share, self.n)


@dataclass(frozen=True)
class Calibration:
    """From an instance's prominence to the probability that its class is right: steps that only rise.

    Calling it takes what `wtal.decide.prominence` gives; between the steps it interpolates.

    Args:
        low: The least prominence of each step.
        high: The greatest.
        confidence: The probability at each step.
        found: How many instances each step was fitted to.
        videos: How many tagged videos those were found in.
        source: What these videos were, in words.
        error: Cross-validated expected calibration error in points; None: too few videos.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    confidence: tuple[float, ...]
    found: tuple[int, ...]
    videos: int
    source: str = ""
    error: float | None = None

    def __post_init__(self) -> None:
        knots = [end for step in zip(self.low, self.high, strict=False) for end in step]
        sizes = {len(self.low), len(self.high), len(self.confidence), len(self.found)}
        rises = knots == sorted(knots) and list(self.confidence) == sorted(self.confidence)
        if len(sizes) != 1 or not knots or not rises or not 0 <= self.confidence[0] <= self.confidence[-1] <= 1:
            raise InputError("a calibration is one or more steps whose ends and probabilities rise")

    def __call__(self, prominence: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The probability that the class is right, for each instance."""
        knots = np.array([self.low, self.high]).T.ravel()
        return np.interp(prominence, knots, np.repeat(self.confidence, 2))

    def least_for(self, precision: float) -> float:
        """The least confidence with which, of all instances that have it or more, this share has the right class.

        >>> Calibration((0.1, 0.4), (0.3, 0.9), (0.5, 0.9), (10, 10), 5).least_for(0.8)
        0.9
        """
        if not 0 < precision <= 1:
            raise InputError(f"precision is a share above 0 and up to 1, such as 0.8; got {precision}")
        found, likely = np.array(self.found[::-1], np.float64), np.array(self.confidence[::-1])
        reached = np.cumsum(found * likely) / np.cumsum(found)
        enough = np.flatnonzero(reached >= precision)
        if not len(enough):
            raise InputError(
                f"no instance is sure enough for a precision of {precision:g}: the surest ones, of the {self.videos} "
                f"videos that confidence was fitted to, have {reached[0]:.2f}; ask for less, or fit it to more videos"
            )
        return float(likely[enough[-1]])


def judged(found: Mapping[str, Instances], tags: Mapping[str, Collection[int]]) -> Judged:
    """What decisions would be made from in videos with tags, and whether their class is among the tags.

    Args:
        found: The ranked list of each video, as a model gives it that knows nothing of the video's tags: of all
            classes that it finds likely.
        tags: The class numbers that each video carries; videos without any are left out, since theirs may not be known.
    """
    values, right, videos = [np.zeros(0)], [np.zeros(0, bool)], [np.zeros(0, np.int64)]
    for number, name in enumerate(sorted(name for name in found if tags.get(name))):
        chosen = standing(found[name])
        values.append(prominence(chosen))
        right.append(np.isin(chosen.class_ids, list(tags[name])))
        videos.append(np.full(len(chosen), number))
    return Judged(np.concatenate(values), np.concatenate(right), np.concatenate(videos))


def fit(evidence: Judged, source: str = "") -> Calibration | None:
    """The monotone steps nearest to what is right (isotonic regression); None where nothing was found.

    Few videos never make certain: a video's worth of imagined instances, wrong ones at the top and right ones at the
    bottom, is part of the fit.

    Args:
        evidence: Instances in videos that the model has not learned from.
        source: What these videos are, in words.
    """
    if not len(evidence):
        return None
    steps = _steps(evidence)
    checked = reliability(evidence)
    error = None if checked is None else round(checked.error, 2)
    return replace(steps, source=source, error=error)


def _steps(evidence: Judged) -> Calibration:
    from scipy.optimize import isotonic_regression

    values, where = np.unique(evidence.prominence, return_inverse=True)
    n = np.bincount(where)
    share = np.bincount(where, evidence.right) / n
    videos = len(np.unique(evidence.videos))
    imagined = len(evidence) / videos
    fitted = isotonic_regression(np.r_[1.0, share, 0.0], weights=np.r_[imagined, n, imagined])
    likely = fitted.x[1:-1]
    first = np.flatnonzero(np.diff(likely, prepend=-1.0) > 1e-9)
    last = np.append(first[1:], len(likely)) - 1
    counts = np.add.reduceat(n, first)
    return Calibration(
        tuple(values[first].tolist()),
        tuple(values[last].tolist()),
        tuple(np.round(likely[first], 4).tolist()),
        tuple(counts.tolist()),
        videos,
    )


def reliability(evidence: Judged, *, bins: int = 10) -> Reliability | None:
    """How far the confidence holds in videos that it was not fitted to; None if there are too few videos to tell."""
    numbers = np.unique(evidence.videos)
    if len(numbers) < 2:
        return None
    part = np.searchsorted(numbers, evidence.videos) % min(PARTS, len(numbers))
    said = np.zeros(len(evidence))
    for one in np.unique(part):
        mine = part == one
        said[mine] = _steps(evidence[~mine])(evidence.prominence[mine])
    return Reliability(*calibration(said, evidence.right, bins=bins))
