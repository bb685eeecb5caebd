import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluate.oracle import mean_ap, on_grid, rows
from strategies import instances
from wtal.annotations import Annotations, Video
from wtal.errors import DataWarning, InputError
from wtal.evaluate import PROTOCOLS, Protocol, score
from wtal.instances import Instances

CLASSES = ("Dive", "Jump", "Run")
COARSE_SCORES = st.sampled_from([0.25, 0.5, 0.75])  # so that ties are the rule


def annotated(truth, split="test"):
    return Annotations(CLASSES, {name: Video(split, None, found) for name, found in truth.items()})


videos = st.dictionaries(st.sampled_from("abcd"), instances(), min_size=1)
predicted = st.dictionaries(st.sampled_from("abcd"), instances(scores=COARSE_SCORES))


@given(truth=videos, found=predicted)
def test_map_is_that_of_the_brute_force_matcher(truth, found):
    assume(any(map(len, truth.values())))
    found = {name: each for name, each in found.items() if name in truth}
    measured = score(found, annotated(truth), protocol="thumos14")
    np.testing.assert_allclose(measured.map, mean_ap(rows(found), rows(truth), measured.tiou), atol=1e-9)


@given(truth=videos, found=predicted)
def test_wtalc_form_is_the_brute_force_matcher_on_whole_snippets(truth, found):
    assume(any(map(len, truth.values())))
    found = {name: each for name, each in found.items() if name in truth}
    measured = score(found, annotated(truth), protocol="thumos14-wtalc")
    # ties in score are ranked by seconds, before the grid makes more of them
    ranked = [(rank, row) for rank, row in enumerate(sorted(rows(found), key=lambda r: (-r[3], *r[2], r[0])))]
    gridded = [(v, c, tuple(on_grid(s, cut=True)), -rank) for rank, (v, c, s, _) in ranked]
    truth_grid = [(v, c, tuple(on_grid(s, cut=False)), q) for v, c, s, q in rows(truth)]
    np.testing.assert_allclose(measured.map, mean_ap(gridded, truth_grid, measured.tiou), atol=1e-9)


@given(truth=videos)
def test_truth_scored_against_itself_is_100(truth):
    assume(any(map(len, truth.values())))
    for protocol in ("thumos14", "activitynet13"):
        measured = score(truth, annotated(truth, PROTOCOLS[protocol].splits[0]), protocol=protocol)
        np.testing.assert_allclose(measured.map, 100.0)
        assert all(value == pytest.approx(100.0) for value in measured.average.values())


@given(bounds=st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 60), st.integers(0, 2)), min_size=1, max_size=12))
def test_truth_on_whole_snippets_is_100_in_the_wtalc_form_too(bounds):
    starts, lengths, labels = np.array(bounds).T
    segments = np.column_stack([starts, starts + lengths]) * 16 / 25
    truth = {"a": Instances(segments, class_ids=labels)}
    measured = score(truth, annotated(truth), protocol="thumos14-wtalc")
    np.testing.assert_allclose(measured.map, 100.0)


