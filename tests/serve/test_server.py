"""The command itself: a real server in a process of its own, asked over a socket, ended by Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from videos import write_video
from wtal.cli import main
from wtal.cli.serve import with_edit_file


def test_a_run_is_shown_and_corrected_until_ctrl_c(runs: dict[str, Path], tmp_path: Path) -> None:
    write_video(tmp_path / "videos" / "test_00000.mp4", [20.0, 40.0, 60.0])
    arguments = ["serve", runs["tiny"], "--videos", "videos", "--port", "0", "--edit"]
    server = subprocess.Popen(
        [sys.executable, "-m", "wtal", *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "http://" in line)
        address = re.findall(r"http://127\.0\.0\.1:\d+/", line)[0]
        with urlopen(address + "api/videos?q=test_00000") as answer:
            (row,) = json.load(answer)["videos"]
        with urlopen(address + f"api/video?run={row['run']}&name=test_00000") as answer:
            video = json.load(answer)["video"]
        assert video == {"url": "/media?name=test_00000", "type": "video/mp4"}
        with urlopen(Request(address + "media?name=test_00000", headers={"Range": "bytes=4-7"})) as answer:
            assert (answer.status, answer.read()) == (206, b"ftyp")
        with urlopen(address + "static/app.js") as answer:
            assert "javascript" in answer.headers["content-type"]
        body = json.dumps({"revision": 0, "segments": [], "done": True}).encode()
        headers = {"Content-Type": "application/json", "Origin": address.rstrip("/")}
        asked = Request(address + "api/corrections?name=test_00000", body, headers, method="PUT")
        with urlopen(asked) as answer:
            assert json.load(answer) == {"revision": 1}
        with pytest.raises(HTTPError, match="409") as refused:
            urlopen(asked)
        refused.value.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=120)
    assert server.returncode == 0
    assert json.loads((tmp_path / "corrections.json").read_text())["database"]["test_00000"]["done"] is True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "--token"),
        (["--host", "256.0.0.1", "--token", "long enough"], "cannot listen at 256.0.0.1"),
        (["--edit", "predictions.json"], "is not a file of corrections"),
        (["--videos", "nowhere"], "nowhere is not there"),
    ],
)
def test_what_cannot_be_served_is_one_line(runs, monkeypatch, capsys, arguments, said) -> None:
    monkeypatch.chdir(runs["tiny"])
    with pytest.raises(SystemExit, match="2"):
        main(["serve", ".", *arguments])
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_a_run_whose_data_set_has_moved_says_what_to_do(runs, tmp_path, capsys) -> None:
    import shutil

    shutil.copytree(runs["tiny"], tmp_path / "run")
    about = json.loads((tmp_path / "run" / "environment.json").read_text())
    about["data"]["path"] = str(tmp_path / "gone")
    (tmp_path / "run" / "environment.json").write_text(json.dumps(about))
    with pytest.raises(SystemExit, match="2"):
        main(["serve", str(tmp_path / "run")])
    assert "--features STORE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["run", "--edit"], ["run", "--edit", "corrections.json"]),
        (["run", "--edit", "mine.json"], ["run", "--edit", "mine.json"]),
        (["--edit", "run", "other"], ["--edit", "corrections.json", "run", "other"]),
        (["run", "--edit", "--port", "0"], ["run", "--edit", "corrections.json", "--port", "0"]),
        (["run", "--edit=mine.json"], ["run", "--edit=mine.json"]),
    ],
)
def test_edit_takes_a_file_or_none(given: list[str], meant: list[str]) -> None:
    assert with_edit_file(given) == meant
