"""Instances: the one container of scored segments with a class each, that everything takes and returns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from jaxtyping import Bool, Float, Int

from wtal.errors import InputError
from wtal.notebook import Bar, data_frame, timeline
from wtal.typed import as_array, wanted_type

Unit = Literal["seconds", "snippets"]


class Instance(NamedTuple):
    """One of several instances: what iteration and `instances[3]` give."""

    start: float
    end: float
    score: float
    class_id: int
    name: str | None
    """The name of its class, where that is known."""


@dataclass(frozen=True, eq=False)
class Instances:
    """Half-open segments `[start, end)` with a score and a class each; no segment at all is a valid set.

    Segments are in seconds wherever they leave the method. `wtal.pseudo` works on the snippet grid, and
    `wtal.timebase.TimeBase` converts between the two. What needs one of the units refuses the other.

    Args:
        segments: Starts and ends, (n, 2).
        scores: One for each segment; 1 by default.
        class_ids: The number of each segment's class; 0 by default.
        unit: What the segments count in.
        names: Names of the classes, where they are known; class id `i` is `names[i]`.

    Iteration and an index give one `Instance`; a slice, a mask or a list of indices gives `Instances`.

    >>> two = Instances([[4.0, 9.5], [1.0, 2.0]], scores=[0.3, 0.8], class_ids=[0, 2])
    >>> len(two), two.sorted().segments.tolist(), two.unit
    (2, [[1.0, 2.0], [4.0, 9.5]], 'seconds')
    >>> two.named(["Run", "Jump", "Dive"])
    Instances(2, in seconds: 4–9.5 Run 0.3; 1–2 Dive 0.8)
    >>> two[0]
    Instance(start=4.0, end=9.5, score=0.3, class_id=0, name=None)
    >>> two[two.scores > 0.5]
    Instances(1, in seconds: 1–2 class 2 0.8)
    >>> len(Instances.empty())
    0
    """

    segments: Float[np.ndarray, "n 2"]
    scores: Float[np.ndarray, " n"]
    class_ids: Int[np.ndarray, " n"]
    unit: Unit

    def __init__(
        self, segments: Any, scores: Any = None, class_ids: Any = None, *, unit: Unit = "seconds", names: Any = None
    ) -> None:
        if unit not in ("seconds", "snippets"):
            raise InputError(f"segments are in seconds or in snippets, got the unit {unit!r}")
        segments = as_array(segments, "segments").astype(np.float64)
        if segments.size == 0:
            segments = segments.reshape(0, 2)
        if segments.ndim != 2 or segments.shape[1] != 2:
            raise InputError(f"segments must be (n, 2) starts and ends, got shape {segments.shape}")
        n = len(segments)
        scores = np.ones(n) if scores is None else as_array(scores, "scores").astype(np.float64)
        class_ids = np.zeros(n, dtype=np.int64) if class_ids is None else np.asarray(class_ids)
        if class_ids.size and not np.issubdtype(class_ids.dtype, np.integer):
            raise InputError(f"class_ids must be class numbers (integers), got {class_ids.dtype}")
        class_ids = class_ids.astype(np.int64)
        for name, values in (("scores", scores), ("class_ids", class_ids)):
            if values.shape != (n,):
                raise InputError(f"{name} must be ({n},) to go with {n} segments, got shape {values.shape}")
        if n:
            _refuse_bad_values(segments, scores, class_ids)
        names = None if names is None else _checked_names(names, class_ids)
        self.__dict__.update(segments=segments, scores=scores, class_ids=class_ids, unit=unit, _names=names)

    @classmethod
    def unchecked(cls, segments: Any, scores: Any, class_ids: Any, unit: Unit, names: Any = None) -> "Instances":
        """Instances of arrays that are known to be good, without the cost of checking them."""
        made = cls.__new__(cls)
        made.__dict__.update(segments=segments, scores=scores, class_ids=class_ids, unit=unit, _names=names)
        return made

    @classmethod
    def empty(cls, unit: Unit = "seconds") -> "Instances":
        """No instances."""
        return cls(np.zeros((0, 2)), unit=unit)

    @classmethod
    def concat(cls, parts: Sequence["Instances"]) -> "Instances":
        """All instances of `parts`, in their order; they must be in one unit. Names that differ are dropped.

        >>> Instances.concat([Instances([[0.0, 1.0]]), Instances([[0.0, 1.0]], unit="snippets")])
        Traceback (most recent call last):
        wtal.errors.InputError: instances in seconds and in snippets cannot be put together; convert with a TimeBase
        """
        if not parts:
            return cls.empty()
        if any(part.unit != parts[0].unit for part in parts):
            raise InputError("instances in seconds and in snippets cannot be put together; convert with a TimeBase")
        return cls.unchecked(
            np.concatenate([p.segments for p in parts]),
            np.concatenate([p.scores for p in parts]),
            np.concatenate([p.class_ids for p in parts]),
            parts[0].unit,
            parts[0].names if all(p.names == parts[0].names for p in parts) else None,
        )

    def __len__(self) -> int:
        return len(self.segments)

    @overload
    def __getitem__(self, chosen: int | np.integer) -> Instance: ...

    @overload
    def __getitem__(
        self, chosen: slice | Int[np.ndarray, " k"] | Bool[np.ndarray, " n"] | list[int]
    ) -> "Instances": ...

    def __getitem__(
        self, chosen: int | np.integer | slice | Int[np.ndarray, " k"] | Bool[np.ndarray, " n"] | list[int]
    ) -> "Instance | Instances":
        if isinstance(chosen, (int, np.integer)):
            start, end = self.segments[chosen].tolist()
            return self._one(start, end, float(self.scores[chosen]), int(self.class_ids[chosen]))
        return self.unchecked(self.segments[chosen], self.scores[chosen], self.class_ids[chosen], self.unit, self.names)

    def __iter__(self) -> Iterator[Instance]:
        rows = zip(self.segments.tolist(), self.scores.tolist(), self.class_ids.tolist(), strict=True)
        return (self._one(start, end, score, class_id) for (start, end), score, class_id in rows)

    def _one(self, start: float, end: float, score: float, class_id: int) -> Instance:
        return Instance(start, end, score, class_id, None if self.names is None else self.names[class_id])

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the classes; None where they are not known."""
        return self.__dict__.get("_names")

    def named(self, names: Sequence[str]) -> "Instances":
        """The same instances with the names of their classes."""
        checked = _checked_names(names, self.class_ids)
        return self.unchecked(self.segments, self.scores, self.class_ids, self.unit, checked)

    def label(self, class_id: int) -> str:
        """What a class is called when it is shown."""
        return f"class {class_id}" if self.names is None else self.names[class_id]

    def __repr__(self) -> str:
        shown = [f"{one.start:.5g}–{one.end:.5g} {self.label(one.class_id)} {one.score:.3g}" for one in self[:4]]
        more = [f"{len(self) - 4} more"] if len(self) > 4 else []
        return f"Instances({len(self)}, in {self.unit}{': ' if shown else ''}{'; '.join(shown + more)})"

    def lanes(self) -> dict[str, list[Bar]]:
        """Bars of a timeline, by class; the better an instance, the stronger its bar."""
        low, high = (float(self.scores.min()), float(self.scores.max())) if len(self) else (0.0, 1.0)
        lanes: dict[str, list[Bar]] = {self.label(number): [] for number in np.unique(self.class_ids).tolist()}
        for one in self:
            strength = 0.4 + 0.55 * (one.score - low) / (high - low) if high > low else 0.95
            told = f"{self.label(one.class_id)} {one.start:.5g}–{one.end:.5g} {self.unit}, score {one.score:.3g}"
            lanes[self.label(one.class_id)].append((one.start, one.end, strength, told))
        return lanes

    def _repr_html_(self) -> str:
        return f"<div>{len(self):,} instances</div>{timeline(self.lanes(), self.unit)}"

    def to_pandas(self) -> Any:
        """A DataFrame with start, end, label, score and class_id of each instance (needs pandas)."""
        labels = [self.label(number) for number in self.class_ids.tolist()]
        columns = {"start": self.starts, "end": self.ends, "label": labels}
        return data_frame({**columns, "score": self.scores, "class_id": self.class_ids})

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

    def of_class(self, class_id: int | np.integer) -> "Instances":
        """The instances of one class."""
        return self[self.class_ids == class_id]

    def scored(self, scores: Float[np.ndarray, " n"]) -> "Instances":
        """The same segments and classes with other scores."""
        return self.unchecked(self.segments, scores, self.class_ids, self.unit, self.names)

    def moved(self, by: float) -> "Instances":
        """The same instances later by so much, in their unit.

        >>> Instances([[1.0, 2.0]]).moved(-0.5).segments.tolist()
        [[0.5, 1.5]]
        """
        return self.at(self.segments + by)

    def at(self, segments: Float[np.ndarray, "n 2"]) -> "Instances":
        """The same instances at other places."""
        return Instances.unchecked(segments, self.scores, self.class_ids, self.unit, self.names)

    def order(self) -> Int[np.ndarray, " n"]:
        """Indices in the order that is used everywhere: best score first, ties by start, then end, then class."""
        return np.lexsort((self.class_ids, self.ends, self.starts, -self.scores))

    def sorted(self) -> "Instances":
        """The same instances in that order, which does not depend on the order they came in."""
        return self[self.order()]

    def wanted_in(self, unit: Unit, what: str) -> "Instances":
        """These instances, if they are in the unit that `what` needs; otherwise an error that says how to convert.

        >>> Instances([[0.0, 1.0]]).wanted_in("snippets", "pseudo labels")
        Traceback (most recent call last):
        wtal.errors.InputError: pseudo labels need instances in snippets, got seconds; convert with a TimeBase
        """
        if self.unit != unit:
            raise InputError(f"{what} need instances in {unit}, got {self.unit}; convert with a TimeBase")
        return self


