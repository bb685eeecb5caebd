"""Instances: the one container of scored, labelled segments that everything takes and returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.errors import InputError


@dataclass(frozen=True, eq=False)
class Instances:
    """Half-open segments `[start, end)` with a score and a class each; no segment at all is a valid set.

    Segments are in seconds wherever they leave the method; `wtal.pseudo` works on the snippet grid and
    `wtal.timebase.TimeBase` converts between the two.

    >>> two = Instances([[4.0, 9.5], [1.0, 2.0]], scores=[0.3, 0.8], labels=[0, 2])
    >>> len(two), two.sorted().segments.tolist()
    (2, [[1.0, 2.0], [4.0, 9.5]])
    >>> len(Instances.empty())
    0
    """

    segments: Float[np.ndarray, "n 2"]
    scores: Float[np.ndarray, " n"]
    labels: Int[np.ndarray, " n"]

    def __init__(self, segments: Any, scores: Any = None, labels: Any = None) -> None:
        segments = np.asarray(segments, dtype=np.float64)
        if segments.size == 0:
            segments = segments.reshape(0, 2)
        if segments.ndim != 2 or segments.shape[1] != 2:
            raise InputError(f"segments must be (n, 2) starts and ends, got shape {segments.shape}")
        n = len(segments)
        scores = np.ones(n) if scores is None else np.asarray(scores, dtype=np.float64)
        labels = np.zeros(n, dtype=np.int64) if labels is None else np.asarray(labels)
        if labels.size and not np.issubdtype(labels.dtype, np.integer):
            raise InputError(f"labels must be class numbers (integers), got {labels.dtype}")
        labels = labels.astype(np.int64)
        for name, values in (("scores", scores), ("labels", labels)):
            if values.shape != (n,):
                raise InputError(f"{name} must be ({n},) to go with {n} segments, got shape {values.shape}")
        if n:
            bad = ~(np.isfinite(segments).all(axis=1) & (segments[:, 0] < segments[:, 1]))
            if bad.any():
                first = int(np.argmax(bad))
                raise InputError(
                    f"a segment must be finite with start < end; {bad.sum()} of {n} are not, "
                    f"the first is number {first}: {segments[first].tolist()}"
                )
            if not np.isfinite(scores).all():
                first = int(np.argmin(np.isfinite(scores)))
                raise InputError(f"scores must be finite; number {first} is {scores[first]}")
            if labels.min() < 0:
                raise InputError(f"labels must not be negative, got {labels.min()}")
        self.__dict__.update(segments=segments, scores=scores, labels=labels)

    @classmethod
    def unchecked(cls, segments: Any, scores: Any, labels: Any) -> "Instances":
        """Instances of arrays that are known to be good, without the cost of checking them."""
        made = cls.__new__(cls)
        made.__dict__.update(segments=segments, scores=scores, labels=labels)
        return made

    @classmethod
    def empty(cls) -> "Instances":
        """No instances."""
        return cls(np.zeros((0, 2)))

    @classmethod
    def concat(cls, parts: Sequence["Instances"]) -> "Instances":
        """All instances of `parts`, in their order."""
        if not parts:
            return cls.empty()
        return cls.unchecked(
            np.concatenate([p.segments for p in parts]),
            np.concatenate([p.scores for p in parts]),
            np.concatenate([p.labels for p in parts]),
        )

    def __len__(self) -> int:
        return len(self.segments)

    def __getitem__(self, chosen: slice | Int[np.ndarray, " k"] | Bool[np.ndarray, " n"] | list[int]) -> "Instances":
        return self.unchecked(self.segments[chosen], self.scores[chosen], self.labels[chosen])

    @property
    def starts(self) -> Float[np.ndarray, " n"]:
        """Start of each instance."""
        return self.segments[:, 0]

    @property
    def ends(self) -> Float[np.ndarray, " n"]:
        """End of each instance, which is not part of it."""
        return self.segments[:, 1]

    @property
    def lengths(self) -> Float[np.ndarray, " n"]:
        """End minus start of each instance."""
        return self.segments[:, 1] - self.segments[:, 0]

    def of_label(self, label: int | np.integer) -> "Instances":
        """The instances of one class."""
        return self[self.labels == label]

    def order(self) -> Int[np.ndarray, " n"]:
        """Indices in the order that is used everywhere: best score first, ties by start, then end, then label."""
        return np.lexsort((self.labels, self.ends, self.starts, -self.scores))

    def sorted(self) -> "Instances":
        """The same instances in that order, which does not depend on the order they came in."""
        return self[self.order()]