@given(truth=videos, found=predicted, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_file_changes_nothing(truth, found, seed):
    assume(any(map(len, truth.values())))
    found = {name: each for name, each in found.items() if name in truth}
    rng = np.random.default_rng(seed)

    def shuffled(by_video):
        names = list(by_video)
        rng.shuffle(names)
        return {name: by_video[name][rng.permutation(len(by_video[name]))] for name in names}

    once = score(found, annotated(truth))
    again = score(shuffled(found), annotated(shuffled(truth)))
    np.testing.assert_array_equal(once.ap, again.ap)


def test_no_prediction_at_all_scores_zero():
    truth = {"a": Instances([[1.0, 2.0]])}
    for found in ({}, {"a": Instances.empty()}):
        assert score(found, annotated(truth)).map.tolist() == [0.0] * 7


def test_a_class_without_predictions_counts_zero_for_itself_only():
    truth = {"a": Instances([[1.0, 2.0], [4.0, 9.0]], class_ids=[0, 2])}
    for protocol in ("thumos14", "thumos14-wtalc"):
        measured = score({"a": Instances([[4.0, 9.0]], class_ids=[2])}, annotated(truth), protocol=protocol)
        assert measured.classes == ("Dive", "Run")
        assert measured.ap[0].tolist() == [0.0] * 7
        assert measured.ap[1, 0] == 100.0


def test_classes_without_truth_are_left_out_of_the_mean():
    truth = {"a": Instances([[1.0, 2.0]], class_ids=[0])}
    found = {"a": Instances([[1.0, 2.0], [5.0, 6.0]], scores=[0.5, 0.9], class_ids=[0, 1])}
    measured = score(found, annotated(truth))
    assert measured.classes == ("Dive",)
    assert measured.n_predictions == 1
    assert measured.average["0.1:0.7"] == 100.0


def test_a_second_prediction_falls_to_the_next_best_truth():
    truth = {"a": Instances([[0.0, 10.0], [2.0, 10.0]])}
    found = {"a": Instances([[0.0, 10.0], [0.0, 10.0], [0.0, 10.0]], scores=[0.9, 0.8, 0.7])}
    measured = score(found, annotated(truth))
    assert measured.map.tolist() == [100.0] * 7


def test_a_prediction_in_an_unknown_video_is_a_false_positive_and_is_counted():
    truth = {"a": Instances([[1.0, 2.0]])}
    found = {"a": Instances([[1.0, 2.0]], scores=[0.5]), "nobody": Instances([[1.0, 2.0]], scores=[0.9])}
    with pytest.warns(DataWarning, match=r"1 predicted video\(s\) are not in the annotations.*nobody"):
        measured = score(found, annotated(truth))
    assert measured.map[0] == 50.0


def test_predictions_in_another_split_are_left_out_and_counted():
    known = Annotations(
        CLASSES,
        {
            "a": Video("test", None, Instances([[1.0, 2.0]])),
            "b": Video("train", None, Instances([[1.0, 2.0]])),
        },
    )
    found = {"a": Instances([[1.0, 2.0]], scores=[0.5]), "b": Instances([[7.0, 9.0]], scores=[0.9])}
    with pytest.warns(DataWarning, match=r"1 predicted video\(s\) belong to another split, the first is b"):
        measured = score(found, known)
    assert measured.map[0] == 100.0
    with pytest.warns(DataWarning, match="the first is a"):
        assert score(found, known, split="train").map[0] == 0.0


def test_the_210_videos_of_the_activitynet_form():
    names = ["video_test_0000270", "video_test_0001292", "video_test_0001496", "video_test_0000004"]
    truth = annotated({name: Instances([[1.0, 2.0]]) for name in names})
    found = {name: Instances([[1.0, 2.0]]) for name in names}
    assert score(found, truth, protocol="thumos14").n_videos == 1
    assert score(found, truth, protocol="thumos14").n_predictions == 1
    assert score(found, truth, protocol="thumos14-wtalc").n_videos == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocol": "thumos15"}, "no protocol 'thumos15'; there are thumos14"),
        ({"split": "training"}, r"no video of split training; the file has \['test'\]"),
        ({"protocol": Protocol("odd", (0.0,), (), ("test",))}, "thresholds lie in"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        score({}, annotated({"a": Instances([[1.0, 2.0]])}), **arguments)


def test_class_numbers_out_of_range_are_an_error():
    with pytest.raises(InputError, match="class number 7, but the annotations have 3 classes"):
        score({"a": Instances([[1.0, 2.0]], class_ids=[7])}, annotated({"a": Instances([[1.0, 2.0]])}))


def test_videos_without_any_truth_are_an_error():
    with pytest.raises(InputError, match="no true instance"):
        score({}, annotated({"a": Instances.empty()}))


def test_averages_take_in_both_ends_of_their_range():
    true = Instances([[0.0, 10.0]], class_ids=[0])
    # found by 55 %: right up to a tIoU of 0.5, wrong from 0.6 on
    measured = score({"a": Instances([[0.0, 5.5]], class_ids=[0])}, annotated({"a": true}), protocol="thumos14")
    assert [measured.at[tiou] for tiou in (0.5, 0.6)] == pytest.approx([100.0, 0.0])
    wanted = {"0.1:0.5": 100.0, "0.3:0.7": 100 * 3 / 5, "0.1:0.7": 100 * 5 / 7}
    assert measured.average == pytest.approx(wanted)
    assert measured.headline == pytest.approx(100 * 5 / 7)
