"""A generated data set of a few short videos, a recipe that goes through every part of training in a second, and what
a run has come to."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from wtal.data.convert import convert
from wtal.data.store import Store
from wtal.data.synthetic import synthetic_source
from wtal.data.synthetic_annotations import random_annotations

RECIPE = """
model: rskp
model_options: {warmup_epoch: 1, dropout: 0.3, hidden: 24}
epochs: 5
batch_videos: 3
learning_rate: [[3, 1e-2], [5, 5e-3]]
targets:
  stages:
  - {from_epoch: 2, source: raw, delay: 1}
  - {from_epoch: 4}
  rows: sum
test: {protocols: [thumos14]}
"""

#: a detector that is trained in a second, by any run as its teacher
DETECTOR = """
model: detector
model_options: {width: 8, averaging: 0.9, levels: 2}
epochs: 2
batch_videos: 4
learning_rate: [[2, 3e-3]]
optimizer: {name: adamw, clip_norm: 1.0}
boxes: {least_weight: 0.4}
test: {protocols: [thumos14], pool: {weight: 0.5}}
"""


def make_store(path: Path, *, seed: int = 0, n_train: int = 13, n_test: int = 3, test_tags: bool = True) -> Store:
    """A store of short videos; without `test_tags` those for test carry none."""
    rng = np.random.default_rng(seed)
    made = random_annotations(rng, n_train=n_train, n_test=n_test, n_classes=3, duration_s=25.0)
    source = synthetic_source(made, rng, n_dims=16)
    kept = [one if test_tags or one.split == "train" else replace(one, tags=()) for one in source.records]
    convert(replace(source, records=tuple(kept)), path)
    return Store.open(path)


def outcome(run: Path) -> dict[str, object]:
    """All that a run has learned, written and logged, but the time it took."""
    logged = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for line in logged:
        line.pop("seconds", None)
    files = ["model/model.safetensors", "model/model.json", "predictions.json", "evaluation.json", "config.yaml"]
    return {"log": logged} | {name: (run / name).read_bytes() for name in files}
