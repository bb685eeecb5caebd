"""A small run over generated videos, a detector that it has taught, and clients of their server."""

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from small import DETECTOR, RECIPE, make_store
from wtal.data.store import Store
from wtal.serve.app import application
from wtal.serve.served import Served
from wtal.training import Execution, train


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("data") / "store")


@pytest.fixture(scope="session")
def runs(store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny.yaml").write_text(RECIPE)
    (folder / "detector.yaml").write_text(DETECTOR)
    one = Execution(threads=1)
    teacher = train(folder / "tiny.yaml", store, folder / "tiny", execution=one).path
    pair = train(folder / "detector.yaml", store, folder / "pair", teacher=teacher, execution=one).path
    return {"tiny": teacher, "pair": pair}


@pytest.fixture(scope="session")
def served(runs: dict[str, Path]) -> dict[str, Served]:
    return {name: Served.open(path, name) for name, path in runs.items()}


@pytest.fixture
def client(served: dict[str, Served]) -> Callable[..., TestClient]:
    """A client of the server with these options, known to it as localhost."""

    def open_client(*names: str, **options: object) -> TestClient:
        app = application([served[name] for name in names or ("tiny",)], **options)
        return TestClient(app, base_url="http://localhost:8000")

    return open_client
