from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wtal.data import Store, VideoRecord
from wtal.data.check import Length, check_durations, check_features, check_source, check_store, check_tags
from wtal.data.convert import convert
from wtal.data.layouts import read_source
from wtal.data.source import Given
from wtal.errors import InputError
from wtal.timebase import TimeBase

Make = Callable[..., Any]


def _said(findings: list[Any], severity: str = "error") -> list[str]:
    return [str(finding) for finding in findings if finding.severity == severity]


def test_a_sound_data_set_has_no_findings(cola: Path, tmp_path: Path) -> None:
    source = read_source(cola, "cola")
    assert check_source(source) == []
    convert(source, tmp_path / "s")
    assert check_store(Store.open(tmp_path / "s")) == []


def test_all_that_is_wrong_is_said_at_once(cola: Path, tmp_path: Path) -> None:
    train = cola / "features" / "train"
    np.save(train / "rgb" / "a.npy", np.zeros((10, 8), np.float32))
    (train / "flow" / "b.npy").write_bytes((train / "flow" / "b.npy").read_bytes()[:200])
    np.save(cola / "features" / "test" / "rgb" / "c.npy", np.ones((5, 8), np.float32))
    np.save(cola / "features" / "test" / "rgb" / "extra.npy", np.ones((5, 8), np.float32))
    findings = check_source(read_source(cola, "cola"))
    said = "\n".join(str(finding) for finding in findings)
    for wanted in [
        "a: rgb is zero everywhere",
        "b.npy is cut off",
        "c: the streams differ in snippets: rgb has 5, flow has 12",
        "c: rgb is the same in all 5 snippets",
        "1 feature files belong to no listed video: extra",
    ]:
        assert wanted in said
    assert {finding.video for finding in findings} == {None, "a", "b", "c"}


@pytest.mark.parametrize(
    ("streams", "wanted"),
    [
        ({"rgb": np.ones((0, 4))}, "there are no snippets"),
        ({}, "there are no snippets"),
        ({"rgb": np.full((3, 4), np.nan)}, "rgb has 12 values that are NaN or infinite, the first in snippet 0"),
        ({"rgb": np.zeros((3, 4))}, "rgb is zero everywhere"),
        ({"rgb": np.eye(4), "flow": np.ones((4, 4))}, "flow is the same in all 4 snippets"),
        ({"rgb": np.eye(4), "flow": np.eye(5)}, "rgb has 4, flow has 5"),
    ],
)
def test_broken_features_are_errors(streams: dict[str, np.ndarray], wanted: str) -> None:
    assert any(wanted in text for text in _said(check_features("v", streams)))


def test_trim_makes_a_length_mismatch_fine() -> None:
    assert check_features("v", {"rgb": np.eye(4), "flow": np.eye(5)}, trim=True) == []


def test_one_snippet_is_a_warning_and_twenty_thousand_are_a_note() -> None:
    assert "one snippet only" in _said(check_features("v", {"x": np.ones((1, 4))}), "warning")[0]
    long = np.ones((20_000, 2))
    long[0] = 0
    assert "has 20000 snippets" in _said(check_features("v", {"x": long}), "note")[0]


@pytest.mark.parametrize("t", [1, 20_000])
def test_very_short_and_very_long_videos_convert(folder: Make, tmp_path: Path, make_features: Make, t: int) -> None:
    root = folder("video,label\na,Run\n")
    np.save(root / "a.npy", make_features(t))
    convert(read_source(root, "folder"), tmp_path / "s")
    assert Store.open(tmp_path / "s").features("a").shape == (t, 8)


def test_all_zero_features_are_not_converted(folder: Make, tmp_path: Path) -> None:
    root = folder("video,label\na,Run\nb,Run\n")
    np.save(root / "b.npy", np.zeros((9, 8), np.float32))
    with pytest.raises(InputError, match=r"b: features is zero everywhere; extract .*`skip_bad=True`"):
        convert(read_source(root, "folder"), tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_nothing_fit_to_use_is_an_error_even_when_skipping(folder: Make, tmp_path: Path) -> None:
    root = folder("video,label\na,Run\n")
    np.save(root / "a.npy", np.zeros((9, 8), np.float32))
    with pytest.raises(InputError, match="none of the 1 videos is fit to use"):
        convert(read_source(root, "folder"), tmp_path / "s", skip_bad=True)
    assert not (tmp_path / "s").exists()


def test_tags_are_checked_against_the_class_list() -> None:
    records = [VideoRecord("a", "train", ("Run", "Fly")), VideoRecord("b", "train", ())]
    findings = check_tags(records, ["Run", "Jump"])
    errors = _said(findings)
    assert any("label 'Fly' of a is not in the class list" in text for text in errors)
    assert any("1 of 2 classes have no training video: Jump" in text for text in errors)
    assert "1 training videos have no tag: b" in _said(findings, "warning")[0]
    assert "no training video" in _said(check_tags([VideoRecord("a", "test", ())], ["Run"]), "note")[0]


def test_videos_of_other_width_are_found(folder: Make, make_features: Make) -> None:
    root = folder("video,label\na,Run\nb,Run\nc,Run\n")
    np.save(root / "c.npy", make_features(5, 7))
    assert any(
        "c: (7,) dimensions where others have (8,)" in text for text in _said(check_source(read_source(root, "folder")))
    )


def _lengths(snippets_per_second: float, durations: list[float]) -> list[Length]:
    return [
        Length(VideoRecord(f"v{i}", "train", (), d), round(d * snippets_per_second)) for i, d in enumerate(durations)
    ]


def test_right_durations_pass_the_clock() -> None:
    assert check_durations(_lengths(25 / 16, [10.0, 60.0, 600.0, 7200.0])) == []


def test_one_wrong_duration_is_that_videos_fault() -> None:
    lengths = [*_lengths(25 / 16, [100.0] * 5), Length(VideoRecord("odd", "train", (), 50.0), 156)]
    (finding,) = check_durations(lengths)
    assert (finding.severity, finding.video) == ("warning", "odd")
    assert "156 snippets · 16 frames / 25 fps = 99.8 s, but the video lasts 50.0 s" in finding.what


def test_all_durations_wrong_is_the_frame_rates_fault() -> None:
    (finding,) = check_durations(_lengths(10 / 16, [100.0, 200.0, 300.0, 400.0, 500.0]))
    assert (finding.severity, finding.video) == ("error", None)
    assert "`fps=10.0` would fit" in finding.fix


def test_actions_after_the_features_end_are_found() -> None:
    short = Length(VideoRecord("v", "train", ()), 100, last_end_s=120.0)
    (finding,) = check_durations([short, Length(VideoRecord("w", "train", ()), 100, last_end_s=63.0)])
    assert "1 videos have actions after the end of their features: v" in finding.what
    right = TimeBase(fps=10.0)
    assert check_durations([Length(VideoRecord("v", "train", (), None, right), 100, last_end_s=120.0)]) == []


def test_fps_given_by_the_user_settles_the_clock(tmp_path: Path, make_gt: Make, make_features: Make) -> None:
    names = [f"v{i}" for i in range(6)]
    gt = make_gt(tmp_path / "gt.json", {n: ("train", ["T"]) for n in names}, dict.fromkeys(names, 160.0))
    for name in names:
        np.save(tmp_path / f"{name}.npy", make_features(100))
    wrong = check_source(read_source(tmp_path, "activitynet", Given(gt=gt)))
    assert any("6 of 6 videos do not last as long" in text for text in _said(wrong))
    assert _said(check_source(read_source(tmp_path, "activitynet", Given(gt=gt, timebase=TimeBase(10.0))))) == []
