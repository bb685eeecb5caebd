"""The wheel, built once, and what it installs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def installed(wheel: Path) -> Path:
    """A folder with what the wheel installs."""
    target = wheel.parent / "site"
    subprocess.run([*PIP, "install", "--no-deps", "--target", str(target), str(wheel)], check=True, capture_output=True)
    return target
