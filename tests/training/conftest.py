"""Small data, small runs, and processes to run them in."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from small import RECIPE, make_store
from wtal.data.convert import convert
from wtal.data.store import Store
from wtal.data.synthetic import Difficulty, synthetic_source
from wtal.data.synthetic_annotations import random_annotations


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("data") / "store")


@pytest.fixture(scope="session")
def other_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("other") / "store", seed=1)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="session")
def whole_run(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing has interrupted."""
    from wtal.training import Execution, train

    folder = tmp_path_factory.mktemp("whole")
    (folder / "tiny.yaml").write_text(RECIPE)
    return train(folder / "tiny.yaml", store, folder / "run", execution=Execution(threads=1)).path


@pytest.fixture
def start() -> Callable[..., "subprocess.Popen[str]"]:
    """Start Python in a process of its own, with one thread, since other work on the machine must not matter."""

    def begin(*arguments: object) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        )

    return begin


@pytest.fixture
def wtal(start: Callable[..., "subprocess.Popen[str]"]) -> Callable[..., "subprocess.Popen[str]"]:
    """Start `wtal` with these arguments."""
    return lambda *arguments: start("-c", "from wtal.cli import main; main()", *arguments)


@pytest.fixture(scope="session")
def larger_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Enough videos for what is learned from their tags to show on others."""
    rng = np.random.default_rng(3)
    made = random_annotations(rng, n_train=48, n_test=16, n_classes=3, duration_s=40.0)
    path = tmp_path_factory.mktemp("larger") / "store"
    easy = Difficulty(plateau=0.9, shoulder=0.1, context=0.1, scene=0.2, noise=0.4)
    convert(synthetic_source(made, rng, n_dims=32, difficulty=easy), path)
    return Store.open(path)
