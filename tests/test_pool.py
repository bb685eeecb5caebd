"""Several models' instances as one set."""

import numpy as np
import pytest

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.pool import Pooling, support

FIRST = Instances([[0.0, 4.0], [20.0, 22.0]], [0.8, 0.2], [0, 1], unit="snippets")
SECOND = Instances([[0.0, 5.0], [40.0, 44.0]], [0.4, 0.6], [0, 0], unit="snippets")


def test_scores_are_the_weighted_support_of_all():
    pooled = Pooling(weight=0.5, teacher_weights=(2.0,), sigma=1e9)([FIRST], SECOND)
    by_origin = dict(zip(pooled.origin.tolist(), pooled.instances.scores.tolist(), strict=True))
    iou = 4 / 5
    assert by_origin == pytest.approx(
        {0: 2 * 0.8 + 0.5 * iou**2 * 0.4, 1: 2 * 0.2, 2: 2 * iou**2 * 0.8 + 0.5 * 0.4, 3: 0.5 * 0.6}
    )
    assert (np.diff(pooled.instances.scores) <= 0).all()


def test_origin_says_where_each_came_from_also_after_some_are_dropped():
    faint = FIRST.scored(np.array([0.8, 1e-5]))
    pooled = Pooling()([faint], SECOND)
    every = Instances.concat([faint, SECOND])
    assert len(pooled.instances) == 3
    np.testing.assert_array_equal(every.segments[pooled.origin], pooled.instances.segments)


def test_a_vote_moves_ends_towards_what_others_of_the_class_say_and_nothing_else():
    plain, voted = Pooling(weight=1.0)([FIRST], SECOND), Pooling(weight=1.0, vote=4.0)([FIRST], SECOND)
    np.testing.assert_array_equal(plain.origin, voted.origin)
    np.testing.assert_array_equal(plain.instances.scores, voted.instances.scores)
    ends = dict(zip(voted.origin.tolist(), voted.instances.segments.tolist(), strict=True))
    near = 0.8**4
    assert ends[0] == pytest.approx([0.0, (0.8 * 4 + 0.4 * near * 5) / (0.8 + 0.4 * near)])
    assert ends[1] == [20.0, 22.0]
    assert ends[3] == [40.0, 44.0]


def test_a_vote_without_votes_leaves_an_instance_where_it_is():
    unheard = Pooling(weight=1.0, teacher_weights=(0.0,), vote=5000.0)([FIRST], SECOND)
    ends = dict(zip(unheard.origin.tolist(), unheard.instances.segments.tolist(), strict=True))
    assert ends[0] == [0.0, 4.0]


def test_what_nobody_vouches_for_is_not_told():
    assert len(Pooling(weight=0.0, vote=2.0)([FIRST[:0]], SECOND).instances) == 0
    lone = Instances([[1.0, 2.0]], [-0.3], unit="snippets")
    assert not len(Pooling(vote=2.0)([lone], lone).instances)  # what scores below 0 is not told


def test_teachers_agree_on_one_box_for_each_group_and_one_alone_keeps_its_own():
    agreed = Pooling().agreed([FIRST, SECOND])
    assert len(agreed) == 3
    assert agreed.segments[0, 0] == 0.0
    assert 4.0 < agreed.segments[0, 1] < 5.0
    assert Pooling().agreed([FIRST]) is FIRST


def test_nobody_supports_nothing():
    empty = Instances.empty("snippets")
    assert support(FIRST, empty, 2.0).tolist() == [0.0, 0.0]
    assert len(Pooling(vote=4.0)([empty], empty).instances) == 0
    assert len(Pooling().agreed([empty, empty])) == 0


@pytest.mark.parametrize("wrong", [{"weight": -1.0}, {"teacher_weights": (1.0, -1.0)}, {"sigma": 0.0}, {"vote": 0.0}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError, match="weights must be 0 or more"):
        Pooling(**wrong)


def test_as_many_weights_as_teachers():
    with pytest.raises(InputError, match="teacher_weights are 2 for 1 teacher:"):
        Pooling(teacher_weights=(1.0, 2.0))([FIRST], SECOND)
