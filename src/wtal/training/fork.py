"""Runs that share their beginning: one is trained up to the first labels, the others go on from its checkpoint.

What a run does before an epoch cannot depend on what its recipe says about later ones. So a run that was begun as a
copy of another's checkpoint is, to the bit, the run that it would have been alone; it only costs less.
"""

import shutil
from dataclasses import replace
from typing import Any

from wtal.errors import InputError
from wtal.training.config import LocalizeSettings, Recipe, TargetSettings
from wtal.training.run import Run
from wtal.typed import differences, plain


def beginning(recipe: Recipe, epochs: int) -> Recipe:
    """The first epochs of a recipe as a recipe of their own; labels must not have begun by then.

    >>> beginning(Recipe("rskp", 350, ((80, 5e-5), (350, 4e-5))), 200).learning_rate
    ((80, 5e-05), (200, 4e-05))
    """
    first = first_targets(recipe)
    if epochs > recipe.epochs or (first is not None and epochs > first):
        ends = f"labels are made at epoch {first}" if first is not None else f"it ends at epoch {recipe.epochs}"
        raise InputError(f"the first {epochs} epochs of this recipe cannot be shared: {ends}")
    rates = [(until, rate) for until, rate in recipe.learning_rate if until < epochs]
    return replace(
        recipe,
        epochs=epochs,
        learning_rate=(*rates, (epochs, recipe.rate_at(epochs - 1))),
        targets=TargetSettings(),
    )


def first_targets(recipe: Recipe) -> int | None:
    """The epoch at whose start the first labels are made; None if none are."""
    return recipe.targets.stages[0].from_epoch if recipe.targets.stages else None


def training_of(recipe: Recipe) -> dict[str, Any]:
    """Everything that decides what is learned: the recipe without its test settings.

    Rates after the last epoch and settings of labels that are never made decide nothing, so they are left out.
    """
    ends = beginning(recipe, recipe.epochs) if not recipe.targets.stages else recipe
    content: dict[str, Any] = plain(replace(ends, test=LocalizeSettings(protocols=())))
    return content


def fork(base: Run, recipe: Recipe, into: Run) -> None:
    """Begin a run of `recipe` in the folder `into` with all that the finished run `base` has learned.

    `wtal.train(recipe, …, into.path, resume=True)` then goes on from there.
    """
    shared = base.recipe
    recipe = recipe.with_precision(shared.precision)
    changed = differences(training_of(shared), training_of(beginning(recipe, shared.epochs)))
    if changed:
        raise InputError(f"{base.path} is not the beginning of this recipe: {'; '.join(changed)}")
    if into.begun:
        raise InputError(f"{into.path} holds a run already")
    last = base.checkpoints / f"epoch-{shared.epochs:04d}-step-0000"
    environment = base.environment()
    if not last.is_dir() or environment is None:
        raise InputError(f"{base.path} has no checkpoint {last.name}: it has not ended, or somebody has removed it")
    try:
        shutil.rmtree(into.path, ignore_errors=True)  # of a fork that was cut short
        shutil.copytree(last, into.checkpoints / last.name)
        shutil.copyfile(base.path / "metrics.jsonl", into.path / "metrics.jsonl")
    except OSError as error:
        raise InputError(f"cannot begin {into.path} as a copy of {base.path}: {error}") from error
    into.begin(recipe, {**environment, "forked_from": {"run": base.path.name, "epoch": shared.epochs}})
