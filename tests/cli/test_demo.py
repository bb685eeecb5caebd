"""The demo from end to end, smaller than a user's: stopped on the way, gone on with, and its promises kept."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wtal.cli import main

SMALL = ["--train-videos", "6", "--test-videos", "3", "--n-classes", "2", "--threads", "1"]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a demo that Ctrl-C has stopped in its first training, and what it said."""
    output = tmp_path_factory.mktemp("demo") / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", "from wtal.cli import main; main()", "demo", "-o", str(output), *SMALL],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    log, end = output / "rskp" / "metrics.jsonl", time.monotonic() + 300
    while not (log.exists() and log.stat().st_size):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    return output, said


def test_the_demo_goes_on_after_ctrl_c_and_opens_the_way(
    stopped: tuple[Path, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    output, said = stopped
    assert f"wtal demo -o {output}" in said
    assert "Traceback" not in said
    main(["demo", "-o", str(output), *SMALL])
    shown = capsys.readouterr().out
    assert (output / "timeline.png").read_bytes().startswith(b"\x89PNG")
    assert "test_00000" in (output / "page.html").read_text()
    assert all(
        row in shown for row in ("RSKP, NMS", "RSKP, fusion", "evidence and decay", "pseudo labels", "a detector")
    )
    # the next steps are commands that work
    steps = [line.split("wtal ", 1)[1].split() for line in shown.splitlines() if "wtal localize" in line]
    assert steps[0][:2] == ["localize", str(output / "detector")]
    main([*steps[0][:-1], str(tmp_path / "found.json")])
    assert (tmp_path / "found.json").read_bytes() == (output / "detector-pair.json").read_bytes()
    capsys.readouterr()
    main(["evaluate", str(output / "detector-pair.json"), str(output / "store" / "gt.json"), "--json"])
    scored = json.loads(capsys.readouterr().out)["average"]["0.1:0.7"]
    kept = json.loads((output / "detector" / "evaluation.json").read_text())["thumos14"]["average"]["0.1:0.7"]
    assert scored == pytest.approx(kept, abs=0.01)

    trained = (output / "gaufuse" / "model" / "model.json").stat().st_mtime_ns
    labels = sorted(path.name for path in (output / "gaufuse" / "targets").iterdir())
    assert labels == ["epoch-0020.npz", "epoch-0025.npz", "epoch-0030.npz"]
    assert not (output / "rskp" / "targets").exists()
    assert trained > (output / "rskp" / "model" / "model.json").stat().st_mtime_ns


def test_another_demo_does_not_take_the_folder(stopped: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    output, _ = stopped
    before = (output / "store" / "index.sqlite").read_bytes()
    with pytest.raises(SystemExit) as ended:
        main(["demo", "-o", str(output), *SMALL, "--seed", "1"])
    assert ended.value.code == 2
    assert "another seed or size; choose another folder with -o" in capsys.readouterr().err
    assert (output / "store" / "index.sqlite").read_bytes() == before


@pytest.mark.parametrize("package", ["matplotlib", "torch"])
def test_what_is_missing_is_said_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as ended:
        main(["demo", "-o", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert "pip install 'wtal[train,report]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
