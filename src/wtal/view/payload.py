"""What the page shows of one video, as plain JSON: instances with what they were made from, truth, and curves."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from wtal.annotations import Annotations
from wtal.data.store import Store
from wtal.decide import LEAST_CONFIDENCE, marks, prominence, standing
from wtal.evaluate.calibration import Calibration
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.maps import mean_map
from wtal.overlap import iou
from wtal.propose import Combine, Cut, Fusion, Nms, Proposals, Proposer
from wtal.sight import Found, Sight
from wtal.timebase import TimeBase
from wtal.typed import choices
from wtal.view.records import Record, curve, records, rounded
from wtal.view.taught import Taught

#: classes whose activation is shown beside those of the tags and of the truth: the ones that are found best
MOST_CURVES = 8
#: tIoU above which an instance of the other model is taken to be the same one
SAME = 0.5


@dataclass(frozen=True, eq=False)
class Footage:
    """One video to be shown: its features, its clock, and whatever else is known of it.

    Args:
        name: What the video is called.
        features: One vector per snippet.
        timebase: How the snippets lie on the video's clock.
        duration_s: How long it lasts.
        tags: Names of the classes that it carries; None if that is not known.
        truth: Its true instances in seconds, each with the name of its class; None if they are not known.
        url: Where a browser finds the video; None: there is nothing to play.
        type: The kind of that file, such as video/mp4.
    """

    name: str
    features: Shaped[np.ndarray, "..."]
    timebase: TimeBase
    duration_s: float
    tags: tuple[str, ...] | None = None
    truth: tuple[tuple[float, float, str], ...] | None = None
    url: str | None = None
    type: str | None = None

    @classmethod
    def of_store(cls, store: Store, name: str, truth: Annotations | None = None) -> "Footage":
        """A video of a store; `truth` is the store's, read once for all of its videos."""
        features, clock, duration_s = store.features(name), store.timebase(name), store.duration_s(name)
        return cls(name, features, clock, duration_s, store.records[name].tags or None, truth_of(truth, name))


def truth_of(truth: Annotations | None, name: str) -> tuple[tuple[float, float, str], ...] | None:
    """A video's true instances as `Footage` has them; None if they are not known."""
    if truth is None or name not in truth.videos:
        return None
    known = truth.videos[name].instances
    pairs = zip(known.segments.tolist(), known.class_ids.tolist(), strict=True)
    return tuple((start, end, truth.classes[number]) for (start, end), number in pairs)


def payload(
    localizer: Localizer,
    footage: Footage,
    *,
    run: str = "",
    sight: Sight | None = None,
    proposer: Proposer | None = None,
    taught: Taught | None = None,
) -> Record:
    """All that the page shows of one video.

    Args:
        localizer: The trained model.
        footage: The video.
        run: What the model's run is called.
        sight: What `localizer.look` saw in the video, if that is at hand already.
        proposer: Settings that take the place of the model's own.
        taught: What the run was taught of its training videos.
    """
    sight = sight or localizer.look(footage.name, footage.features)
    found = sight(proposer)
    sight = sight if proposer is None else replace(sight, proposer=proposer)
    clock = footage.timebase.at(localizer.card.offset_snippets)
    drawn = _Drawn(clock, footage.duration_s, localizer.classes)
    confidence = localizer.card.calibration if _has_own_settings(sight, localizer) else None
    cut = None if sight.teachers else sight.proposer.cut
    instances = drawn.instances(found, confidence, len(footage.features), cut)
    best = list(dict.fromkeys(made["label"] for made in instances))
    shown = {*best[:MOST_CURVES], *(footage.tags or ())}
    truth = None
    if footage.truth is not None:
        truth = [{"start": rounded(start), "end": rounded(end), "label": name} for start, end, name in footage.truth]
        shown |= {one["label"] for one in truth}
    seen = tuple(name for name in localizer.classes if name in shown)
    return {
        "name": footage.name,
        "run": run,
        "video": {"url": footage.url, "type": footage.type},
        "duration": rounded(footage.duration_s),
        "classes": list(localizer.classes),
        "tags": None if footage.tags is None else list(footage.tags),
        "truth": truth,
        "boxes": taught.boxes(footage.name) if taught else [],
        "grid": {
            "start": rounded(clock.to_seconds(np.zeros(1))[0]),
            "step": round(clock.snippet_s, 6),
            "count": len(footage.features),
        },
        "least": 0.0 if confidence is None else LEAST_CONFIDENCE,
        "instances": instances,
        "nms": drawn.plain(_by_nms(sight)().instances)[0],
        "models": [
            {"name": name, "instances": drawn.plain(standing(alone))[0]}
            for name, alone in sight.opinions(found).items()
        ],
        "curves": [
            *_activations(sight, localizer.classes, seen),
            *(taught.curves(footage.name, seen) if taught else []),
        ],
        "settings": settings_of(sight),
    }


def settings_of(sight: Sight) -> Record:
    """The settings that can be changed while one looks, named as in recipes; null where one does not act.

    Of a detector and its teachers they are the first teacher's, whose curves are shown.
    """
    if sight.teachers:
        return settings_of(sight.teachers[0])
    combine = sight.proposer.combine
    fusion = vars(combine) if isinstance(combine, Fusion) else {}
    return {
        "levels": list(sight.proposer.cut.thresholds),
        "temperature": fusion.get("temperature"),
        "threshold": getattr(combine, "threshold", None),
        "evidence": fusion.get("evidence"),
        "template": fusion.get("template"),
        "combine": next(name for name, way in choices(Combine).items() if isinstance(combine, way)),
    }


