"""What the page shows of one video, as plain JSON: instances with what they were made from, truth, and curves."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from wtal.annotations import Annotations
from wtal.data.store import Store
from wtal.formats.targets import TargetFile, read_targets
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.maps import mean_map
from wtal.overlap import iou
from wtal.propose import Fusion, Nms, Proposals, Proposer
from wtal.pseudo.delta import delta_targets
from wtal.sight import Found, Sight
from wtal.timebase import TimeBase
from wtal.training.run import Run

Record = dict[str, Any]
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
        truth: Its true instances in seconds, by the model's class numbers; None if they are not known.
        url: Where a browser finds the video; None: there is nothing to play.
        type: The kind of that file, such as video/mp4.
    """

    name: str
    features: Shaped[np.ndarray, "..."]
    timebase: TimeBase
    duration_s: float
    tags: tuple[str, ...] | None = None
    truth: Instances | None = None
    url: str | None = None
    type: str | None = None

    @classmethod
    def of_store(cls, store: Store, name: str, truth: Annotations | None = None) -> "Footage":
        """A video of a store; `truth` is the store's, read once for all of its videos."""
        known = None if truth is None or name not in truth.videos else truth.videos[name].instances
        features, clock, duration_s = store.features(name), store.timebase(name), store.duration_s(name)
        return cls(name, features, clock, duration_s, store.records[name].tags or None, known)


class RunLabels:
    """The pseudo labels that a run has made, generation by generation; a file is read when it is first needed."""

    def __init__(self, run: Path | str) -> None:
        self._run = Run(Path(run))

    @cached_property
    def _files(self) -> dict[int, TargetFile]:
        paths = {epoch: self._run.targets(epoch) for epoch in self._run.metrics().generations}
        return {epoch: read_targets(path) for epoch, path in paths.items() if path.exists()}

    def curves(self, name: str, labels: tuple[str, ...]) -> list[Record]:
        """What the run has taught itself of a video's classes, and how that changed; nothing of an unknown video."""
        curves: list[Record] = []
        for label in labels:
            before = None
            for epoch, file in self._files.items():
                if name not in file.targets or label not in file.classes:
                    continue
                now = file.targets[name][:, [file.classes.index(label)]]
                curves.append(_curve(f"epoch {epoch}", "target", label, now[:, 0]))
                if before is not None:
                    curves.append(_curve(f"epoch {epoch}", "delta", label, delta_targets(now, before)[:, 0]))
                before = now
        return curves


def payload(
    localizer: Localizer,
    footage: Footage,
    *,
    run: str = "",
    sight: Sight | None = None,
    proposer: Proposer | None = None,
    labels: RunLabels | None = None,
) -> Record:
    """All that the page shows of one video.

    Args:
        localizer: The trained model.
        footage: The video.
        run: What the model's run is called.
        sight: What `localizer.look` saw in the video, if that is at hand already.
        proposer: Settings that take the place of the model's own.
        labels: The run's pseudo labels.
    """
    sight = sight or localizer.look(footage.name, footage.features)
    settings = proposer or sight.proposer
    clock = footage.timebase.at(localizer.card.offset_snippets)
    drawn = _Drawn(clock, footage.duration_s, localizer.classes)
    found = sight(settings)
    # the same instances as `localizer(...)` gives: those of which something is left inside the video
    instances = [made for made in drawn.instances(found) if made["start"] < made["end"]]
    best = dict.fromkeys(made["label"] for made in instances)
    shown = set(list(best)[:MOST_CURVES]) | set(footage.tags or ())
    truth = None
    if footage.truth is not None:
        truth = [drawn.segment(*one) for one in zip(footage.truth.segments, footage.truth.class_ids, strict=True)]
        shown |= {one["label"] for one in truth}
    seen = tuple(name for name in localizer.classes if name in shown)
    return {
        "name": footage.name,
        "run": run,
        "video": {"url": footage.url, "type": footage.type},
        "duration": _rounded(footage.duration_s),
        "classes": list(localizer.classes),
        "tags": None if footage.tags is None else list(footage.tags),
        "truth": truth,
        "grid": {
            "start": _rounded(clock.to_seconds(np.zeros(1))[0]),
            "step": round(clock.snippet_s, 6),
            "count": len(footage.features),
        },
        "instances": instances,
        "nms": [one for one in drawn.plain(sight(settings.by(Nms)).instances) if one["start"] < one["end"]],
        "curves": [
            *_activations(sight, localizer.classes, seen),
            *(labels.curves(footage.name, seen) if labels else []),
        ],
        "settings": settings_of(settings, detector=sight.teacher is not None),
    }


