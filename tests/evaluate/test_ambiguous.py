import numpy as np
import pytest

from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.evaluate import PROTOCOLS, read_ambiguous, score
from wtal.instances import Instances


@pytest.mark.parametrize("protocol", ["thumos14", "thumos14-wtalc"])
def test_predictions_that_touch_an_interval_are_dropped_in_either_form(protocol):
    truth = Annotations(("Run",), {"a": Video("test", None, Instances([[0.0, 6.4]]))})
    found = {"a": Instances([[0.0, 6.4], [12.8, 25.6]], scores=[0.5, 0.9])}
    unsure = {"a": np.array([[19.2, 22.4]]), "elsewhere": np.array([[0.0, 9.0]])}
    without = score(found, truth, protocol=protocol)
    assert without.n_ambiguous is None
    assert without.map[0] == 50.0
    with_list = score(found, truth, protocol=protocol, ambiguous=unsure)
    assert with_list.n_ambiguous == 1
    assert with_list.map[0] == 100.0


def test_a_list_that_drops_nothing_is_still_on():
    truth = Annotations(("Run",), {"a": Video("test", None, Instances([[0.0, 6.4]]))})
    assert score({}, truth, ambiguous={}).n_ambiguous == 0


def test_the_papers_protocol_has_a_list_of_its_own_that_another_replaces():
    name = "video_test_0000278"  # ambiguous until 1.4 s
    truth = Annotations(("Run",), {name: Video("test", None, Instances([[6.4, 12.8]]))})
    found = {name: Instances([[6.4, 12.8], [0.0, 1.28]], scores=[0.5, 0.9])}
    measured = score(found, truth, protocol="thumos14-paper")
    assert (measured.n_ambiguous, measured.map[0]) == (1, 100.0)
    assert score(found, truth, protocol="thumos14-paper", ambiguous={}).n_ambiguous == 0
    for protocol in PROTOCOLS.keys() - {"thumos14-paper", "activitynet13"}:
        assert score(found, truth, protocol=protocol).n_ambiguous is None


@pytest.mark.parametrize("line", ["video 1.0", "video 1.0 two", "video 1 2 3"])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "unsure.txt"
    path.write_text(f"video  0.0 1.4\n\n{line}\n")
    with pytest.raises(InputError, match=r"unsure\.txt, line 3"):
        read_ambiguous(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*nothing\.txt"):
        read_ambiguous(tmp_path / "nothing.txt")
