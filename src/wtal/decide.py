"""From a ranked list to a decision: the few instances that one would say happen, instead of all that may.

mAP asks for a ranked list: every instance that might be one, however doubtful, since a low rank costs little. A person
asks what happens when.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.propose import Cut
from wtal.timebase import TimeBase

#: What is odd about an instance: it fills its video, or no part of the video is beside it that its contrast could use.
Mark = Literal["whole_video", "empty_flanks"]
#: From `prominence` to the probability that the class is right: a `wtal.evaluate.calibration.Calibration`.
Confidence = Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]]

#: An instance stands if its score is at least this share of the best one's of its class in the video.
LEAST_SHARE = 0.3
#: Of two instances of one class, the lesser goes if they share more than this part of the shorter one.
MOST_OVERLAP = 0.2
#: What is decided for is more likely right than not.
LEAST_CONFIDENCE = 0.5


@dataclass(frozen=True, eq=False)
class Decision:
    """The instances that are decided for, best first, and how likely the class of each is right; None: not known."""

    instances: Instances
    confidence: Float[np.ndarray, " n"] | None = None

    def __len__(self) -> int:
        return len(self.instances)

    def written(self) -> Instances:
        """The instances as files have them: their score is the confidence where that is known."""
        return self.instances if self.confidence is None else self.instances.scored(self.confidence)


def decide(
    instances: Instances, confidence: Confidence | None = None, *, least_confidence: float = LEAST_CONFIDENCE
) -> Decision:
    """The instances of one video that stand out, overlap little, and whose class is likely right.

    Args:
        instances: A video's ranked list.
        confidence: From `prominence` to the probability that the class is right, such as a run's
            `Localizer.card.calibration`; None: not known, and all that stand out are decided for.
        least_confidence: Instances below it are left out.

    >>> ranked = Instances([[0.0, 4.0], [1.0, 6.0], [8.0, 9.0], [20.0, 22.0]], scores=[0.9, 0.8, 0.5, 0.1])
    >>> decide(ranked).instances.segments.tolist()
    [[0.0, 4.0], [8.0, 9.0]]
    """
    if not 0 <= least_confidence <= 1:
        raise InputError(f"least_confidence is a probability from 0 to 1, got {least_confidence}")
    found = standing(instances)
    if confidence is None:
        return Decision(found)
    likely = confidence(prominence(found))
    kept = likely >= least_confidence
    return Decision(found[kept], likely[kept])


def standing(instances: Instances) -> Instances:
    """What a decision chooses from, best first: what stands out in its class and is not covered by something better.

    Scores of what stands are above 0: a candidate that its surroundings outshine says nothing.
    """
    ranked = instances.sorted()
    kept: list[int] = []
    for number in np.flatnonzero(ranked.scores > 0).tolist():
        same = [other for other in kept if ranked.class_ids[other] == ranked.class_ids[number]]
        if same and ranked.scores[number] < LEAST_SHARE * ranked.scores[same[0]]:
            continue
        start, end = ranked.segments[number]
        shared = np.minimum(ranked.ends[same], end) - np.maximum(ranked.starts[same], start)
        if not (shared > MOST_OVERLAP * np.minimum(ranked.lengths[same], end - start)).any():
            kept.append(number)
    return ranked[kept]


def prominence(instances: Instances) -> Float[np.ndarray, " n"]:
    """What a confidence is a function of: the score, times the share of the class among the best scores of all classes.

    A class that is there is usually found alone or far ahead of others, so the share tells more than the score does;
    the score tells the rest, as in a video in which nothing happens and one class is found all the same.

    >>> prominence(Instances([[0.0, 4.0], [5.0, 6.0], [0.0, 4.0]], [0.6, 0.3, 0.2], [0, 0, 1])).round(3).tolist()
    [0.45, 0.225, 0.05]
    """
    scores = np.maximum(instances.scores, 0.0)
    best = np.zeros(1 + instances.class_ids.max(initial=0))
    np.maximum.at(best, instances.class_ids, scores)
    return scores * best[instances.class_ids] / max(best.sum(), 1e-12)


def overlaps_little(instances: Instances) -> bool:
    """Whether no two instances of a class overlap by more than a decision allows."""
    return len(standing(instances.scored(np.ones(len(instances))))) == len(instances)


def marks(
    instances: Instances, clock: TimeBase, n_snippets: int, duration_s: float = np.inf, cut: Cut | None = None
) -> list[tuple[Mark, ...]]:
    """What is odd about each instance, for whoever reads it.

    Args:
        instances: Instances of one video in seconds.
        clock: How its snippets lie on its clock.
        n_snippets: How many it has.
        duration_s: How long it lasts.
        cut: How its candidates were made, which says how far their contrast looks; None: nothing is said of flanks.

    >>> marks(Instances([[0.0, 6.4], [1.0, 2.0]]), TimeBase(), 10)
    [('whole_video',), ()]
    """
    end_s = min(duration_s, float(clock.to_seconds(np.array([float(n_snippets)]))[0]))
    found: list[tuple[Mark, ...]] = []
    for start, end in instances.segments:
        if start < clock.snippet_s and end > end_s - clock.snippet_s:
            found.append(("whole_video",))
        elif cut is not None and not _beside(clock.to_positions(np.array([start, end])), n_snippets, cut):
            found.append(("empty_flanks",))
        else:
            found.append(())
    return found


def _beside(segment: Float[np.ndarray, " two"], n_snippets: int, cut: Cut) -> bool:
    """Whether some of the video lies in the flanks of a segment [snippets]."""
    start, end = np.clip(segment, 0, n_snippets)
    width = float(cut.flanks.width(segment[1:] - segment[:1])[0])
    left, right = max(0.0, start - width), min(float(n_snippets), end + width)
    if cut.flank_rounding == "truncate":
        left, right = np.trunc(left), min(np.trunc(right), n_snippets - 1.0)
    return bool(left < start or end < right)
