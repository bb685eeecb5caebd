"""Every test runs with the shapes and types of the signatures checked; data that may be absent are fixtures."""

import os
import sys
from pathlib import Path

import hypothesis
import pytest
from jaxtyping import install_import_hook

sys.path.insert(0, str(Path(__file__).parent))  # for checker.py and strategies.py, whatever the import mode

_CHECKED = sorted(
    f"wtal.{path.stem}"
    for path in (Path(__file__).parents[1] / "src" / "wtal").iterdir()
    if path.stem not in {"__init__", "__pycache__", "py"}
)
install_import_hook(_CHECKED, "checker.check")

# the first call of a compiled loop takes seconds, and a busy machine is not a failure
hypothesis.settings.register_profile("wtal", deadline=None, max_examples=200)
hypothesis.settings.load_profile("wtal")

SHARED = Path(os.environ.get("WTAL_SHARED", Path(__file__).parents[2] / "shared"))


def _shared(*parts: str) -> Path:
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"real data not at hand: {'/'.join(parts)} (set WTAL_SHARED to the folder that holds it)")
    return path


@pytest.fixture(scope="session")
def golden() -> Path:
    """Outputs of other people's code on real input."""
    return _shared("golden")


@pytest.fixture(scope="session")
def thumos14() -> Path:
    """Real THUMOS14 annotations, ambiguous intervals and packed features."""
    return _shared("thumos14")


@pytest.fixture(scope="session")
def activitynet13() -> Path:
    """Real ActivityNet1.3 annotations."""
    return _shared("activitynet13")


@pytest.fixture(scope="session")
def ucf101() -> Path:
    """Real trimmed clips of nine classes of UCF101."""
    return _shared("videos", "ucf101")
