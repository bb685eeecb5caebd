import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strategies import instances
from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.evaluate import diagnose, mean_average_precision, prepare
from wtal.instances import Instances

CLASSES = ("Dive", "Jump", "Run")


def case_of(truth, found, protocol="thumos14"):
    known = Annotations(CLASSES, {name: Video("test", None, each) for name, each in truth.items()})
    return prepare({name: each for name, each in found.items() if name in truth}, known, protocol=protocol)


def test_each_kind_of_error_is_told_apart():
    truth = {"a": Instances([[0.0, 10.0], [20.0, 30.0], [90.0, 95.0]], class_ids=[0, 1, 0])}
    found = {
        "a": Instances(
            [[0, 10], [0, 9], [20, 30], [0, 3], [20, 23], [50, 60], [0, 0.5]],
            scores=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3],
            class_ids=[0, 0, 0, 0, 0, 0, 0],
        )
    }
    why = diagnose(case_of(truth, found))
    assert why.counts == {
        "true_positive": 1,
        "double_detection": 1,
        "wrong_label": 1,
        "bad_boundary": 1,
        "wrong_label_and_boundary": 1,
        "background": 2,
    }
    assert (why.n_truth, why.n_missed) == (3, 2)
    assert {each.name: (each.n_truth, each.n_found) for each in why.lengths} == {
        "XS": (0, 0),
        "S": (1, 0),
        "M": (2, 1),
        "L": (0, 0),
        "XL": (0, 0),
    }
    assert why.lengths[0].normalised_map is None


def test_only_the_best_of_each_class_are_counted():
    truth = {"a": Instances([[0.0, 10.0]])}
    found = {"a": Instances([[100.0 + i, 101.0 + i] for i in range(50)])}
    assert diagnose(case_of(truth, found)).counts["background"] == 10
    assert diagnose(case_of(truth, found), budget=20).counts["background"] == 20


def test_the_gain_is_what_the_number_would_be_without_the_kind():
    truth = {"a": Instances([[0.0, 10.0], [20.0, 30.0]])}
    found = {"a": Instances([[50.0, 60.0], [0.0, 10.0]], scores=[0.9, 0.5])}
    why = diagnose(case_of(truth, found))
    assert why.map == pytest.approx(25.0)
    assert why.gains["background"] == pytest.approx(25.0)
    assert why.gains["missed"] == pytest.approx(25.0)
    assert why.gains["double_detection"] == 0.0


@given(
    truth=st.dictionaries(st.sampled_from("ab"), instances(), min_size=1),
    found=st.dictionaries(st.sampled_from("ab"), instances()),
    protocol=st.sampled_from(["thumos14", "thumos14-wtalc"]),
)
def test_everything_adds_up(truth, found, protocol):
    assume(any(map(len, truth.values())))
    case = case_of(truth, found, protocol)
    why = diagnose(case, budget=1000)
    assert why.map == pytest.approx(float(mean_average_precision(case).map[4]))
    assert sum(why.counts.values()) == len(case.predictions)
    assert why.n_truth - why.n_missed == why.counts["true_positive"]
    assert sum(each.n_truth for each in why.lengths) == why.n_truth
    assert sum(each.n_found for each in why.lengths) == why.counts["true_positive"]
    assert all(gain >= -1e-9 for gain in why.gains.values())
    assert all(each.normalised_map is None or 0 <= each.normalised_map <= 100 + 1e-9 for each in why.lengths)


def test_without_predictions_all_is_missed():
    why = diagnose(case_of({"a": Instances([[0.0, 10.0]])}, {}))
    assert why.n_missed == 1
    assert np.allclose(list(why.gains.values()), 0.0)


def test_bad_thresholds_are_named():
    case = case_of({"a": Instances([[0.0, 10.0]])}, {})
    with pytest.raises(InputError, match="background_tiou"):
        diagnose(case, tiou=0.05)
