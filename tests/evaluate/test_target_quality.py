import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.evaluate.target_quality import average_precision, calibration, inside, target_quality
from wtal.instances import Instances
from wtal.timebase import TimeBase

CLOCK = TimeBase(fps=1.0, stride_frames=1.0)
ranked = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), min_size=1, max_size=30)


@given(ranked)
def test_ties_count_as_one_place(pairs):
    values, right = np.array([v for v, _ in pairs]), np.array([r for _, r in pairs])
    if not right.any():
        return
    expected, before = 0.0, 0.0
    for level in sorted(set(values), reverse=True):
        chosen = values >= level
        recall = right[chosen].sum() / right.sum()
        expected += (recall - before) * right[chosen].mean()
        before = recall
    assert average_precision(values, right) == pytest.approx(expected)


def truth():
    actions = Instances([[2.0, 4.0], [6.0, 7.0]], class_ids=[0, 1])
    return Annotations(("Run", "Jump"), {"a": Video("train", None, actions), "b": Video("train", None, actions[:1])})


def test_labels_equal_to_the_truth_are_perfect_and_flat_ones_are_the_base_rate():
    perfect = {
        name: np.stack([inside(video.instances.of_class(c), 10, CLOCK) for c in range(2)], axis=1).astype(float)
        for name, video in truth().videos.items()
    }
    assert target_quality(perfect, truth(), CLOCK).mean == pytest.approx(100.0)
    flat = {name: np.ones((10, 2)) for name in perfect}
    assert target_quality(flat, truth(), CLOCK).ap.tolist() == pytest.approx([20.0, 10.0])


def test_only_videos_that_hold_the_class_count():
    labels = {"a": np.zeros((10, 2)), "b": np.full((10, 2), 9.0)}
    labels["a"][6, 1] = 1.0
    quality = target_quality(labels, truth(), CLOCK)
    assert dict(zip(quality.classes, quality.ap, strict=True))["Jump"] == pytest.approx(100.0)


def test_calibrated_labels_lie_on_the_diagonal():
    rng = np.random.default_rng(0)
    values = rng.random(200_000)
    mean, share, count = calibration(values, rng.random(200_000) < values)
    np.testing.assert_allclose(mean, share, atol=0.02)
    assert count.sum() == 200_000


def test_labels_of_unknown_videos_or_without_truth_are_refused():
    with pytest.raises(InputError, match="nobody"):
        target_quality({"nobody": np.zeros((3, 2))}, truth(), CLOCK)
    empty = Annotations(("Run",), {"a": Video("train", None, Instances.empty())})
    with pytest.raises(InputError, match="nothing to compare"):
        target_quality({"a": np.zeros((3, 1))}, empty, CLOCK)


def test_videos_may_have_clocks_of_their_own():
    values = {"a": np.array([[0.0], [1.0]]), "b": np.array([[0.0], [1.0]])}
    videos = {name: Video("train", None, Instances([[2.0, 4.0]])) for name in values}
    truth = Annotations(("Run",), videos)
    slow = TimeBase(fps=8.0)  # two seconds a snippet
    assert target_quality(values, truth, {"a": slow, "b": slow}).mean == 100.0
    quick = target_quality(values, truth, {"a": slow, "b": TimeBase(fps=8.0, offset_snippets=1.0)})
    assert quick.mean < 100.0
