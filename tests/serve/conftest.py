"""A small run over generated videos, and a client of its server."""

from pathlib import Path

import pytest

from small import RECIPE, make_store
from wtal.data.store import Store
from wtal.training import Execution, train


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("data") / "store")


@pytest.fixture(scope="session")
def run(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny.yaml").write_text(RECIPE)
    return train(folder / "tiny.yaml", store, folder / "tiny-seed0", execution=Execution(threads=1)).path
