"""The commands as a user types them."""

import json

import numpy as np
import pytest

from wtal.cli import main
from wtal.formats.maps import write_maps
from wtal.maps import ActivationMap


def failing(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    captured = capsys.readouterr()
    return stop.value.code, captured.err


def test_help_and_version(capsys):
    main(["--help"])
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("demo", "data", "localize", "evaluate"))
    main(["--version"])
    assert capsys.readouterr().out.startswith("wtal ")


def test_a_misspelt_command_gets_a_suggestion(capsys):
    code, said = failing(capsys, "evalute")
    assert code == 2
    assert "did you mean evaluate?" in said


@pytest.fixture
def maps(tmp_path):
    rng = np.random.default_rng(0)
    curves = np.repeat(rng.random((20, 2)) > 0.6, 5, axis=0) * 0.5
    write_maps(tmp_path / "maps.npz", ["Run", "Jump"], {"v1": [ActivationMap("v1", curves, np.array([0.9, 0.0]))]})
    return tmp_path / "maps.npz"


def test_localize_writes_predictions_in_seconds(maps, tmp_path, capsys):
    out = tmp_path / "found.json"
    main(["localize", "--tcam", str(maps), "-o", str(out), "--preset", "paper", "--fps", "25", "--stride-frames", "16"])
    found = json.loads(out.read_text())["results"]["v1"]
    assert found
    assert {row["label"] for row in found} == {"Run"}
    assert all(0 <= row["segment"][0] < row["segment"][1] <= 100 * 16 / 25 for row in found)
    assert "found.json" in capsys.readouterr().err


def test_options_and_presets_change_the_outcome(maps, tmp_path):
    outcomes = []
    for name, options in {
        "default": [],
        "recommended": ["--preset", "recommended"],
        "paper": ["--preset", "paper"],
        "released": ["--preset", "released"],
        "nms": ["--combine", "nms"],
        "timid-nms": ["--combine=nms", "--combine.threshold", "0.95"],
        "soft": ["--combine", "soft_nms", "--combine.sigma", "0.3", "--combine.min-score", "0.0"],
    }.items():
        main(["localize", "--tcam", str(maps), "--all", "-o", str(tmp_path / f"{name}.csv"), *options])
        outcomes.append((tmp_path / f"{name}.csv").read_text())
    assert outcomes[0] == outcomes[1]
    assert len(set(outcomes)) == len(outcomes) - 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--combine", "nmss"], "--combine is fusion or nms or soft_nms, got 'nmss'"),
        (["--combine", "soft_nms", "--combine.threshold", "0.5"], "gaussian decay has no threshold"),
    ],
)
def test_a_way_of_combining_has_its_own_settings_alone(maps, capsys, options, message):
    code, said = failing(capsys, "localize", "--tcam", str(maps), *options)
    assert code == 2
    assert message in said


def test_a_preset_can_be_overridden(maps, tmp_path):
    main(
        [
            "localize",
            "--tcam",
            str(maps),
            "--preset=released",
            "--cut.class-threshold",
            "0.99",
            "-o",
            str(tmp_path / "o.json"),
        ]
    )
    assert json.loads((tmp_path / "o.json").read_text())["results"]["v1"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tcam", "nowhere.npz"], "nowhere.npz"),
        (["--preset", "best"], "best"),
        (["--combine.temperature", "0"], "temperature"),
        (["--cut.thresholds", "-0.1"], "-0.1"),
        (["--fps", "0"], "fps"),
    ],
)
def test_bad_input_ends_with_one_line_and_writes_nothing(maps, tmp_path, capsys, options, message):
    out = tmp_path / "out.json"
    given = options if "--tcam" in options else ["--tcam", str(maps), *options]
    code, said = failing(capsys, "localize", "-o", str(out), *given)
    assert code == 2
    assert message in said
    assert "Traceback" not in said
    assert not out.exists()


def test_maps_without_a_duration_end_with_their_last_snippet(tmp_path):
    tcam = np.zeros((20, 1))
    tcam[12:] = 0.5  # up to the end of the map, which the recommended preset would widen by 0.75 snippets
    np.savez(tmp_path / "maps.npz", names=["v"], lengths=[20], tcam=tcam, video_scores=np.ones((1, 1)), classes=["Run"])
    main(["localize", "--tcam", str(tmp_path / "maps.npz"), "-o", str(tmp_path / "o.json")])
    (found,) = json.loads((tmp_path / "o.json").read_text())["results"]["v"]
    assert found["segment"][1] == pytest.approx(20 * 16 / 25)
