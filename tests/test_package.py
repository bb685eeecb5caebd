"""What a user meets first: the package's names, and how long it takes to come up."""

import inspect
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import wtal

ROOT = Path(__file__).parents[1]


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_every_public_name_is_there():
    for name in wtal.__all__:
        assert getattr(wtal, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        wtal.nonsense  # noqa: B018


@pytest.mark.parametrize("name", [name for name in wtal._HOME if inspect.isfunction(getattr(wtal, name))])
def test_every_public_function_says_what_its_arguments_are(name):
    function = getattr(wtal, name)
    arguments = re.search(r"^Args:\n((?: .*\n|\n)+)", inspect.getdoc(function) + "\n", flags=re.MULTILINE)
    assert arguments, f"{name} has no Args:"
    assert re.findall(r"^    (\w+): ", arguments[1], flags=re.MULTILINE) == list(inspect.signature(function).parameters)


@pytest.mark.parametrize("code", ["import wtal", "import sys; from wtal.cli import main; main(['--help'])"])
def test_coming_up_is_quick_and_loads_no_torch(code):
    # counted in CPU seconds of the child, which a busy machine does not stretch; the best of three
    check = (
        "import resource, sys\n"
        f"{code}\n"
        "heavy = {'torch', 'numba', 'matplotlib', 'scipy', 'av', 'cv2'} & set(sys.modules)\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(); print(sorted(heavy), used.ru_utime + used.ru_stime)"
    )
    results = [run(sys.executable, "-c", check).stdout.splitlines()[-1] for _ in range(3)]
    assert all(line.startswith("[] ") for line in results), results
    assert min(float(line.split()[-1]) for line in results) < 0.4


def test_the_method_and_the_evaluation_run_with_nothing_but_the_required_packages(tmp_path):
    hidden = (
        "import sys\n"
        "extras = ('torch', 'scipy', 'matplotlib', 'pandas', 'safetensors', 'h5py', 'av', 'cv2')\n"
        "for name in extras: sys.modules[name] = None\n"
        "import numpy as np, wtal\n"
        "from wtal.annotations import Annotations, Video\n"
        "found = wtal.PAPER(np.ones((9, 1)) * 0.5, np.ones(1)).instances\n"
        "wtal.make_targets(found, 9, 1)\n"
        "found = wtal.TimeBase().instances_to_seconds(found)\n"
        "wtal.soft_nms(found), wtal.nms(found)\n"
        "truth = Annotations(('Run',), {'a': Video('test', None, found)})\n"
        "assert wtal.score({'a': found}, truth).average['0.1:0.7'] == 100\n"
        "case = wtal.evaluate.prepare({'a': found}, truth)\n"
        "wtal.evaluate.diagnose(case), wtal.evaluate.average_recall(case)\n"
    )
    # compiled afresh: numba asks for scipy only when it compiles
    fresh = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    result = run(sys.executable, "-c", hidden, env=fresh)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(example, tmp_path):
    result = run(sys.executable, str(example), cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_the_notebook_runs(tmp_path, monkeypatch):
    """Every cell, in an empty folder; what it shows is not kept in the file."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "examples" / "04_notebook.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the kernel's sockets and event loops
        nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("<svg" in data.get("text/html", "") for data in shown) == 3
    assert (tmp_path / "notebook-out" / "found.srt").exists()
    assert (tmp_path / "notebook-out" / "model" / "README.md").exists()


def test_no_path_of_a_machine_is_in_the_project():
    listed = run("git", "ls-files", cwd=ROOT)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    homes = ("/" + "home/", "/" + "root/", "/" + "Users/")
    for name in listed.stdout.split():
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".yaml", ".txt", ".cff", ""}:
            text = path.read_text(encoding="utf-8")
            assert not [home for home in homes if home in text], name
