import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluate.oracle import tiou
from strategies import instances
from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.evaluate import average_recall, prepare
from wtal.instances import Instances

CLASSES = ("Dive", "Jump", "Run")


@given(
    truth=st.dictionaries(st.sampled_from("ab"), instances(max_classes=1), min_size=1),
    found=st.dictionaries(st.sampled_from("ab"), instances(max_classes=1)),
    count=st.integers(1, 5),
)
def test_average_recall_is_that_of_looking_at_each_pair(truth, found, count):
    assume(any(map(len, truth.values())))
    found = {name: each for name, each in found.items() if name in truth}
    known = Annotations(CLASSES, {name: Video("test", None, each) for name, each in truth.items()})
    covered = [
        any(tiou(p, t) >= threshold for p in found.get(name, Instances.empty()).sorted()[:count].segments)
        for threshold in (0.3, 0.5)
        for name, each in truth.items()
        for t in each.segments
    ]
    measured = average_recall(prepare(found, known), counts=(count,), tiou=(0.3, 0.5))
    np.testing.assert_allclose(measured, [np.mean(covered)])


def test_labels_do_not_matter():
    known = Annotations(CLASSES, {"a": Video("test", None, Instances([[0.0, 4.0], [9.0, 10.0]], class_ids=[0, 1]))})
    case = prepare({"a": Instances([[0.0, 4.0]], class_ids=[1])}, known)
    assert average_recall(case, counts=(1, 100)).tolist() == [0.5, 0.5]


def test_bad_arguments_are_named():
    known = Annotations(CLASSES, {"a": Video("test", None, Instances([[0.0, 4.0]]))})
    with pytest.raises(InputError, match="counts"):
        average_recall(prepare({}, known), counts=(0,))
    empty = Annotations(CLASSES, {"a": Video("test", None, Instances.empty())})
    with pytest.raises(InputError, match="no true instance"):
        average_recall(prepare({}, empty))
