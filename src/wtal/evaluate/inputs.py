"""One evaluation's input as flat arrays: which truth, which predictions, in which order.

The order is defined, so that no number depends on the order of a file. Predictions: best score first, ties by
start, then end, then the video's name. Truth: by video, class, start, then end; where a prediction overlaps two
true instances equally it finds the earlier one.
"""

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from wtal.annotations import Annotations
from wtal.errors import DataWarning, InputError
from wtal.evaluate import snippets
from wtal.evaluate.ambiguous import Intervals, read_ambiguous, without_ambiguous
from wtal.evaluate.protocols import Protocol, protocol_named
from wtal.instances import Instances, Unit, wanted_predictions
from wtal.typed import wanted_type


@dataclass(frozen=True, eq=False)
class InstanceTable:
    """Instances of many videos: the video's number in the order of names, and the instance."""

    videos: Int[np.ndarray, " n"]
    class_ids: Int[np.ndarray, " n"]
    segments: Float[np.ndarray, "n 2"]
    scores: Float[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.videos)

    def __getitem__(self, chosen: np.ndarray) -> "InstanceTable":
        return InstanceTable(self.videos[chosen], self.class_ids[chosen], self.segments[chosen], self.scores[chosen])


@dataclass(frozen=True, eq=False)
class Case:
    """What is compared with what. Segments are whole snippets if the protocol says so, else seconds.

    `videos` are the names that the tables' video numbers are positions in; `n_videos` of them have annotations.
    `class_ids` are the class numbers that have truth, the ones that count. `n_ambiguous` is how many predictions
    the ambiguity list dropped, None if there was no list.
    """

    protocol: Protocol
    classes: tuple[str, ...]
    class_ids: Int[np.ndarray, " k"]
    videos: tuple[str, ...]
    n_videos: int
    truth: InstanceTable
    truth_lengths_s: Float[np.ndarray, " m"]
    predictions: InstanceTable
    n_ambiguous: int | None


def prepare(
    predictions: Mapping[str, Instances],
    annotations: Annotations,
    *,
    protocol: str | Protocol = "thumos14",
    split: str | None = None,
    ambiguous: Intervals | None = None,
) -> Case:
    """The case that a protocol makes of predictions and annotations.

    A prediction in a video that the annotations do not know is a false positive, as in the field's evaluators,
    and a warning counts those videos. Videos of another split, and those that the protocol excludes, are left
    out on both sides; so are predictions of classes without truth. Predictions may be in seconds or in
    snippets, but all in one. Predictions that touch an interval of `ambiguous` are dropped; without it, those that
    touch the protocol's own list, if it has one.

    >>> from wtal.annotations import Video
    >>> truth = Annotations(("Run",), {"a": Video("test", 60.0, Instances([[3.0, 8.0]]))})
    >>> case = prepare({"a": Instances([[3.2, 8.0]])}, truth, protocol="thumos14-wtalc")
    >>> case.truth.segments.tolist(), case.predictions.segments.tolist()
    ([[5.0, 12.0]], [[5.0, 12.0]])
    """
    wanted_type(annotations, Annotations, "annotations", "; wtal.read_annotations reads them; predictions come first")
    wanted_predictions(predictions)
    if ambiguous is not None:
        wanted_type(ambiguous, Mapping, "ambiguous", "; wtal.evaluate.read_ambiguous reads the list")
    rules = protocol_named(protocol)
    chosen = annotations.of_split(split if split is not None else rules.splits)
    known = {name for name in chosen.videos if name not in rules.excluded_videos}
    evaluated = _evaluated(predictions, annotations, known, rules)
    n_dropped = None
    if ambiguous is None and rules.ambiguous is not None:
        ambiguous = read_ambiguous(rules.ambiguous)
    if ambiguous is not None:
        evaluated, n_dropped = without_ambiguous(evaluated, ambiguous)
    number = {name: i for i, name in enumerate(sorted(known | evaluated.keys()))}
    truth = _table(number, {name: chosen.videos[name].instances.wanted_in("seconds", "annotations") for name in known})
    truth = truth[np.lexsort((truth.segments[:, 1], truth.segments[:, 0], truth.class_ids, truth.videos))]
    class_ids = np.unique(truth.class_ids)
    found, unit = _table(number, evaluated), _unit(evaluated)
    _check_class_ids(found.class_ids, annotations.classes)
    found = found[np.isin(found.class_ids, class_ids)]
    found = found[np.lexsort((found.videos, found.segments[:, 1], found.segments[:, 0], -found.scores))]
    lengths_s = truth.segments[:, 1] - truth.segments[:, 0]
    if rules.whole_snippets:
        truth = replace(truth, segments=snippets.rounded(truth.segments))
        found = replace(found, segments=snippets.cut_down(found.segments, unit=unit))
    elif unit == "snippets":
        found = replace(found, segments=snippets.CLOCK.to_seconds(found.segments))
    return Case(rules, annotations.classes, class_ids, tuple(number), len(known), truth, lengths_s, found, n_dropped)


def _evaluated(
    predictions: Mapping[str, Instances], annotations: Annotations, known: Collection[str], rules: Protocol
) -> dict[str, Instances]:
    """The predictions of this evaluation's videos and of unknown ones, with a warning about the others."""
    aside = sorted(name for name in predictions if name in annotations.videos and name not in known)
    unknown = sorted(predictions.keys() - annotations.videos.keys() - set(rules.excluded_videos))
    other_split = [name for name in aside if name not in rules.excluded_videos]
    for names, where, consequence in (
        (unknown, "are not in the annotations", "count as false positives"),
        (other_split, "belong to another split", "are left out"),
    ):
        if names:
            warnings.warn(
                f"{len(names)} predicted video(s) {where}, the first is {names[0]}; their "
                f"{sum(len(predictions[name]) for name in names)} prediction(s) {consequence}",
                DataWarning,
                stacklevel=3,
            )
    left_out = {*aside, *rules.excluded_videos}
    return {name: found for name, found in predictions.items() if name not in left_out}


def _unit(predictions: Mapping[str, Instances]) -> Unit:
    """What all of the predictions count in."""
    units = {found.unit for found in predictions.values()}
    if len(units) > 1:
        raise InputError("some predictions are in seconds and some in snippets; convert them to one with a TimeBase")
    return units.pop() if units else "seconds"


def _table(number: Mapping[str, int], instances: Mapping[str, Instances]) -> InstanceTable:
    joined = Instances.concat(list(instances.values()))
    sizes = [len(found) for found in instances.values()]
    videos = np.repeat(np.array([number[name] for name in instances], np.int64), sizes)
    return InstanceTable(videos, joined.class_ids, joined.segments, joined.scores)


def _check_class_ids(class_ids: Int[np.ndarray, " n"], classes: tuple[str, ...]) -> None:
    if len(class_ids) and class_ids.max() >= len(classes):
        raise InputError(
            f"a prediction has class number {class_ids.max()}, but the annotations have {len(classes)} classes"
        )