def settings_of(proposer: Proposer, *, detector: bool = False) -> Record:
    """The settings that can be changed while one looks, named as in recipes; null where one does not act."""
    combine = proposer.combine
    fusion = vars(combine) if isinstance(combine, Fusion) else {}
    return {
        "levels": None if detector else list(proposer.cut.thresholds),
        "temperature": fusion.get("temperature"),
        "threshold": getattr(combine, "threshold", None),
        "evidence": fusion.get("evidence"),
        "template": fusion.get("template"),
        "combine": "fusion" if fusion else "nms",
    }


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

    def segment(self, ends: Float[np.ndarray, " 2"], class_id: int | np.integer) -> Record:
        return {"start": _rounded(ends[0]), "end": _rounded(ends[1]), "label": self.classes[int(class_id)]}

    def seconds(self, instances: Instances) -> Float[np.ndarray, "n 2"]:
        return self.clock.segments_to_seconds(instances.segments, duration_s=self.duration_s)

    def plain(self, instances: Instances) -> list[Record]:
        # a contrast below 0 says no more to a person than 0 does
        scores = np.maximum(instances.scores, 0.0)
        return [
            {**self.segment(ends, label), "score": _rounded(score)}
            for ends, label, score in zip(self.seconds(instances), instances.class_ids, scores, strict=True)
        ]

    def instances(self, found: Found) -> list[Record]:
        made_by = _makers(found)
        records = self.plain(found.instances)
        for number, record in enumerate(records):
            by, proposals, index = made_by[number]
            record |= {"confidence": None, "found_by": by, "marks": [], "members": self.members(proposals, index)}
        return records

    def members(self, proposals: Proposals, index: int) -> list[list[float]]:
        if proposals.fused is None:
            return []
        chosen = proposals.candidates.instances[proposals.fused.members(index)].sorted()
        return [
            [_rounded(start), _rounded(end), _rounded(max(score, 0.0))]
            for (start, end), score in zip(self.seconds(chosen), chosen.scores, strict=True)
            if start < end
        ]


def _makers(found: Found) -> list[tuple[str | None, Proposals, int]]:
    """Who found each instance (None where there is one model alone), and which of that model's proposals it is."""
    if found.teacher is None:
        return [(None, found.own, number) for number in range(len(found.instances))]
    teacher, own = found.teacher, found.own
    places = {key: (teacher.own, number) for number, key in enumerate(_keys(teacher.instances))}
    places |= {key: (own, number) for number, key in enumerate(_keys(own.instances))}
    also = [_same(found.instances, other) for other in (teacher.instances, own.instances)]
    makers: list[tuple[str | None, Proposals, int]] = []
    for number, key in enumerate(_keys(found.instances)):
        proposals, index = places[key]
        by = "both" if also[0][number] and also[1][number] else "detector" if proposals is own else "teacher"
        makers.append((by, proposals, index))
    return makers


def _keys(instances: Instances) -> list[tuple[float, float, int]]:
    """Where an instance lies and what it is: all of it that pooling leaves as it was."""
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
    curves = [_curve(name, "activation", name, seen.tcam[:, classes.index(name)]) for name in shown]
    return curves + ([] if seen.attention is None else [_curve("attention", "attention", None, seen.attention)])


def _curve(name: str, kind: str, label: str | None, values: Float[np.ndarray, " t"]) -> Record:
    return {"name": name, "kind": kind, "label": label, "values": [_rounded(value, 4) for value in values.tolist()]}


def _rounded(value: float | np.floating, digits: int = 3) -> float:
    return round(float(value), digits)
