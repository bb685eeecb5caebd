import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import instances
from wtal.errors import InputError
from wtal.files import written_whole
from wtal.instances import Instances
from wtal.timebase import TimeBase


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 1.0]],), r"\[1.0, 1.0\]"),
        (([[0.0, 1.0], [5.0, 2.0]],), "number 1"),
        (([[0.0, np.nan]],), "nan"),
        (([0.0, 1.0],), r"\(2,\)"),
        (([[0.0, 1.0]], [np.inf]), "inf"),
        (([[0.0, 1.0]], [1.0, 2.0]), r"\(2,\)"),
        (([[0.0, 1.0]], [1.0], [-2]), "-2"),
        (([[0.0, 1.0]], [1.0], [0.5]), "float"),
    ],
)
def test_bad_instances_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        Instances(*arguments)


@given(instances(), st.randoms(use_true_random=False))
def test_sorting_does_not_depend_on_the_order_they_came_in(found, random):
    order = list(range(len(found)))
    random.shuffle(order)
    one, two = found.sorted(), found[order].sorted()
    np.testing.assert_array_equal(one.segments, two.segments)
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.class_ids, two.class_ids)


def test_empty_sets_are_sets():
    for nothing in (Instances.empty(), Instances([]), Instances.concat([]), Instances([[0.0, 1.0]])[[]]):
        assert len(nothing.sorted()) == len(nothing.of_class(0)) == len(nothing.lengths) == 0


@given(st.floats(1, 60), st.floats(1, 64), st.floats(-2, 2), st.floats(0, 1000))
def test_seconds_and_positions_are_inverse(fps, stride, offset, position):
    base = TimeBase(fps, stride, offset)
    there = base.to_positions(base.to_seconds(np.array([position])))
    np.testing.assert_allclose(there, [position], atol=1e-9)


def test_instances_are_cut_to_the_video_and_dropped_outside_it():
    found = Instances([[0.0, 2.0], [8.0, 12.0], [30.0, 31.0]], [0.1, 0.2, 0.3], [0, 1, 2], unit="snippets")
    base = TimeBase(offset_snippets=-0.5)
    seconds = base.instances_to_seconds(found, duration_s=6.4)
    assert seconds.segments.tolist() == [pytest.approx([0.0, 0.96]), pytest.approx([4.8, 6.4])]
    assert seconds.class_ids.tolist() == [0, 1]


def test_instances_go_to_seconds_and_back_by_the_offset_of_the_first_snippet():
    base = TimeBase(fps=30.0, stride_frames=15.0, offset_snippets=0.5)
    found = Instances([[0.0, 2.0], [8.0, 12.0]], [0.1, 0.2], [0, 1], unit="snippets")
    seconds = base.instances_to_seconds(found)
    assert (seconds.segments.tolist(), seconds.unit) == ([[0.25, 1.25], [4.25, 6.25]], "seconds")
    back = base.instances_to_snippets(seconds)
    assert (back.segments.tolist(), back.unit) == (found.segments.tolist(), "snippets")
    assert back.scores.tolist() == [0.1, 0.2]
    assert back.class_ids.tolist() == [0, 1]


@pytest.mark.parametrize("options", [{"fps": 0.0}, {"stride_frames": -1.0}, {"offset_snippets": np.nan}])
def test_an_impossible_time_base_is_refused(options):
    (name,) = options
    with pytest.raises(InputError, match=name):
        TimeBase(**options)


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("before")

    def interrupted():
        with written_whole(path) as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file.out\.json"), written_whole(tmp_path / "file" / "out.json"):
        pass
