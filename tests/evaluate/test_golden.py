"""The numbers that other people's evaluators give on the same files."""

import json

import numpy as np
import pytest

from wtal.errors import DataWarning
from wtal.evaluate import average_recall, prepare, read_ambiguous, score
from wtal.formats import read_annotations, read_predictions
from wtal.timebase import TimeBase

FORMS = {"anet": "thumos14", "wtalc": "thumos14-wtalc"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "file", "with_list"),
    [
        ("fusion", "fused_released_a.json", False),
        ("nms", "nms_released_a.json", False),
        ("fusion_without_ambiguous", "fused_released_a.json", True),
    ],
)
def test_thumos14_in_both_forms(golden, thumos14, form, name, file, with_list):
    reference = json.loads((golden / "thumos14_scores_a.json").read_text())[name]
    truth = read_annotations(thumos14 / "gt.json")
    found = read_predictions(golden / file, truth.classes, unit="snippets")
    unsure = read_ambiguous(thumos14 / "Ambiguous_test.txt") if with_list else None
    measured = score(found, truth, protocol=FORMS[form], ambiguous=unsure)
    assert measured.n_videos == 99
    assert measured.n_ambiguous == (85 if with_list else None)
    np.testing.assert_allclose(measured.map, reference[form], atol=0.06)
    assert measured.average["0.1:0.7"] == pytest.approx(reference[f"{form}_avg"], abs=0.01)

    # in seconds the W-TALC form loses the last bit of fused ends, on which its int() depends
    in_seconds = {video: TimeBase().instances_to_seconds(each) for video, each in found.items()}
    measured = score(in_seconds, truth, protocol=FORMS[form], ambiguous=unsure)
    np.testing.assert_allclose(measured.map, reference[form], atol=0.1)
    assert measured.average["0.1:0.7"] == pytest.approx(reference[f"{form}_avg"], abs=0.04)


def test_the_papers_own_protocol_brings_its_list(golden, thumos14):
    reference = json.loads((golden / "thumos14_scores_a.json").read_text())["fusion_without_ambiguous"]
    truth = read_annotations(thumos14 / "gt.json")
    found = read_predictions(golden / "fused_released_a.json", truth.classes, unit="snippets")
    measured = score(found, truth, protocol="thumos14-paper")
    assert measured.n_ambiguous == 85
    np.testing.assert_allclose(measured.map, reference["wtalc"], atol=0.01)
    assert measured.average["0.1:0.7"] == pytest.approx(reference["wtalc_avg"], abs=0.01)


def test_activitynet13(golden):
    reference = json.loads((golden / "activitynet_scores.json").read_text())
    truth = read_annotations(golden / "activitynet_gt.json")
    found = read_predictions(golden / "activitynet_pred.json", truth.classes)
    measured = score(found, truth, protocol="activitynet13")
    assert list(measured.tiou) == pytest.approx(reference["tiou"])
    np.testing.assert_allclose(measured.map, reference["map"], atol=0.01)
    assert measured.average["0.5:0.95"] == pytest.approx(reference["average"], abs=0.01)


def test_the_whole_activitynet13_truth_scores_100_against_itself(activitynet13):
    with pytest.warns(DataWarning, match=r"left out 12 segment\(s\) without start < end.*ZZVrH3Hv1fM"):
        truth = read_annotations(activitynet13 / "gt.json")
    assert len(truth.classes) == 200
    chosen = truth.of_split("validation").videos
    assert sum(video.duration_s is None for video in truth.videos.values()) == 188
    found = {name: video.instances for name, video in chosen.items()}
    measured = score(found, truth, protocol="activitynet13")
    assert (measured.n_videos, measured.n_truth) == (4926, 7651)
    np.testing.assert_allclose(measured.map, 100.0)
    case = prepare(found, truth, protocol="activitynet13")
    assert average_recall(case, counts=(100,)).tolist() == [1.0]
