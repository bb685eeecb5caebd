"""Two seeds of one small recipe, and a base without labels."""

from pathlib import Path

import pytest

from small import RECIPE, make_store
from wtal.data.store import Store
from wtal.training import Execution, train


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("data") / "store", n_test=7)


@pytest.fixture(scope="session")
def runs(store: Store, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny.yaml").write_text(RECIPE)
    base = RECIPE[: RECIPE.index("targets:")] + RECIPE[RECIPE.index("test:") :]
    (folder / "base.yaml").write_text(base)
    made = [
        train(folder / "tiny.yaml", store, folder / f"tiny-seed{s}", seed=s, execution=Execution(threads=1))
        for s in (0, 1)
    ]
    made.append(
        train(folder / "base.yaml", store, folder / "base-seed0", execution=Execution(threads=1, evaluate_every=2))
    )
    return [run.path for run in made]
