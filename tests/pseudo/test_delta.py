import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from wtal.errors import InputError
from wtal.pseudo.delta import PAPER_SCHEDULE, RELEASED_SCHEDULE, Schedule, Stage, delta_targets

labels = hnp.arrays(np.float64, (6, 3), elements={"min_value": 0, "max_value": 1})


@given(labels)
def test_labels_that_stay_teach_nothing(g):
    assert not delta_targets(g, g).any()


@given(labels, labels)
def test_scale_multiplies_the_change(g, before):
    np.testing.assert_allclose(delta_targets(g, before, scale=2.15), 2.15 * (g - before))


@given(labels)
def test_the_first_generation_is_defined(g):
    np.testing.assert_array_equal(delta_targets(g, None), g)
    assert not delta_targets(g, None, first="nothing").any()


def test_labels_of_another_video_are_refused():
    with pytest.raises(InputError, match=r"\(3, 2\) now and \(4, 2\) before"):
        delta_targets(np.zeros((3, 2)), np.zeros((4, 2)))


def test_the_paper_renews_labels_at_its_epochs_and_always_uses_their_change():
    made = [epoch for epoch in range(350) if PAPER_SCHEDULE.relabels(epoch)]
    assert made == [200, 215, 230, 245, 270, 290]
    assert PAPER_SCHEDULE.active(199) is None
    assert PAPER_SCHEDULE.active(200).source == "delta"


def test_the_released_schedule_is_the_table_in_the_docs():
    schedule = RELEASED_SCHEDULE
    assert [e for e in range(350) if schedule.relabels(e)] == [200, 230, 245, 260, 275, 300]
    assert [schedule.relabels(e).temperature for e in (200, 230, 245, 260, 275, 300)] == [
        0.02, 0.02, 0.02, 0.002, 0.002, 0.0016,
    ]  # fmt: skip
    assert schedule.active(200) is None
    targets = {e: (schedule.active(e).source, schedule.active(e).scale) for e in range(201, 350)}
    assert all(targets[e] == ("raw", 1.0) for e in range(201, 251))
    assert all(targets[e] == ("delta", 2.0) for e in range(251, 301))
    assert all(targets[e] == ("delta", 2.15) for e in range(301, 350))
    assert schedule.active(201).weight_at(201) == pytest.approx(10.35)
    assert schedule.active(300).weight_at(300) == 50


@pytest.mark.parametrize("starts", [(10, 5), (5, 5), (-1,), (40,)])
def test_a_schedule_out_of_order_is_refused(starts):
    with pytest.raises(InputError, match=str(starts[-1])):
        Schedule(tuple(Stage(epoch) for epoch in starts), epochs=40)
