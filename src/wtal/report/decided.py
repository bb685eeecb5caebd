"""What a run says happens in the test videos, and what their tags say to it: all that there is without true times."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wtal.card import read_card
from wtal.data.store import Store
from wtal.decide import Decision, decide
from wtal.errors import InputError
from wtal.evaluate.calibration import Calibration, Judged, Reliability, fit, judged, reliability
from wtal.formats import read_predictions
from wtal.instances import Instances
from wtal.report.runs import LoadedRun


@dataclass(frozen=True, eq=False)
class Decided:
    """A run's decisions in its test videos, or in training videos that models of folds have held out.

    Args:
        run: The run.
        videos: The decision for each video.
        tags: The class numbers that each of these videos carries; none where they are not known.
        confidence: How likely classes are right; None: not known.
        evidence: What tells how far that confidence holds; None: nothing does.
        held_out: Whether the videos are training videos.
    """

    run: LoadedRun
    videos: Mapping[str, Decision]
    tags: Mapping[str, list[int]]
    confidence: Calibration | None
    evidence: Judged | None
    held_out: bool

    @property
    def reliability(self) -> Reliability | None:
        """How far the confidence holds, each video by a fit without it."""
        return None if self.evidence is None else reliability(self.evidence)

    @property
    def tagged(self) -> dict[str, tuple[set[int], set[int]]]:
        """What each tagged video carries, and what is found in it."""
        return {
            name: (set(self.tags[name]), set(decision.instances.class_ids.tolist()))
            for name, decision in self.videos.items()
            if self.tags[name]
        }

    def doubt(self, name: str) -> float:
        """From 0 to 1: how unsure the best of what is found in a video is; of what lacks a confidence, its score."""
        decision = self.videos[name]
        if not len(decision):
            return 1.0
        sure = decision.instances.scores if decision.confidence is None else decision.confidence
        return float(np.clip(1.0 - sure.max(), 0.0, 1.0))

    def doubtful_first(self) -> list[str]:
        """The videos, the least sure first; of equals, those that contradict their tags."""
        against = {name: found != carried for name, (carried, found) in self.tagged.items()}
        return sorted(self.videos, key=lambda name: (-round(self.doubt(name), 2), not against.get(name, False), name))


def decided(one: LoadedRun, store: Store) -> Decided | None:
    """What a run has decided; None if it has no predictions yet."""
    tags = store.tag_ids()
    ranked = one.run.predictions(store.classes)
    held_out = ranked is None
    if held_out:  # without test videos, those that the models of the folds have not learned from
        ranked = _held_out(one, store)
    if ranked is None:
        return None
    ranked = {name: found for name, found in ranked.items() if name in store.records}
    evidence = judged(ranked, tags)
    if not len(evidence) and (other := _held_out(one, store)) is not None:
        evidence = judged(other, tags)
    try:
        confidence = read_card(one.run.path).calibration
    except InputError:  # said elsewhere
        confidence = None
    if confidence is None and len(evidence):
        confidence = fit(evidence, "the tags of these videos, for this page alone")
    videos = {name: decide(found, confidence) for name, found in sorted(ranked.items())}
    return Decided(one, videos, tags, confidence, evidence if len(evidence) else None, held_out)


def _held_out(one: LoadedRun, store: Store) -> dict[str, Instances] | None:
    return read_predictions(one.run.held_out, store.classes) if one.run.held_out.exists() else None
