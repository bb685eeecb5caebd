"""kill -9 at a few points of every command; `python tests/faults/killing.py --points 20` tries more."""

import subprocess
import sys
from pathlib import Path

import pytest

KILLING = Path(__file__).with_name("killing.py")


@pytest.mark.parametrize(
    ("commands", "points"),
    [(("train", "relabel", "detector", "extract", "convert", "localize"), 2), (("report",), 1)],
    ids=["work", "report"],
)
def test_the_same_command_again_gives_what_undisturbed_work_gives(
    commands: tuple[str, ...], points: int, tmp_path: Path
) -> None:
    command = [sys.executable, str(KILLING), *commands, "--points", str(points), "--scratch", str(tmp_path / "scratch")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    rows = [line.split("|") for line in ended.stdout.splitlines() if line.startswith("| ")][1:]
    assert [row[1].strip() for row in rows] == list(commands)
    assert sum(int(row[3]) for row in rows) >= points  # a process may be done before its time to be killed has come
