"""A small data set and the recipe whose variants are compared on it."""

from pathlib import Path

import pytest

from small import RECIPE, make_store
from wtal.data.store import Store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("data") / "store")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny-gaufuse.yaml"
    path.write_text(RECIPE)
    return path
