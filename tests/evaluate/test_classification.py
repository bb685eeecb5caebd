import numpy as np
import pytest

from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.evaluate import classification_map, prepare, video_level
from wtal.instances import Instances


def test_plain_average_precision_over_classes_that_occur():
    scores = np.array([[0.9, 0.2, 0.5], [0.8, 0.9, 0.5], [0.7, 0.1, 0.5]])
    labels = np.array([[True, False, False], [False, True, False], [True, False, False]])
    # class 0 ranks right, wrong, right: (1 + 2/3) / 2; class 1 is right at once; class 2 does not occur
    assert classification_map(scores, labels) == pytest.approx(100 * (5 / 6 + 1) / 2)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (np.array([[np.nan]]), np.array([[True]]), "finite"),
        (np.array([[0.5]]), np.array([[False]]), "no video holds any class"),
        (np.zeros((0, 2)), np.zeros((0, 2), bool), "no video holds any class"),
    ],
)
def test_bad_input_is_named(scores, labels, message):
    with pytest.raises(InputError, match=message):
        classification_map(scores, labels)


def test_instances_speak_for_their_video():
    known = Annotations(
        ("Jump", "Run"),
        {
            "a": Video("test", None, Instances([[0.0, 4.0]], class_ids=[0])),
            "b": Video("test", None, Instances([[0.0, 4.0]], class_ids=[1])),
        },
    )
    found = {"a": Instances([[50.0, 60.0], [0.0, 1.0]], scores=[0.2, 0.4], class_ids=[0, 1])}
    scores, labels = video_level(prepare(found, known))
    assert scores.tolist() == [[0.2, 0.4], [-1.0, -1.0]]
    assert classification_map(scores, labels) == 75.0
