"""Candidates: thresholds cut each class's activation curve into runs, scored by Inner-Outer Contrast."""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int, Shaped

from wtal.compiled import Floats, compiled
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.typed import as_array, check_fields, checked

#: Arrays that a user brings: shapes are checked with an error that says what was wanted, not by annotation.
Curves = Shaped[np.ndarray, "..."]
FlankRounding = Literal["exact", "truncate"]


@dataclass(frozen=True)
class Flanks:
    """How far to look on either side of a segment of `length` snippets: `scale * length ** power`.

    Attributes:
        scale: Width of the flanks of a segment of one snippet.
        power: How the width grows with the length; 1 is in proportion.

    >>> Flanks(0.25).width(np.array([8.0])).tolist()
    [2.0]
    """

    scale: float
    """Width per length, in snippets."""
    power: float = 1.0
    """Below 1, flanks of long segments are relatively narrower."""

    def __post_init__(self) -> None:
        check_fields(self)

    def width(self, lengths: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """Width of one flank for segments of these lengths."""
        return self.scale * lengths**self.power


#: α of the paper's α·(e−s), which gives no value; a quarter is what its base model RSKP uses.
QUARTER = Flanks(0.25)
#: The rule in the authors' released code.
RELEASED_FLANKS = Flanks(0.0785, 0.9)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Runs on the snippet grid.

    Args:
        instances: The runs in snippets; their scores are the contrast q.
        inner: Mean activation inside each run.
    """

    instances: Instances
    inner: Float[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.instances)

    def weighted(self, weight: float) -> "Candidates":
        """The same candidates, their scores and means times `weight`: that of the stream they were found in."""
        found = self.instances
        return Candidates(found.scored(weight * found.scores), weight * self.inner)

    def of_classes(self, class_ids: Int[np.ndarray, " k"]) -> "Candidates":
        """Those of these classes alone."""
        chosen = np.isin(self.instances.class_ids, class_ids)
        return Candidates(self.instances[chosen], self.inner[chosen])

    def moved(self, by: float) -> "Candidates":
        """The same candidates so many snippets later."""
        return Candidates(self.instances.moved(by), self.inner)

    @classmethod
    def concat(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """All candidates of `parts`: one per class, or one per curve where several curves are cut (WUM)."""
        if not parts:
            return cls(Instances.empty("snippets"), np.zeros(0))
        if len(parts) == 1:
            return parts[0]
        return cls(
            Instances.concat([part.instances for part in parts]),
            np.concatenate([part.inner for part in parts]),
        )


def find_candidates(
    tcam: Curves,
    thresholds: Sequence[float] | Float[np.ndarray, " h"],
    *,
    classes: Sequence[int] | Int[np.ndarray, " k"] | None = None,
    cut: Curves | None = None,
    relative: bool = False,
    min_length: float = 2.0,
    dilation: tuple[float, float] = (0.0, 0.0),
    flanks: Flanks = QUARTER,
    flank_rounding: FlankRounding = "exact",
    outer_weight: float = 1.0,
    zero_below: bool = False,
    upsample: int = 1,
    video_scores: Curves | None = None,
    video_score_weight: float = 0.0,
) -> Candidates:
    """Every run above every threshold, in snippets, with its Inner-Outer Contrast as score.

    A run `[s, e)` of at least `min_length` snippets grows by `dilation` snippets before and after and becomes
    a candidate with score `inner - outer_weight * outer + video_score_weight * video_scores[class]`: `inner`
    is the mean activation inside, `outer` the mean over the two flanks, whose width follows from the run's
    length. What lies outside the video does not count; empty flanks have mean 0.

    Args:
        tcam: Activations of one video, (snippets, classes).
        thresholds: The levels at which curves are cut.
        classes: Ids of the classes to look for; all by default.
        cut: The curve that thresholds apply to, where another one scores (WUM, ACM-Net): (snippets,) for all classes,
            or (snippets, classes).
        relative: Whether thresholds are fractions of the cutting curve's range in this video.
        min_length: Shortest run, in snippets.
        dilation: Snippets added before and after each run, before it is scored.
        flanks: How wide the flanks are for a run of a given length.
        flank_rounding: `exact` takes fractions of snippets; `truncate` does as the released code, whose outer ends
            are cut to whole snippets and never reach the last one.
        outer_weight: Weight of the flanks' mean in the score.
        zero_below: Whether activations that the threshold cuts off count as 0 in the contrast (WUM); flanks
            then tell of other runs only.
        upsample: Cells per snippet, by linear interpolation between snippet centres.
        video_scores: Class scores of the whole video, (classes,); needed if they have a weight.
        video_score_weight: Weight of the class's video score in the score.

    Returns:
        The candidates, class by class, level by level, in order of time.

    >>> curve = np.array([[0.0], [0.2], [0.9], [0.8], [0.1], [0.0]])
    >>> found = find_candidates(curve, [0.05, 0.5], flanks=Flanks(0.5))
    >>> found.instances.segments.tolist(), found.instances.scores.round(3).tolist()
    ([[1.0, 5.0], [2.0, 4.0]], [0.5, 0.7])
    """
    tcam, cut = _checked_curves(tcam, cut)
    t, c = tcam.shape
    levels, chosen = _checked_thresholds(thresholds), _checked_classes(classes, c)
    checked(Flanks, flanks, "flanks")
    dilation = checked(tuple[float, float], dilation, "dilation")
    if upsample < 1:
        raise InputError(f"upsample must be 1 or more cells per snippet, got {upsample}")
    if video_score_weight and video_scores is None:
        raise InputError("video_score_weight is not 0, so video_scores are needed: one per class")
    video_scores = None if video_scores is None else as_array(video_scores, "video_scores")
    if video_scores is not None and video_scores.shape != (c,):
        raise InputError(
            f"video_scores must be ({c},) like the TCAM's classes, got {video_scores.shape}; "
            "if its last column is background, give n_classes"
        )
    parts = []
    for class_id in chosen:
        scoring = _upsampled(tcam[:, class_id], upsample)
        cutting = scoring if cut is None else _upsampled(cut if cut.ndim == 1 else cut[:, class_id], upsample)
        low, high = (cutting.min(), cutting.max()) if relative and t else (0.0, 1.0)
        found = runs_with_contrast(
            np.ascontiguousarray(cutting),
            np.ascontiguousarray(scoring),
            low + levels * (high - low) if relative else levels,
            upsample,
            float(min_length),
            float(dilation[0]),
            float(dilation[1]),
            float(flanks.scale),
            float(flanks.power),
            flank_rounding == "truncate",
            float(outer_weight),
            video_score_weight * float(video_scores[class_id]) if video_scores is not None else 0.0,
            zero_below,
        )
        class_ids = np.full(len(found), class_id)
        parts.append(Candidates(Instances.unchecked(found[:, :2], found[:, 2], class_ids, "snippets"), found[:, 3]))
    return Candidates.concat(parts)


def class_columns(values: Curves, n_classes: int, what: str) -> Curves:
    """The columns of the classes (the last axis): all, or all but the last where there is one more, for background.

    >>> class_columns(np.zeros((5, 21)), 20, "the TCAM").shape
    (5, 20)
    """
    if not values.ndim or values.shape[-1] not in (n_classes, n_classes + 1):
        raise InputError(
            f"{what} must have {n_classes} columns, one per class, or {n_classes + 1} with background last; "
            f"got shape {values.shape}. Leave out other columns, or name their classes too"
        )
    return values[..., :n_classes]


def _upsampled(curve: Float[np.ndarray, " t"], factor: int) -> Float[np.ndarray, " cells"]:
    """The curve on `factor` cells per snippet; a snippet's value stands at its centre, the ends stay level."""
    if factor == 1 or len(curve) == 0:
        return curve
    return np.interp((np.arange(len(curve) * factor) + 0.5) / factor - 0.5, np.arange(len(curve)), curve)


def _checked_curves(tcam: Any, cut: Any) -> tuple[Float[np.ndarray, "t c"], Curves | None]:
    tcam = _checked(tcam, "tcam")
    if tcam.ndim != 2:
        raise InputError(f"tcam must be (snippets, classes), got shape {tcam.shape}")
    if cut is not None:
        t, c = tcam.shape
        cut = _checked(cut, "cut, the cutting curve,")
        if cut.shape not in {(t,), (t, c)}:
            raise InputError(f"the cutting curve must be ({t},) or ({t}, {c}) like the TCAM, got {cut.shape}")
    return tcam, cut


def _checked(values: Any, what: str) -> Float[np.ndarray, "..."]:
    values = as_array(values, what).astype(np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        raise InputError(
            f"{what} has {(~finite).sum()} values that are not finite; the first, {values[tuple(where)]}, is at "
            + (f"snippet {where[0]}, class {where[1]}" if len(where) == 2 else f"snippet {where[0]}")
        )
    return values


def _checked_thresholds(thresholds: Sequence[float] | Curves) -> Float[np.ndarray, " h"]:
    levels = as_array(thresholds, "thresholds")
    if levels.ndim != 1:
        raise InputError(f"thresholds must be a list of numbers, got shape {levels.shape}")
    levels = np.sort(levels.astype(np.float64))
    if len(levels) and not (levels[0] >= 0 and levels[-1] < np.inf):  # NaN sorts last
        raise InputError(f"thresholds must be 0 or more and finite, got {levels.tolist()}")
    return levels


def _checked_classes(classes: Sequence[int] | Int[np.ndarray, " k"] | None, n_classes: int) -> Int[np.ndarray, " k"]:
    if classes is None:
        return np.arange(n_classes)
    chosen = as_array(classes, "classes")
    if chosen.ndim != 1 or (chosen != np.trunc(chosen)).any():
        raise InputError(f"classes must be a list of class numbers, got {reprlib.repr(classes)}")
    chosen = chosen.astype(np.int64)
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < n_classes:
        bad = chosen[(chosen < 0) | (chosen >= n_classes)]
        raise InputError(f"class {bad[0]} is not in the TCAM, which has classes 0 to {n_classes - 1}")
    return chosen


@compiled
def runs_with_contrast(
    cutting: Floats,
    scoring: Floats,
    levels: Floats,
    cells: int,
    min_length: float,
    before: float,
    after: float,
    flank_scale: float,
    flank_power: float,
    truncate: bool,
    outer_weight: float,
    bonus: float,
    zero_below: bool,
) -> Floats:
    """Start, end, score and inner mean of each run of `cutting > level`, level by level, from left to right.

    Curves have `cells` cells per snippet, results are in snippets. Levels ascend, so that each run lies in one of the
    level below and only those are searched. Means come from the cumulative sum, so a run costs the same whatever its
    length. With `zero_below` what the level cuts off counts as 0, which makes a sum of its own for each level.
    """
    n = len(cutting)
    total = np.zeros(n + 1)
    for i in range(n):
        total[i + 1] = total[i] + scoring[i]
    found = np.empty((len(levels) * ((n + 1) // 2), 4))
    count = 0
    # runs of the level below; below the lowest, the whole curve
    starts, ends = np.zeros((n + 1) // 2 + 1, np.int64), np.full((n + 1) // 2 + 1, n)
    n_below = 1 if n else 0
    for level in levels:
        n_here = 0
        if zero_below:
            for i in range(n):
                total[i + 1] = total[i] + (scoring[i] if cutting[i] > level else 0.0)
        next_starts, next_ends = np.empty_like(starts), np.empty_like(ends)
        for run in range(n_below):
            start = -1
            for i in range(starts[run], ends[run] + 1):
                if i < ends[run] and cutting[i] > level:
                    start = i if start < 0 else start
                elif start >= 0:
                    next_starts[n_here], next_ends[n_here] = start, i
                    n_here += 1
                    length = (i - start) / cells
                    if length >= min_length:
                        low, high = start / cells - before, i / cells + after
                        width = flank_scale * length**flank_power
                        contrast, inner = _contrast(total, low, high, width, cells, truncate, outer_weight)
                        found[count, 0] = low
                        found[count, 1] = high
                        found[count, 2] = contrast + bonus
                        found[count, 3] = inner
                        count += 1
                    start = -1
        starts, ends, n_below = next_starts, next_ends, n_here
    return found[:count].copy()  # the scratch space is for the worst case, and far larger


@compiled
def _contrast(
    total: Floats, low: float, high: float, width: float, cells: int, truncate: bool, outer_weight: float
) -> tuple[float, float]:
    """Inner-Outer Contrast of [low, high) with flanks of that width, from the cumulative sum; and the inner mean."""
    left, right, last = low - width, high + width, (len(total) - 1) / cells
    if truncate:
        left, right, last = np.trunc(left), np.trunc(right), last - 1.0
    inside, inside_length = _integral(total, low, high, cells)
    left_part, left_length = _integral(total, left, low, cells)
    right_part, right_length = _integral(total, high, min(right, last), cells)
    outside = left_length + right_length
    inner = inside / inside_length if inside_length > 0.0 else 0.0
    outer = (left_part + right_part) / outside if outside > 0.0 else 0.0
    return inner - outer_weight * outer, inner


@compiled
def _integral(total: Floats, low: float, high: float, cells: int) -> tuple[float, float]:
    """Integral of a curve over a span, and how much of the span lies on the curve.

    The integral of a step function is linear between cell borders, so interpolating its cumulative sum is exact.
    """
    n = len(total) - 1
    a, b = min(max(low * cells, 0.0), float(n)), min(max(high * cells, 0.0), float(n))
    if b <= a:
        return 0.0, 0.0
    i, j = min(int(a), n - 1), min(int(b), n - 1)
    at_a = total[i] + (a - i) * (total[i + 1] - total[i])
    at_b = total[j] + (b - j) * (total[j + 1] - total[j])
    return (at_b - at_a) / cells, (b - a) / cells
