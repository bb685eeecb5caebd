"""What somebody gets who has the package and not the checkout: its page, its extras, other Pythons, a container."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from wtal.cli import COMMANDS
from wtal.errors import EXTRA_OF, install_line

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "src").rglob("*.py"))]


def test_the_page_of_the_package_has_no_link_that_leads_nowhere(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(archive.read(name).decode("utf-8"))
    page = str(about.get_payload())
    assert page.lstrip().startswith("# wtal")
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "candidates · fusion · pseudo labels" in page  # what they said is still there
    assert about["Description-Content-Type"] == "text/markdown"


def test_the_wheel_holds_what_runs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"wtal", f"wtal-{PROJECT['version']}.dist-info"}
    assert "wtal/recipes/my-videos.yaml" in names
    assert "wtal/py.typed" in names
    assert not [name for name in names if name.endswith((".pyc", ".ipynb")) or "/tests/" in name]


def test_one_way_of_writing_the_install_line() -> None:
    """As the hints of missing extras write it: quoted, since shells take brackets for patterns, extras in one order."""
    seen = 0
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        for before, extras, after in re.findall(r"pip install (.?)wtal\[([a-z0-9,]+)\](.?)", text):
            seen += 1
            assert (before, after) == ("'", "'"), f"{path.name}: {extras}"
            assert f"'wtal[{extras}]'" in install_line(extras.split(",")), f"{path.name}: {extras}"
    assert seen >= 5


def test_extras_are_what_hints_and_docs_call_them() -> None:
    assert set(EXTRA_OF.values()) <= EXTRAS
    for path in TEXTS:
        for extras in re.findall(r"wtal\[([a-z0-9,]+)\]", path.read_text(encoding="utf-8")):
            assert set(extras.split(",")) <= EXTRAS, f"{path.name}: {extras}"


def test_no_output_sends_people_to_files_that_are_not_installed() -> None:
    for path in sorted((ROOT / "src" / "wtal").rglob("*.py")):
        assert not re.findall(r"docs/[a-z-]+", path.read_text(encoding="utf-8")), path.name


def test_the_container_is_built_from_what_the_project_has() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    steps = [line.partition(" ")[::2] for line in lines if line and not line.startswith("#")]
    kinds = [kind for kind, _ in steps]
    text = dict(steps)
    assert kinds[0] == "FROM"
    python = re.fullmatch(r"python:(3\.\d+)-slim", text["FROM"])
    assert python is not None
    assert f"Programming Language :: Python :: {python[1]}" in PROJECT["classifiers"]
    runs = [what for kind, what in steps if kind == "RUN"]
    # torch's build for processors before anything asks for torch
    assert re.match(r"pip install .*torch --index-url https://download\.pytorch\.org/whl/cpu", runs[0])
    (extras,) = re.findall(r"/src\[([a-z,]+)\]", " ".join(runs))
    assert set(extras.split(",")) <= EXTRAS
    assert kinds.index("COPY") > kinds.index("RUN")  # a change of the code does not fetch torch again
    assert json.loads(text["ENTRYPOINT"]) == list(PROJECT["scripts"])
    assert json.loads(text["CMD"])[0] in COMMANDS
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".git", ".venv", "runs"} <= set(ignored)


#: the method, the evaluation and the command line, with nothing but the required packages
TORCH_FREE = """
import sys
import numpy as np
import wtal
from wtal.cli import main
from wtal.evaluate import average_recall, diagnose, prepare

tcam = np.zeros((40, 2))
tcam[5:15, 0] = 0.5
found = wtal.RECOMMENDED(tcam, np.array([0.9, 0.01])).instances
wtal.make_targets(found, n_snippets=40, n_classes=2)
seconds = wtal.TimeBase().instances_to_seconds(found, duration_s=25.6)
wtal.nms(seconds), wtal.soft_nms(seconds)
truth = wtal.Annotations(("Run", "Jump"), {"a": wtal.annotations.Video("test", 25.6, seconds)})
assert wtal.score({"a": seconds}, truth).average["0.1:0.7"] == 100
case = prepare({"a": seconds}, truth)
diagnose(case), average_recall(case)
wtal.write_predictions("pred.json", {"a": seconds}, truth.classes)
from wtal.formats import write_annotations
write_annotations("gt.json", truth)
main(["evaluate", "pred.json", "gt.json"])
wtal.read_recipe("my-videos")
assert "torch" not in sys.modules
"""


def interpreter(version: str) -> str | None:
    """A Python of this version, from the path or from pyenv."""
    for found in filter(None, [shutil.which(f"python{version}"), _of_pyenv(version)]):
        asked = subprocess.run([found, "-c", "import sys, venv; print(sys.version)"], capture_output=True, text=True)
        if asked.returncode == 0 and asked.stdout.startswith(version):
            return found
    return None


def _of_pyenv(version: str) -> str | None:
    if shutil.which("pyenv") is None:
        return None
    root = subprocess.run(["pyenv", "root"], capture_output=True, text=True).stdout.strip()
    there = sorted(Path(root).glob(f"versions/{version}.*/bin/python"))
    return str(there[-1]) if root and there else None


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_method_runs_on_every_python_that_is_promised(version: str, wheel: Path, tmp_path: Path) -> None:
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    if sys.version.startswith(version):
        pytest.skip("the Python that runs all tests")
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} on this machine")
    subprocess.run([found, "-m", "venv", str(tmp_path / "venv")], check=True, capture_output=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--only-binary", ":all:"]
    done = subprocess.run(
        [*pip, str(wheel), "-c", str(ROOT / "constraints.txt")], capture_output=True, text=True, cwd=tmp_path
    )
    if "from versions: none" in done.stderr:
        pytest.skip("no package index at hand")
    assert done.returncode == 0, done.stderr
    ended = subprocess.run([python, "-W", "error", "-c", TORCH_FREE], capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^mAP( +100\.00){7}", ended.stdout, re.MULTILINE), ended.stdout
