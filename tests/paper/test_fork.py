"""A run that goes on from another's checkpoint is, to the bit, the run that it would have been alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from small import outcome
from wtal.data.store import Store
from wtal.errors import InputError
from wtal.training import Execution, Run, read_recipe, train
from wtal.training.config import Recipe, TargetSettings
from wtal.training.fork import beginning, fork, training_of


@pytest.fixture
def whole(recipe: Path) -> Recipe:
    return read_recipe(recipe)


@pytest.fixture
def base(whole: Recipe, store: Store, tmp_path: Path) -> Run:
    return train(beginning(whole, 2), store, tmp_path / "base", execution=Execution(threads=1))


def test_forked_runs_are_the_runs_that_they_would_be_alone(
    whole: Recipe, base: Run, store: Store, tmp_path: Path
) -> None:
    for name, asked in {"labels": whole, "none": replace(whole, targets=TargetSettings())}.items():
        alone = train(asked, store, tmp_path / f"{name}-alone", execution=Execution(threads=1))
        forked = Run(tmp_path / f"{name}-forked")
        fork(base, asked, forked)
        assert not (forked.path / "model").exists()
        train(asked, store, forked.path, resume=True)
        assert outcome(forked.path) == outcome(alone.path)
        about = json.loads((forked.path / "environment.json").read_text())
        assert about["forked_from"] == {"run": "base", "epoch": 2}
        assert about["threads"] == 1  # as its beginning had, or its sums would differ


def test_the_first_epochs_of_a_recipe(whole: Recipe) -> None:
    first = beginning(whole, 2)
    assert (first.epochs, first.learning_rate, first.targets.stages) == (2, ((2, 1e-2),), ())
    with pytest.raises(InputError, match="labels are made at epoch 2"):
        beginning(whole, 3)
    with pytest.raises(InputError, match="it ends at epoch 5"):
        beginning(replace(whole, targets=TargetSettings()), 6)


def test_what_is_learned_does_not_depend_on_the_test_or_on_what_is_never_used(whole: Recipe) -> None:
    proposer = whole.test.proposer.at_temperature(0.5)
    assert training_of(replace(whole, test=replace(whole.test, proposer=proposer))) == training_of(whole)
    first = beginning(whole, 2)
    assert training_of(replace(first, learning_rate=((2, 1e-2), (9, 1.0)))) == training_of(first)
    assert training_of(first.with_seed(1)) != training_of(first)


def test_only_its_own_beginning_serves(whole: Recipe, base: Run, store: Store, tmp_path: Path) -> None:
    other = replace(whole, batch_videos=4)
    with pytest.raises(InputError, match=r"is not the beginning of this recipe: batch_videos \(3, now 4\)"):
        fork(base, other, Run(tmp_path / "new"))
    with pytest.raises(InputError, match="holds a run already"):
        fork(base, whole, base)
    (base.checkpoints / "epoch-0002-step-0000").rename(base.checkpoints / "elsewhere")
    with pytest.raises(InputError, match="has no checkpoint epoch-0002-step-0000"):
        fork(base, whole, Run(tmp_path / "new"))
    assert not (tmp_path / "new" / "config.yaml").exists()
