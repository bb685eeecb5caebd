"""Precision over recall and per-video precision: both come back to average precision."""

import numpy as np
import pytest

from wtal.annotations import Annotations, Video
from wtal.evaluate import mean_average_precision, precision_recall, prepare, video_precision
from wtal.instances import Instances


def random_case(seed: int, n_videos: int = 4):
    rng = np.random.default_rng(seed)

    def instances(n: int) -> Instances:
        starts = rng.uniform(0, 50, n).round(1)
        return Instances(
            np.column_stack([starts, starts + rng.uniform(1, 9, n).round(1)]), rng.random(n), rng.integers(0, 3, n)
        )

    names = [f"v{n}" for n in range(n_videos)]
    truth = Annotations(("A", "B", "C"), {name: Video("test", 60.0, instances(6)) for name in names})
    return prepare({name: instances(40) for name in names}, truth)


@pytest.mark.parametrize("seed", range(5))
def test_the_area_under_the_curve_is_the_average_precision(seed: int) -> None:
    case = random_case(seed)
    score = mean_average_precision(case)
    for row, label in enumerate(case.class_ids):
        n = int((case.truth.class_ids == label).sum())
        steps = np.arange(1, n + 1) / n
        area = precision_recall(case, tiou=0.3, recall=steps)[row].mean()
        assert area == pytest.approx(score.ap[row, score.tiou.index(0.3)])


@pytest.mark.parametrize("seed", range(3))
def test_curves_fall_and_lie_within_bounds(seed: int) -> None:
    curves = precision_recall(random_case(seed), tiou=0.1)
    assert curves.shape[1] == 101
    assert (np.diff(curves, axis=1) <= 1e-9).all()
    assert (curves >= 0).all()
    assert (curves <= 100).all()


def test_a_video_alone_has_the_map_of_a_data_set_of_it() -> None:
    case = random_case(1, n_videos=1)
    score = mean_average_precision(case)
    at = [score.tiou.index(t) for t in (0.3, 0.5, 0.7)]
    assert video_precision(case) == {"v0": pytest.approx(score.ap[:, at].mean())}


def test_videos_without_truth_have_no_precision_and_others_do_not_lend_it() -> None:
    actions = Instances([[0.0, 4.0], [5.0, 9.0]])
    truth = Annotations(
        ("Run",),
        {name: Video("test", 60.0, found) for name, found in {"a": actions, "b": actions, "c": actions[:0]}.items()},
    )
    found = {"a": actions, "b": Instances([[20.0, 30.0]], [5.0]), "c": Instances([[1.0, 2.0]])}
    assert video_precision(prepare(found, truth)) == {"a": 100.0, "b": 0.0}
