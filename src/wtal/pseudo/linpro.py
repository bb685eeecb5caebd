"""LinPro pseudo labels (Eq. 5–6): snippet labels whose contrast over each instance is that instance's score.

For one class: W has a row per snippet and a column per instance, +1 inside the instance, −1 in its flanks. The labels g
minimise ‖g‖₁ under Wᵀg = q, g ≥ 0. Snippets with equal rows are interchangeable, so the program is solved on
groups of them: at most about 4n+1 for n instances, however long the video.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.notebook import curves, data_frame
from wtal.pseudo.candidates import QUARTER, Flanks
from wtal.pseudo.program import least_norm, solve_elastic
from wtal.typed import checked, wanted_type

Rows = Literal["sum", "mean"]
Solution = Literal["least_norm", "vertex"]
Feasibility = Literal["exact", "elastic"]

#: A constraint counts as met when it is off by no more than this (HiGHS works to 1e-9).
TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets G of one video, and how well each instance's constraint is met."""

    shape: tuple[int, int]
    #: the labels of each class that has instances; those of all others are 0
    columns: dict[int, Float[np.ndarray, " t"]]
    #: contrast of the labels minus the instance's score, in the order the instances came
    residual: Float[np.ndarray, " n"]
    #: `exact`: all constraints of the class hold; `elastic`: they contradict each other, by as much as `residual` says
    status: dict[int, Feasibility]

    @property
    def values(self) -> Float[np.ndarray, "t c"]:
        """The labels of all classes."""
        values = np.zeros(self.shape)
        for class_id, column in self.columns.items():
            values[:, class_id] = column
        return values

    def __repr__(self) -> str:
        each = ", ".join(f"class {number} {how}" for number, how in self.status.items())
        return f"Targets({self.shape[0]} snippets × {self.shape[1]} classes: {each or 'all 0'})"

    def _repr_html_(self) -> str:
        lanes = {f"class {number} ({self.status[number]})": column.tolist() for number, column in self.columns.items()}
        return f"<div>targets of {len(lanes)} classes</div>{curves(lanes, 'snippets')}"

    def to_pandas(self, names: Sequence[str] | None = None) -> Any:
        """A DataFrame with a row for each snippet and a column for each class, by name if given (needs pandas)."""
        columns = range(self.shape[1]) if names is None else names
        return data_frame(dict(zip(columns, self.values.T, strict=True)))


def make_targets(
    instances: Instances,
    n_snippets: int,
    n_classes: int,
    *,
    rows: Rows = "mean",
    flanks: Flanks = QUARTER,
    upper: float = np.inf,
    solution: Solution = "least_norm",
) -> Targets:
    """Snippet targets G of one video from its fused instances; never NaN, whatever the input.

    Where no solution exists the constraints give way, by as little as possible in sum.
    A snippet is inside when its centre is; an instance narrower than a snippet holds the one under its middle.

    Args:
        instances: The video's instances in snippets; their scores are the contrasts q that targets shall have.
        n_snippets: Length of the video.
        n_classes: Number of classes.
        rows: `mean` is the paper's text: mean target inside minus mean target in the flanks is q. `sum` is its
            equation: targets of about q/length, from which models learn little.
        flanks: How wide the flanks are for an instance of a given length.
        upper: Largest target allowed (1 in the released code).
        solution: Of all ℓ₁-minimal solutions, `least_norm` takes the one of least ℓ₂ norm: unique, and the most even
            one, so equivalent snippets are equal. `vertex` takes the one that the simplex method ends at and averages
            equivalent snippets: the paper to the letter, though it depends on the solver.

    Returns:
        The targets (`values` is the full array), and how well each instance's constraint is met.

    >>> labels = make_targets(Instances([[2.0, 6.0]], [0.8], [1], unit="snippets"), n_snippets=8, n_classes=2)
    >>> labels.values[:, 1].round(6).tolist(), labels.status
    ([0.0, 0.0, 0.8, 0.8, 0.8, 0.8, 0.0, 0.0], {1: 'exact'})
    """
    n_snippets, n_classes = checked(int, n_snippets, "n_snippets"), checked(int, n_classes, "n_classes")
    if n_snippets < 1 or n_classes < 1:
        raise InputError(f"a video needs snippets and classes, got {n_snippets} and {n_classes}")
    wanted_type(instances, Instances, "instances")
    instances.wanted_in("snippets", "pseudo labels")
    beyond = np.flatnonzero(instances.starts >= n_snippets)
    if len(beyond):
        raise InputError(
            f"n_snippets is {n_snippets}, but {len(beyond)} of {len(instances)} instances begin after that; the first "
            f"is {instances.segments[beyond[0]].tolist()}. Give the length of the TCAM that they were found in"
        )
    if len(instances) and instances.class_ids.max() >= n_classes:
        raise InputError(f"class {instances.class_ids.max()} is out of range: there are {n_classes} classes")
    if not upper > 0:
        raise InputError(f"the upper bound of labels must be above 0, got {upper}")
    if rows not in ("sum", "mean") or solution not in ("least_norm", "vertex"):
        raise InputError(f"rows are sum or mean, solution is least_norm or vertex; got {rows!r}, {solution!r}")

    columns: dict[int, Float[np.ndarray, " t"]] = {}
    residual = np.zeros(len(instances))
    status: dict[int, Feasibility] = {}
    for class_id in np.unique(instances.class_ids).tolist():
        of_class = np.flatnonzero(instances.class_ids == class_id)
        of_class = of_class[np.argsort(instances.starts[of_class], kind="stable")]  # neighbours in time side by side
        scores = instances.scores[of_class]
        pattern, size, cell_of_snippet = _groups(instances.segments[of_class], n_snippets, flanks)
        contrast, unit = _contrast(pattern, size, rows)
        # every row in units of a summed label, so that one price per unit of slack suits long and short instances
        program = solve_elastic(contrast * unit[:, None], scores * unit, size, upper)
        solved = program.x if solution == "vertex" else least_norm(program)
        columns[class_id] = solved[cell_of_snippet]
        residual[of_class] = contrast @ solved - scores
        off = np.abs(residual[of_class]) > TOLERANCE * np.maximum(1.0, np.abs(scores))
        status[class_id] = "elastic" if off.any() else "exact"
    return Targets((n_snippets, n_classes), columns, residual, status)


