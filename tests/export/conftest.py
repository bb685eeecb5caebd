"""A run that has been trained for a moment, and a detector that it has taught."""

import pytest

from small import RECIPE, make_store
from wtal import Execution, train
from wtal.training.run import Run

DETECTOR = """
model: detector
model_options: {width: 16, networks: 2, levels: 3}
epochs: 2
batch_videos: 4
learning_rate: [[2, 1e-3]]
optimizer: {name: adamw}
boxes: {least_weight: 0.3}
test: {protocols: [thumos14], pool: {weight: 0.5}}
"""


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("exported") / "my-store")


@pytest.fixture(scope="session")
def single(store, tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("single")
    (folder / "tiny.yaml").write_text(RECIPE)
    return train(folder / "tiny.yaml", store, folder / "run", execution=Execution(threads=1))


@pytest.fixture(scope="session")
def pair(store, single, tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("pair")
    (folder / "tiny-detector.yaml").write_text(DETECTOR)
    return train(
        folder / "tiny-detector.yaml", store, folder / "run", teacher=single.path, execution=Execution(threads=1)
    )
