import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import tcams
from wtal.errors import InputError
from wtal.pseudo.candidates import RELEASED_FLANKS, Candidates, Flanks, find_candidates

LEVELS = [0.0, 0.1, 0.3, 0.5]


def by_hand(curve, levels, min_length, flanks):
    """Runs and contrasts by loops over snippets and fine slices of them, as one would explain it."""
    found = []
    for level in levels:
        start = None
        for i, value in enumerate([*curve, -np.inf]):
            if value > level and start is None:
                start = i
            elif value <= level and start is not None:
                if i - start >= min_length:
                    found.append((start, i))
                start = None
    fine = 1000
    values = np.repeat(curve, fine)
    out = []
    for s, e in found:
        w = flanks.width(np.array([float(e - s)]))[0]
        low, high = max(0, round((s - w) * fine)), min(len(values), round((e + w) * fine))
        outer = np.concatenate([values[low : s * fine], values[e * fine : high]])
        out.append((s, e, values[s * fine : e * fine].mean() - (outer.mean() if len(outer) else 0.0)))
    return np.array(out).reshape(-1, 3)


@given(tcams(), st.sampled_from([1, 2, 3]))
def test_runs_and_contrast_are_those_of_a_loop_over_snippets(tcam, min_length):
    flanks = Flanks(0.25)
    found = find_candidates(tcam, LEVELS, min_length=min_length, flanks=flanks)
    for label in range(tcam.shape[1]):
        mine = found.instances.of_class(label)
        expected = by_hand(tcam[:, label], LEVELS, min_length, flanks)
        np.testing.assert_array_equal(mine.segments, expected[:, :2])
        np.testing.assert_allclose(mine.scores, expected[:, 2], atol=1e-9)


@given(tcams())
def test_candidates_lie_in_the_video_and_above_their_threshold(tcam):
    found = find_candidates(tcam, LEVELS, min_length=1)
    assert (found.instances.starts >= 0).all()
    assert (found.instances.ends <= len(tcam)).all()
    assert (found.inner > -1e-12).all()  # a cumulative sum may round a tiny mean to 0


@given(tcams(), st.integers(2, 5))
def test_an_upsampled_run_stands_on_a_snippet_that_is_above_the_threshold(tcam, factor):
    # between two centres the curve is between their values, so something under the run or beside it is above
    fine = find_candidates(tcam, [0.3], min_length=0, upsample=factor).instances
    for (start, end), label in zip(fine.segments, fine.class_ids, strict=True):
        near = tcam[max(0, int(np.floor(start - 0.5))) : int(np.ceil(end + 0.5)), label]
        assert (near > 0.3).any()


def test_upsampling_keeps_a_symmetric_bump_where_it_is():
    curve = np.array([0, 0, 1, 1, 0, 0.0])[:, None]
    (segment,) = find_candidates(curve, [0.5], upsample=16).instances.segments
    assert segment.mean() == pytest.approx(3.0)


def test_the_cutting_curve_cuts_and_the_tcam_scores():
    tcam = np.array([0.1, 0.2, 0.3, 0.4])[:, None]
    attention = np.array([0.0, 0.9, 0.9, 0.0])
    found = find_candidates(tcam, [0.5], cut=attention, flanks=Flanks(0.5))
    assert found.instances.segments.tolist() == [[1.0, 3.0]]
    assert found.instances.scores.tolist() == pytest.approx([0.25 - 0.25])
    assert found.inner.tolist() == pytest.approx([0.25])


def test_relative_thresholds_follow_the_range_of_the_curve():
    curve = np.array([5.0, 5.0, 7.0, 7.0, 5.0])[:, None]
    assert find_candidates(curve, [0.5], relative=True).instances.segments.tolist() == [[2.0, 4.0]]
    # halfway up from the lowest to the highest, wherever zero is
    below = find_candidates(curve - 6.0, [0.25, 0.75], relative=True).instances
    assert below.segments.tolist() == [[2.0, 4.0], [2.0, 4.0]]
    assert find_candidates(curve, [0.5], relative=False).instances.segments.tolist() == [[0.0, 5.0]]