def _has_own_settings(sight: Sight, localizer: Localizer) -> bool:
    """Whether nothing was changed: confidence was fitted to the model's own settings alone."""
    own = sight.proposer == localizer.card.proposer
    return own and all(map(_has_own_settings, sight.teachers, localizer.teachers))


def _by_nms(sight: Sight) -> Sight:
    return replace(sight, proposer=sight.proposer.by(Nms), teachers=tuple(map(_by_nms, sight.teachers)))


def changed(proposer: Proposer, *, levels: tuple[float, ...] | None = None, **settings: Any) -> Proposer:
    """The proposer with other settings, named as in `settings_of`; those that do not act are left aside.

    Args:
        proposer: What is changed.
        levels: The levels that curves are cut at.
        settings: Any of `temperature`, `threshold`, `evidence`, `template` and `combine`; None: as it is.

    >>> changed(Proposer(), combine="nms", threshold=0.4).combine
    Nms(threshold=0.4, overlap='iou', pad=0.0)
    """
    if levels is not None:
        proposer = replace(proposer, cut=replace(proposer.cut, thresholds=levels))
    way = {"fusion": Fusion, "nms": Nms, None: type(proposer.combine)}[settings.pop("combine", None)]
    proposer = proposer.by(way)
    acting = {name: value for name, value in settings.items() if value is not None and hasattr(proposer.combine, name)}
    return replace(proposer, combine=replace(proposer.combine, **acting))


@dataclass(frozen=True)
class _Drawn:
    """How positions on the snippet grid become records of a page."""

    clock: TimeBase
    duration_s: float
    classes: tuple[str, ...]

    def plain(self, instances: Instances) -> tuple[list[Record], Int[np.ndarray, " k"]]:
        """What a page says of each instance of which something is left inside the video, and which those are."""
        segments = self.clock.segments_to_seconds(instances.segments, duration_s=self.duration_s)
        rows = np.flatnonzero(segments[:, 0] < segments[:, 1])
        ends = Instances(segments[rows], instances.scores[rows], instances.class_ids[rows], unit="seconds")
        return records(ends, self.classes), rows

    def instances(self, found: Found, confidence: Calibration | None, n_snippets: int, cut: Cut | None) -> list[Record]:
        drawn, rows = self.plain(found.instances)
        ranked = self.clock.instances_to_seconds(found.instances, duration_s=self.duration_s)
        stands = set(_keys(standing(ranked)))
        sure = None if confidence is None else confidence(prominence(ranked))
        odd = marks(ranked, self.clock, n_snippets, self.duration_s, cut)
        makers = _makers(found)
        for number, (record, row, key) in enumerate(zip(drawn, rows, _keys(ranked), strict=True)):
            by, proposals, index = makers[row]
            stood = key in stands
            stands.discard(key)  # both models may have found the very same: the better one stands
            record |= {
                "confidence": None if sure is None or not stood else rounded(sure[number]),
                "stands": stood,
                "found_by": by,
                "marks": list(odd[number]),
                "members": self.members(proposals, index),
            }
        return drawn

    def members(self, proposals: Proposals, index: int) -> list[list[float]]:
        if proposals.fused is None:
            return []
        chosen = proposals.candidates.instances[proposals.fused.members(index)].sorted()
        return [[one["start"], one["end"], one["score"]] for one in self.plain(chosen)[0]]


def _makers(found: Found) -> list[tuple[str | None, Proposals, int]]:
    """Who found each instance (None where there is one model alone), and which of that model's proposals it is."""
    if found.origin is None:
        return [(None, found.own, number) for number in range(len(found.instances))]
    own, teachers = found.own, found.teachers
    places = [place for one in teachers for place in _makers(one)]
    places += [("detector", own, number) for number in range(len(own.instances))]
    taught = Instances.concat([one.instances for one in teachers])
    also = [_same(found.instances, other) for other in (taught, own.instances)]
    makers: list[tuple[str | None, Proposals, int]] = []
    for number, place in enumerate(found.origin):
        _, proposals, index = places[place]
        by = "both" if also[0][number] and also[1][number] else "detector" if proposals is own else "teacher"
        makers.append((by, proposals, index))
    return makers


def _keys(instances: Instances) -> list[tuple[float, float, int]]:
    """Where an instance lies and what it is."""
    return [
        (*ends, label) for ends, label in zip(instances.segments.tolist(), instances.class_ids.tolist(), strict=True)
    ]


def _same(instances: Instances, others: Instances) -> list[bool]:
    if not len(others):
        return [False] * len(instances)
    same = instances.class_ids[:, None] == others.class_ids[None, :]
    return ((iou(instances.segments, others.segments) > SAME) & same).any(axis=1).tolist()


def _activations(sight: Sight, classes: tuple[str, ...], shown: tuple[str, ...]) -> list[Record]:
    if not sight.maps:
        return []
    seen = mean_map(sight.maps)
    curves = [curve(name, "activation", name, seen.tcam[:, classes.index(name)]) for name in shown]
    return curves + ([] if seen.attention is None else [curve("attention", "attention", None, seen.attention)])
