"""What the README, the docs and the demo tell people to type works from an installed wheel, outside the checkout."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
#: words that say a command was not understood, rather than that one of its files is not there
MISUNDERSTOOD = ("unrecognized", "invalid choice", "unknown command", "required options", "parsing error", "traceback")

Run = Callable[..., subprocess.CompletedProcess[str]]

#: goes through commands in one process, each as if it had been typed, and writes down how each ended
TYPE_ALL = """
import contextlib, io, json, sys
from wtal.cli import main
ended = []
for command in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(command)
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
            said.write(str(error.code))
        except BaseException as error:
            code = 99
            said.write(f"Traceback: {error!r}")
    ended.append((code, said.getvalue()))
json.dump(ended, sys.stdout)
"""


#: whoever looks for another machine fails; Python announces it before it is done
OFFLINE = """
import sys
def hear(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"):
        raise AssertionError(f"{event} {arguments}: nobody has asked for the network")
sys.addaudithook(hear)
"""


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """Run Python with the installed wtal in an empty folder."""

    def start(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        command = [sys.executable, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=tmp_path, env=environment)

    return start


def documented() -> Iterator[tuple[str, list[str]]]:
    """The commands of all pages' code blocks, with the page that has each."""
    for page in PAGES:
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.S | re.M):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True) if line.startswith("wtal ") else []
                if words[1:] and not any(word in ("…", "...") or "{" in word for word in words):
                    yield page.relative_to(ROOT).as_posix(), words[1:]


def test_the_wheel_is_what_runs(run: Run, installed: Path) -> None:
    where = run("-c", "import wtal; print(wtal.__file__)").stdout.strip()
    assert Path(where).is_relative_to(installed)


def test_every_documented_command_is_understood(run: Run) -> None:
    """In an empty folder most of them find no file, and say so; none of them is misunderstood."""
    # the demo and what makes data would work for minutes: they are run for real below
    commands = [(page, words) for page, words in documented() if words[0] != "demo" and words[1:2] != ["synthesize"]]
    assert len(commands) > 40
    ended = run("-c", TYPE_ALL, stdin=json.dumps([words for _, words in commands]))
    assert ended.returncode == 0, ended.stderr
    for (page, words), (code, said) in zip(commands, json.loads(ended.stdout), strict=True):
        shown = f"{page}: wtal {shlex.join(words)}\n{code}: {said}"
        assert code in (0, 2), shown
        assert not any(word in said.lower() for word in MISUNDERSTOOD), shown


def test_the_readmes_python_runs(run: Run, tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    truth = {"my_video": {"subset": "test", "annotations": [{"label": "Run", "segment": [3.0, 8.0]}]}}
    (tmp_path / "gt.json").write_text(json.dumps({"database": truth}))
    rng = np.random.default_rng(0)
    tcam = 0.001 * rng.random((40, 3))  # two classes and background, as the field's models give it
    tcam[5:12, 0] = 0.5
    np.savez(tmp_path / "maps.npz", tcam=tcam, scores=np.array([0.9, 0.01, 0.1]))
    given = (
        "import numpy\n"
        'file = numpy.load("maps.npz")\n'
        'tcam, video_scores, names = file["tcam"], file["scores"], ["Run", "Jump"]\n'
    )
    ended = run("-W", "error", "-c", given + block)
    assert ended.returncode == 0, ended.stderr
    assert "'0.1:0.7': 100.0" in ended.stdout or "0.1:0.7" in ended.stdout


def test_generated_data_trains_localizes_and_is_scored_without_a_network(run: Run, tmp_path: Path) -> None:
    """The commands of the how-to that trains, on fewer videos and epochs; nobody has asked for a network."""
    small = ["--train-videos", "8", "--test-videos", "3", "--n-classes", "2", "--dims", "16"]
    (tmp_path / "short.yaml").write_text("model: rskp\nepochs: 2\nlearning_rate: [[2, 1e-3]]\n")
    commands = [
        ["data", "synthesize", "-o", "demo-store", *small],
        ["data", "check", "demo-store"],
        ["train", "short.yaml", "--data", "demo-store"],
        ["localize", "runs/short-seed0", "--features", "demo-store", "--split", "test", "--all", "-o", "found.json"],
        ["evaluate", "found.json", "demo-store/gt.json", "--protocol", "thumos14", "--split", "test"],
        ["report", "runs/short-seed0", "-o", "report.html"],
        ["paper", "components", "--data", "demo-store", "--out", "out", "--dry-run"],
    ]
    ended = run("-c", OFFLINE + TYPE_ALL, stdin=json.dumps(commands))
    assert ended.returncode == 0, ended.stderr
    for words, (code, said) in zip(commands, json.loads(ended.stdout), strict=True):
        assert code == 0, f"wtal {shlex.join(words)}\n{said}"
    assert (tmp_path / "report.html").stat().st_size > 10_000