def test_outer_weight_and_video_score_enter_the_score():
    tcam = np.array([0.2, 0.2, 1.0, 1.0, 0.2, 0.2])[:, None]
    options = {"flanks": Flanks(1.0), "thresholds": [0.5]}
    assert find_candidates(tcam, **options).instances.scores[0] == pytest.approx(0.8)
    assert find_candidates(tcam, outer_weight=0.5, **options).instances.scores[0] == pytest.approx(0.9)
    scored = find_candidates(tcam, video_scores=np.array([0.5]), video_score_weight=0.2, **options)
    assert scored.instances.scores[0] == pytest.approx(0.9)


def test_released_rule_takes_one_snippet_past_the_run_and_never_the_last_into_a_flank():
    tcam = np.array([0, 0.5, 1.0, 1.0, 0.5, 0.25, 9.0])[:, None]
    found = find_candidates(
        tcam, [0.7], classes=[0], dilation=(0.0, 1.0), flanks=RELEASED_FLANKS, flank_rounding="truncate"
    )
    assert found.instances.segments.tolist()[0] == [2.0, 5.0]
    assert found.inner[0] == pytest.approx((1 + 1 + 0.5) / 3)
    assert found.instances.scores[0] == pytest.approx((1 + 1 + 0.5) / 3 - 0.5)  # right flank: less than a snippet


def test_the_released_rule_keeps_the_last_whole_snippet_out_of_flanks_of_upsampled_curves():
    tcam = np.array([0, 0, 1.0, 1.0, 0.4, 0.4, 0.4, 9.0])[:, None]
    cut = np.array([0, 0, 1.0, 1.0, 0, 0, 0, 0])
    found = find_candidates(tcam, [0.5], cut=cut, upsample=2, flanks=Flanks(2.0), flank_rounding="truncate")
    assert found.instances.segments.tolist() == [[2.0, 4.0]]
    # half snippets of the two flanks, [0, 2) and [4, 7), by interpolation between centres
    outer = (0.25 + 0.55 + 4 * 0.4 + 2.55) / 10
    assert found.instances.scores.tolist() == pytest.approx([(0.75 + 1 + 1 + 0.85) / 4 - outer])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tcam": np.array([[0.1], [np.nan]])}, "snippet 1, class 0"),
        ({"tcam": np.array([[np.inf]])}, "inf"),
        ({"tcam": np.zeros(5)}, r"\(5,\)"),
        ({"thresholds": [0.1, -0.2]}, "-0.2"),
        ({"thresholds": [np.nan]}, "nan"),
        ({"classes": [3]}, "class 3"),
        ({"classes": [-1]}, "class -1"),
        ({"cut": np.zeros(3)}, r"\(3,\)"),
        ({"upsample": 0}, "upsample"),
        ({"video_score_weight": 0.2}, "video_scores"),
        ({"video_scores": np.zeros(4)}, r"\(4,\)"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"tcam": np.zeros((2, 1)), "thresholds": [0.1], **change}
    with pytest.raises(InputError, match=message):
        find_candidates(**arguments)


def test_empty_everything_gives_no_candidates():
    assert len(find_candidates(np.zeros((0, 2)), LEVELS)) == 0
    assert len(find_candidates(np.ones((5, 2)), [])) == 0
    assert len(find_candidates(np.ones((5, 2)), LEVELS, classes=[])) == 0
    assert len(find_candidates(np.zeros((5, 0)), LEVELS)) == 0
    assert len(Candidates.concat([])) == 0


def test_one_snippet():
    assert len(find_candidates(np.ones((1, 1)), [0.5])) == 0
    assert find_candidates(np.ones((1, 1)), [0.5], min_length=1).instances.segments.tolist() == [[0.0, 1.0]]


def test_what_a_threshold_cuts_off_may_count_as_zero():
    curve = np.array([[0.3], [0.3], [0.9], [0.9], [0.3], [0.8], [0.8]])
    plain = find_candidates(curve, [0.2, 0.5], flanks=Flanks(1.0))
    zeroed = find_candidates(curve, [0.2, 0.5], flanks=Flanks(1.0), zero_below=True)
    assert zeroed.instances.segments.tolist() == plain.instances.segments.tolist() == [[0, 7], [2, 4], [5, 7]]
    assert plain.instances.scores.tolist() == pytest.approx([4.3 / 7, 0.9 - 1.7 / 4, 0.8 - 0.6])
    assert zeroed.instances.scores.tolist() == pytest.approx([4.3 / 7, 0.9 - 0.8 / 4, 0.8 - 0.45])
