"""The choice finds what is hidden in the maps, and its worth is measured on videos it did not see."""

import numpy as np
import pytest

from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.maps import ActivationMap
from wtal.propose import Cut, Nms, Proposer
from wtal.timebase import TimeBase
from wtal.tune import Known, Settings, tune

#: Snippets of one second; the actions are two snippets later than the activations say.
CLOCK, SHIFT = TimeBase(fps=16.0), 2.0
START = Settings(Proposer(Cut(thresholds=(0.5,), class_threshold=0.0)))
GRID = {"offset_snippets": (-1.0, 0.0, 1.0, SHIFT, 3.0), "combine.temperature": (0.03, 0.1)}


def known(n: int = 6) -> Known:
    rng = np.random.default_rng(0)
    maps, videos = {}, {}
    for k in range(n):
        tcam, spans = np.zeros((60, 1)), []
        for start in (5, 25, 40):
            length = int(rng.integers(3, 9))
            tcam[start : start + length] = rng.uniform(0.6, 0.9)
            spans.append([start + SHIFT, start + SHIFT + length])
        maps[f"v{k}"] = (ActivationMap(f"v{k}", tcam, np.ones(1)),)
        videos[f"v{k}"] = Video("train", 60.0, Instances(np.array(spans)))
    names = list(videos)
    return Known(
        (maps,), dict.fromkeys(names, CLOCK), dict.fromkeys(names, 60.0), Annotations(("Run",), videos), ("thumos14",)
    )


def test_the_hidden_shift_is_found_and_holds_on_videos_that_were_left_out() -> None:
    choice = tune(known(), START, grid=GRID, folds=3)
    assert choice.settings.offset_snippets == SHIFT
    assert choice.settings.proposer == START.proposer, "a temperature that changes nothing is left alone"
    assert choice.before["thumos14"] < 60
    assert choice.after == {"thumos14": 100.0}
    assert choice.held_out == {"thumos14": 100.0}


def test_processes_choose_the_same() -> None:
    assert tune(known(), START, grid=GRID, folds=0, workers=2) == tune(known(), START, grid=GRID, folds=0)


def test_held_out_videos_are_localized_without_their_own_truth() -> None:
    """One video is unlike the others: only a choice that has seen it serves it."""
    all_videos = known(4)
    odd = all_videos.truth.videos["v0"]
    moved = Video(odd.split, odd.duration_s, Instances(odd.instances.segments - 2 * SHIFT))
    alone = Known(
        all_videos.runs,
        all_videos.clocks,
        all_videos.durations_s,
        Annotations(("Run",), {**all_videos.truth.videos, "v0": moved}),
        all_videos.protocols,
    ).only(["v0", "v1"])
    choice = tune(alone, START, grid={"offset_snippets": (-SHIFT, SHIFT)}, folds=2)
    assert choice.held_out is not None
    assert choice.held_out["thumos14"] < choice.after["thumos14"]


@pytest.mark.parametrize(
    ("grid", "folds", "said"),
    [
        ({"temperature": (1.0,)}, 0, r"unknown key temperature; there are cut, combine, pool_threshold"),
        ({"combine.temprature": (1.0,)}, 0, r"combine\.temprature \(did you mean temperature\?\)"),
        ({"cut.upsample": ("fine",)}, 0, r"cut\.upsample must be a whole number"),
        (GRID, 7, "folds"),
        (GRID, 1, "folds"),
    ],
)
def test_what_cannot_be_is_refused(grid: dict[str, tuple[float, ...]], folds: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        tune(known(), START, grid=grid, folds=folds)


def test_the_grid_leaves_out_what_nms_does_not_have() -> None:
    heard = []
    start = Settings(START.proposer.by(Nms))
    tune(known(2), start, rounds=1, folds=0, progress=lambda *at: heard.append(at[3]["setting"]))
    assert "combine.threshold" in heard
    assert "cut.flanks.scale" in heard
    assert not {"combine.temperature", "combine.logit"} & set(heard)


def test_progress_counts_what_is_tried_in_the_choice_and_in_every_fold() -> None:
    heard: list[tuple[str, float, float, dict[str, object]]] = []
    grid = {"combine.temperature": (0.1, 0.2), "cut.upsample": (1, 2)}
    tune(known(4), START, grid=grid, rounds=2, folds=2, progress=lambda *at: heard.append(at))
    assert {(step, total) for step, _, total, _ in heard} == {("tuning", 3 * 2 * 2)}
    completed = [one[1] for one in heard]
    assert completed == sorted(set(completed))
    assert [at.get("fold") for _, n, _, at in heard if n in (1, 5, 9)] == [None, 1, 2]
