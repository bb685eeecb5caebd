"""A decision: few instances that stand out, apart from each other, from a ranked list of all that may be."""

import numpy as np
import pytest

from wtal.decide import LEAST_SHARE, MOST_OVERLAP, decide, marks, overlaps_little, prominence, standing
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.propose import RELEASED, Cut
from wtal.timebase import TimeBase


def ranked(seed: int, n: int = 60) -> Instances:
    rng = np.random.default_rng(seed)
    starts = rng.uniform(0, 80, n)
    segments = np.stack([starts, starts + rng.uniform(0.5, 25, n)], axis=1)
    return Instances(segments, rng.normal(0.3, 0.3, n), rng.integers(0, 3, n))


def shared(one: np.ndarray, other: np.ndarray) -> float:
    """The part of the shorter of two segments that both have."""
    both = min(one[1], other[1]) - max(one[0], other[0])
    return max(0.0, both) / min(one[1] - one[0], other[1] - other[0])


@pytest.mark.parametrize("seed", range(5))
def test_what_stands_is_apart_and_what_goes_has_a_reason(seed: int) -> None:
    given = ranked(seed)
    found = standing(given)
    assert len(found) > 3
    assert (np.diff(found.scores) <= 0).all()
    for label in range(3):
        mine, every = found.of_class(label), given.of_class(label)
        best = every.scores.max()
        pairs = [(i, j) for i in range(len(mine)) for j in range(i)]
        assert all(shared(mine.segments[i], mine.segments[j]) <= MOST_OVERLAP for i, j in pairs)
        kept = {tuple(segment) for segment in mine.segments.tolist()}
        for segment, score in zip(every.segments, every.scores, strict=True):
            better = [other for other, at in zip(mine.segments, mine.scores, strict=True) if at > score]
            covered = any(shared(segment, other) > MOST_OVERLAP for other in better)
            assert (tuple(segment.tolist()) in kept) == (score > 0 and score >= LEAST_SHARE * best and not covered)


def test_nobody_sees_a_negative_score_and_the_order_of_the_list_changes_nothing() -> None:
    given = ranked(1)
    shuffled = given[np.random.default_rng(0).permutation(len(given))]
    assert standing(given).segments.tolist() == standing(shuffled).segments.tolist()
    assert standing(given).scores.min() > 0
    assert len(standing(Instances([[0.0, 1.0]], [-0.2]))) == 0
    assert len(decide(Instances.empty())) == 0


def test_classes_do_not_push_each_other_out() -> None:
    both = Instances([[0.0, 5.0], [0.0, 5.0]], [0.9, 0.4], [0, 1])
    assert decide(both).instances.class_ids.tolist() == [0, 1]


def test_confidence_leaves_out_what_is_unlikely_and_is_what_files_have_as_score() -> None:
    given = Instances([[0.0, 5.0], [8.0, 9.0], [0.0, 5.0]], [0.8, 0.4, 0.2], [0, 0, 1])
    decision = decide(given, lambda prominence: np.sqrt(prominence), least_confidence=0.5)
    assert decision.instances.scores.tolist() == [0.8, 0.4]
    np.testing.assert_allclose(decision.confidence, np.sqrt([0.64, 0.32]))
    np.testing.assert_allclose(decision.written().scores, decision.confidence)
    assert decide(given).written().scores.tolist() == [0.8, 0.4, 0.2]
    with pytest.raises(InputError, match="probability from 0 to 1"):
        decide(given, least_confidence=50)


def test_prominence_grows_with_the_score_and_with_the_lead_over_other_classes() -> None:
    alone = Instances([[0.0, 5.0]], [0.5])
    rivalled = Instances([[0.0, 5.0], [0.0, 5.0]], [0.5, 0.5], [0, 1])
    assert prominence(alone).tolist() == [0.5]
    assert prominence(rivalled).tolist() == [0.25, 0.25]
    # it is the same of a list and of what stands in it
    given = ranked(2)
    found = standing(given)
    of_list = dict(zip(map(tuple, given.segments.tolist()), prominence(given).tolist(), strict=True))
    np.testing.assert_allclose(prominence(found), [of_list[tuple(segment)] for segment in found.segments.tolist()])


def test_a_decision_is_told_from_a_ranked_list() -> None:
    assert not overlaps_little(ranked(0))
    assert overlaps_little(standing(ranked(0)))


def test_what_fills_the_video_or_has_nothing_beside_it_is_marked() -> None:
    clock = TimeBase(fps=1, stride_frames=1)
    found = Instances([[0.0, 10.0], [0.4, 9.7], [0.0, 6.0], [4.0, 6.0]])
    assert marks(found, clock, 10, 10.0) == [("whole_video",), ("whole_video",), (), ()]
    # the released code cuts the ends of flanks to whole snippets, so that a short one after an instance is gone
    assert marks(found, clock, 10, 10.0, RELEASED.cut)[2:] == [("empty_flanks",), ()]
    assert marks(found, clock, 10, 10.0, Cut())[2:] == [(), ()]
    assert marks(Instances.empty(), clock, 10) == []
