"""Confidence from tags alone: a probability that holds, and a threshold that keeps what it promises."""

import numpy as np
import pytest

from wtal.errors import InputError
from wtal.evaluate.calibration import Calibration, Judged, fit, judged, reliability
from wtal.evaluate.target_quality import calibration, calibration_error
from wtal.instances import Instances
from wtal.typed import parse, plain


def simulated(seed: int, videos: int = 400, each: int = 4) -> Judged:
    """Instances whose class is right with the square root of their prominence as probability."""
    rng = np.random.default_rng(seed)
    prominence = rng.random(videos * each)
    return Judged(prominence, rng.random(len(prominence)) < np.sqrt(prominence), np.arange(len(prominence)) // each)


def test_confidence_is_the_probability_that_made_the_data() -> None:
    fitted = fit(simulated(0), "these")
    assert fitted is not None
    at = np.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(fitted(at), np.sqrt(at), atol=0.15)
    assert abs(fitted(at) - np.sqrt(at)).mean() < 0.06
    assert (np.diff(fitted(np.linspace(-1, 2, 200))) >= 0).all()
    assert fitted.videos == 400
    assert sum(fitted.found) == 1600
    assert fitted.error is not None
    assert fitted.error < 5


def test_the_promised_precision_holds_on_other_videos() -> None:
    fitted, new = fit(simulated(0), "these"), simulated(1)
    assert fitted is not None
    for wanted in (0.8, 0.9):
        kept = fitted(new.prominence) >= fitted.least_for(wanted)
        assert kept.sum() > 100
        assert abs(new.right[kept].mean() - wanted) < 0.03
    with pytest.raises(InputError, match="precision is a share above 0"):
        fitted.least_for(80)


@pytest.mark.parametrize("seed", range(3))
def test_reliability_is_of_videos_that_a_fit_has_not_seen(seed: int) -> None:
    """Checked on the videos that it was fitted to, chance would look like knowledge."""
    rng = np.random.default_rng(seed)
    noise = Judged(rng.random(60), rng.random(60) < 0.5, np.arange(60))
    fitted, checked = fit(noise), reliability(noise)
    assert fitted is not None
    assert checked is not None
    assert checked.n.sum() == 60
    mean, share, n = calibration(fitted(noise.prominence), noise.right)
    assert fitted.error == round(checked.error, 2)  # as people read it
    assert checked.error > calibration_error(mean, share, n) + 2


def test_few_videos_never_make_certain() -> None:
    few = Judged(np.array([0.2, 0.5, 0.9]), np.ones(3, bool), np.arange(3))
    fitted = fit(few)
    assert fitted is not None
    assert fitted(np.array([5.0]))[0] < 0.9
    with pytest.raises(InputError, match="no instance is sure enough"):
        fitted.least_for(0.99)


def test_classes_without_a_tag_are_wrong_and_videos_without_any_tag_tell_nothing() -> None:
    found = {
        "a": Instances([[0.0, 4.0], [6.0, 8.0]], [0.9, 0.6], [0, 1]),
        "b": Instances([[0.0, 4.0]], [0.9], [1]),
        "unknown": Instances([[0.0, 4.0]], [0.9], [0]),
    }
    evidence = judged(found, {"a": [0], "b": [0, 1], "unknown": []})
    assert evidence.right.tolist() == [True, False, True]
    assert evidence.videos.tolist() == [0, 0, 1]
    assert fit(judged(found, {})) is None


def test_it_is_plain_data_and_refuses_what_is_no_calibration() -> None:
    fitted = fit(simulated(3, videos=20), "the tags of the test videos")
    assert fitted is not None
    again = parse(Calibration, plain(fitted))
    assert again == fitted
    for wrong in ({"low": [0.5], "high": [0.1]}, {"confidence": [1.5]}, {"found": [1, 2]}):
        good = {"low": [0.1], "high": [0.5], "confidence": [0.5], "found": [3], "videos": 2}
        with pytest.raises(InputError, match="steps"):
            parse(Calibration, good | wrong)