def make_all_targets(
    videos: Iterable[tuple[Instances, int]], n_classes: int, *, workers: int = 1, **settings: Any
) -> list[Targets]:
    """`make_targets` of each video, in several processes if asked.

    A process takes about a second to start, so that more than one pays from some thousand videos on; a script that
    asks for more must guard its main part with `if __name__ == "__main__"`, as always with multiprocessing.

    Args:
        videos: Instances in snippets and number of snippets of each video.
        n_classes: Number of classes.
        workers: Number of processes.
        settings: Those of `make_targets`: rows, flanks, upper, solution.

    Returns:
        The targets of each video, in the order of `videos`.

    >>> [found.values.shape for found in make_all_targets([(Instances.empty("snippets"), n) for n in (3, 5)], 2)]
    [(3, 2), (5, 2)]
    """
    if workers < 1:
        raise InputError(f"workers must be 1 or more, got {workers}")
    make = partial(_make, n_classes, settings)
    if workers == 1:
        return [make(video) for video in videos]
    # Processes, as most of the work is small steps that hold the interpreter; started afresh, as a copy of a process
    # with running threads (torch has some) may hang.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(make, videos, chunksize=32))


def _make(n_classes: int, settings: dict[str, Any], video: tuple[Instances, int]) -> Targets:
    return make_targets(*video, n_classes, **settings)


def _groups(
    segments: Float[np.ndarray, "n 2"], n_snippets: int, flanks: Flanks
) -> tuple[Float[np.ndarray, "g n"], Float[np.ndarray, " g"], Int[np.ndarray, " t"]]:
    """The distinct rows of W, how many snippets have each, and which one each snippet has."""
    width = flanks.width(segments[:, 1] - segments[:, 0])
    borders = np.column_stack([segments[:, 0] - width, segments[:, 0], segments[:, 1], segments[:, 1] + width])
    # the first snippet whose centre is at or past each border
    borders = np.clip(np.ceil(borders - 0.5), 0, n_snippets).astype(np.int64)
    narrow = borders[:, 1] >= borders[:, 2]
    middle = np.clip(np.floor(segments.mean(axis=1)), 0, n_snippets - 1).astype(np.int64)
    borders[narrow, 1], borders[narrow, 2] = middle[narrow], middle[narrow] + 1
    borders[:, 0] = np.minimum(borders[:, 0], borders[:, 1])
    borders[:, 3] = np.maximum(borders[:, 3], borders[:, 2])

    cells = np.unique(np.concatenate([[0, n_snippets], borders.ravel()]))
    at = cells[:-1, None]
    low, start, end, high = borders.T
    within = (low <= at) & (at < high)
    inside = (start <= at) & (at < end)
    pattern = 2 * inside.astype(np.int8) - within
    # rows as byte strings: sorting those is far quicker than np.unique(axis=0)
    keys = np.ascontiguousarray(pattern).view(f"V{pattern.shape[1]}").ravel()
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    lengths = np.diff(cells)
    return pattern[first].astype(np.float64), np.bincount(group, lengths), np.repeat(group, lengths)


def _contrast(
    pattern: Float[np.ndarray, "g n"], size: Float[np.ndarray, " g"], rows: Rows
) -> tuple[Float[np.ndarray, "n g"], Float[np.ndarray, " n"]]:
    """The constraint matrix over groups, and the factor that brings each row to units of a summed label."""
    weighted = (pattern * size[:, None]).T
    if rows == "sum":
        return weighted, np.ones(len(weighted))
    inside = np.where(weighted > 0, weighted, 0.0).sum(axis=1)
    flank = -np.where(weighted < 0, weighted, 0.0).sum(axis=1)
    return np.where(weighted > 0, weighted / inside[:, None], weighted / np.maximum(flank, 1.0)[:, None]), inside
