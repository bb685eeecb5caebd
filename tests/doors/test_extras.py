"""What a command says where packages are missing: all of the extras that it needs, and no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from wtal import errors
from wtal.errors import install_line

EXTRAS = ",".join(errors.EXTRA_OF)


def without(hidden, *arguments, cwd):
    program = Path(__file__).with_name("hidden.py")
    return subprocess.run(
        [sys.executable, str(program), hidden, *arguments], capture_output=True, text=True, check=False, cwd=cwd
    )


@pytest.fixture
def here(tmp_path):
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "a.mp4").write_bytes(b"no video")
    (tmp_path / "tags.csv").write_text("video,label\na,Run\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [
        ("demo", "train,report"),
        ("report run", "report"),
        ("serve run", "serve"),
        ("paper components --data store -o out", "train,report"),
        ("extract videos -o store --threads 1", "frames"),
        ("extract videos -o store --extractor i3d", "flow"),
        ("train demo --videos videos --tags tags.csv", "frames"),
        ("weights tags.csv", "video"),
    ],
)
def test_the_hint_names_the_whole_set(here, arguments, extras):
    result = without(EXTRAS, *arguments.split(), cwd=here)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.endswith(f"{install_line(extras.split(','))}\n")


def test_links_and_completion_need_no_torch(here):
    assert "rgb_imagenet.pt" in without(EXTRAS, "weights", cwd=here).stdout
    assert "complete -o default" in without(EXTRAS, "completion", "bash", cwd=here).stdout
    assert ".labelstudio.json" in without(EXTRAS, "formats", cwd=here).stdout


def test_the_installer_is_the_one_that_brought_wtal(monkeypatch):
    class Distribution:
        def read_text(self, name):
            return "uv\n"

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Distribution())
    assert errors.install_line(["tb"]) == "uv pip install 'wtal[tb]'"