def _checked_names(names: Sequence[str], class_ids: Int[np.ndarray, " n"]) -> tuple[str, ...]:
    if len(class_ids) and class_ids.max() >= len(names):
        raise InputError(f"there are {len(names)} names, but an instance of class number {class_ids.max()}")
    return tuple(names)


def wanted_predictions(predictions: Any) -> None:
    """Refuse what does not give the instances of each video by its name.

    >>> wanted_predictions(Instances.empty())
    Traceback (most recent call last):
    wtal.errors.InputError: predictions must be of type Mapping, got Instances; write {"name of the video": instances}
    """
    hint = '; write {"name of the video": instances}'
    wanted_type(predictions, Mapping, "predictions", hint)
    for name, found in predictions.items():
        wanted_type(name, str, "a video's name in predictions", hint)
        wanted_type(found, Instances, f"predictions[{name!r}]")


def _refuse_bad_values(
    segments: Float[np.ndarray, "n 2"], scores: Float[np.ndarray, " n"], class_ids: Int[np.ndarray, " n"]
) -> None:
    bad = ~(np.isfinite(segments).all(axis=1) & (segments[:, 0] < segments[:, 1]))
    if bad.any():
        first = int(np.argmax(bad))
        raise InputError(
            f"a segment must be finite with start < end; {bad.sum()} of {len(segments)} are not, "
            f"the first is number {first}: {segments[first].tolist()}"
        )
    if not np.isfinite(scores).all():
        first = int(np.argmin(np.isfinite(scores)))
        raise InputError(f"scores must be finite; number {first} is {scores[first]}")
    if class_ids.min() < 0:
        raise InputError(f"class_ids must not be negative, got {class_ids.min()}")
