from collections.abc import Callable
from pathlib import Path

import pytest

from videos import write_video


@pytest.fixture
def make_video(tmp_path: Path) -> Callable[..., Path]:
    return lambda name, brightness, **options: write_video(tmp_path / name, brightness, **options)
