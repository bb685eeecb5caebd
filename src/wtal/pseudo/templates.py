"""The template distributions of instance fusion: where each sits when it fits weighted samples best.

Each function takes samples (n, 3) of start, end and score, their weights (summing to 1 in each group) and their
groups, and returns the locations (m, 3), each within its samples' range, and whether each group's fit converged. The
three are fitted independently.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.compiled import Floats, Integers, compiled

Samples = Float[np.ndarray, "n 3"]
Weights = Float[np.ndarray, " n"]
Groups = Int[np.ndarray, " n"]
Fit = tuple[Float[np.ndarray, "m 3"], Bool[np.ndarray, " m"]]

#: Degrees of freedom of the Student-t template; the paper names none, 3 is the usual robust choice.
FREEDOM = 3.0


def gaussian(values: Samples, weights: Weights, group: Groups, m: int) -> Fit:
    """The weighted mean (Eq. 4): it minimises the weighted squared distance."""
    return means_by_group(values, weights, group, m), np.ones(m, bool)


def exponential(values: Samples, weights: Weights, group: Groups, m: int) -> Fit:
    """The weighted median: it minimises the weighted absolute distance, the two-sided exponential's exponent.

    The lower median where two would do.
    """
    location = np.empty((m, values.shape[1]))
    for column in range(values.shape[1]):
        order = np.lexsort((values[:, column], group))
        summed = np.cumsum(weights[order]) - group[order]  # weight so far in the group, as each group sums to 1
        reached = np.flatnonzero(summed >= 0.5 - 1e-9)
        groups, first = np.unique(group[order][reached], return_index=True)
        location[groups, column] = values[order[reached[first]], column]
    return location, np.ones(m, bool)


def uniform(values: Samples, weights: Weights, group: Groups, m: int) -> Fit:  # noqa: ARG001
    """The middle of the range: the narrowest uniform density that covers all samples, whatever their weights."""
    low, high = ranges_by_group(values, group, m)
    return (low + high) / 2, np.ones(m, bool)


def student_t(values: Samples, weights: Weights, group: Groups, m: int, *, steps: int = 100) -> Fit:
    """The location of a Student-t with the samples' own spread, by Newton steps from the weighted mean.

    The objective Σ w·log(1 + r²/ν) is not convex, so a Newton step is taken only where the curvature is positive
    and the objective falls; elsewhere the reweighted mean is, which always descends. A group that has not settled
    after `steps`, or whose start and end have crossed, keeps the Gaussian location and is reported as not converged.
    """
    mean, _ = gaussian(values, weights, group, m)
    variance = sums_by_group(weights[:, None] * (values - mean[group]) ** 2, group, m)
    scale = np.sqrt(FREEDOM * variance)
    flat = scale <= 1e-12 * np.maximum(1.0, np.abs(mean))  # all samples alike: the mean is the location
    scale = np.where(flat, 1.0, scale)

    def objective(location: Float[np.ndarray, "m 3"]) -> Float[np.ndarray, "m 3"]:
        away = (values - location[group]) / scale[group]
        return sums_by_group(weights[:, None] * np.log1p(away**2), group, m)

    location, now = mean.copy(), objective(mean)
    settled = flat.copy()
    for _ in range(steps):
        away = (values - location[group]) / scale[group]
        pull = weights[:, None] / (1 + away**2)
        slope = sums_by_group(pull * away, group, m)
        curvature = sums_by_group(pull * (1 - away**2) / (1 + away**2), group, m)
        newton = location + scale * slope / np.where(curvature > 1e-9, curvature, np.inf)
        reweighted = location + scale * slope / sums_by_group(pull, group, m)
        better = (curvature > 1e-9) & (objective(newton) <= now)
        following = np.where(settled, location, np.where(better, newton, reweighted))
        settled |= np.abs(following - location) <= 1e-9 * scale
        location, now = following, objective(following)
        if settled.all():
            break
    converged = settled.all(axis=1) & (location[:, 0] < location[:, 1])
    low, high = ranges_by_group(values, group, m)  # rounding must not lead out of it
    return np.where(converged[:, None], np.clip(location, low, high), mean), converged


#: All of them, in the order of the paper's table; a new one needs a line here and nothing else.
TEMPLATES: dict[str, Callable[[Samples, Weights, Groups, int], Fit]] = {
    "uniform": uniform,
    "exponential": exponential,
    "student_t": student_t,
    "gaussian": gaussian,
}
if TYPE_CHECKING:
    Template = str
else:
    Template = Literal[tuple(TEMPLATES)]  # so that recipes and the command line know the choices


@compiled
def sums_by_group(values: Floats, group: Integers, m: int) -> Floats:
    """Sum of the rows of each group."""
    total = np.zeros((m, values.shape[1]))
    for i in range(len(values)):
        for k in range(values.shape[1]):
            total[group[i], k] += values[i, k]
    return total


@compiled
def means_by_group(values: Floats, weights: Floats, group: Integers, m: int) -> Floats:
    """Weighted mean of the rows of each group, whose weights sum to 1; rounding cannot lead out of the rows' range."""
    mean = np.zeros((m, values.shape[1]))
    low, high = ranges_by_group(values, group, m)
    for i in range(len(values)):
        for k in range(values.shape[1]):
            mean[group[i], k] += weights[i] * values[i, k]
    return np.minimum(np.maximum(mean, low), high)


@compiled
def ranges_by_group(values: Floats, group: Integers, m: int) -> tuple[Floats, Floats]:
    """Least and greatest of the rows of each group."""
    low = np.full((m, values.shape[1]), np.inf)
    high = np.full((m, values.shape[1]), -np.inf)
    for i in range(len(values)):
        for k in range(values.shape[1]):
            low[group[i], k] = min(low[group[i], k], values[i, k])
            high[group[i], k] = max(high[group[i], k], values[i, k])
    return low, high
