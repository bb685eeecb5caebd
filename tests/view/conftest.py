"""A small run over generated videos, with a video file to play."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import chromium
from small import RECIPE, make_store
from videos import write_video
from wtal.data.store import Store
from wtal.localize import Localizer
from wtal.training import Execution, train


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("data") / "store")


@pytest.fixture(scope="session")
def run(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny.yaml").write_text(RECIPE)
    return train(folder / "tiny.yaml", store, folder / "tiny-seed0", execution=Execution(threads=1)).path


@pytest.fixture(scope="session")
def localizer(run: Path) -> Localizer:
    return Localizer.load(run, device="cpu")


@pytest.fixture(scope="session")
def name(store: Store, localizer: Localizer) -> str:
    """A test video in which several instances are found."""
    found = {name: len(localizer.decide(store.features(name), store.timebase(name))) for name in store.names("test")}
    best = max(found, key=lambda one: found[one])
    assert found[best] >= 2
    return best


@pytest.fixture(scope="session")
def videos(store: Store, name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file of that video: grey that grows brighter."""
    folder = tmp_path_factory.mktemp("videos")
    n = round(store.duration_s(name) * 10)
    write_video(folder / f"{name}.mp4", [200 * i / n for i in range(n)], fps=10)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened
