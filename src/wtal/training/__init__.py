"""Training: a recipe and a store of features in, a run's folder with a trained model out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wtal.data.store import Store
from wtal.errors import MissingExtraError
from wtal.training.config import Recipe, read_recipe
from wtal.training.run import Run

__all__ = ["Recipe", "Run", "default_run", "read_recipe", "train"]


def default_run(name: str, seed: int) -> Path:
    """The folder of a run that was given none.

    >>> default_run("demo", 0).as_posix()
    'runs/demo-seed0'
    """
    return Path("runs") / f"{name}-seed{seed}"


def train(
    recipe: Recipe | Path | str,
    data: Store | Path | str,
    run: Path | str | None = None,
    *,
    seed: int | None = None,
    device: str = "auto",
    resume: bool = False,
    threads: int | None = None,
    checkpoint_every_s: float = 300.0,
    evaluate_every: int | None = None,
    tensorboard: bool = False,
    watch: Callable[[Any], Any] = lambda _: None,
) -> Run:
    """Train by a recipe on a store's training videos; the run's folder then holds all that came out.

    Recipe and data may be given as files; the folder is runs/RECIPE-seedN by default.
    `seed` takes the place of the recipe's. With `resume` the run in that folder goes on from its newest checkpoint,
    to the same bits as if it had never stopped; it starts if it has not begun. `threads` of the processor are used,
    all by default; a run keeps the number that it began with. With `evaluate_every` the test videos are also scored on
    the way, every so many epochs, for the curve in a report; nothing is chosen by it. `tensorboard` draws curves into
    RUN/tensorboard. Ctrl-C finishes the step, saves, and raises `wtal.errors.Interrupted`. `watch` is called
    with a `wtal.training.loop.Status` after every step.
    """
    try:
        from wtal.training.session import session
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingExtraError(error.name, "train") from error
    asked = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    if run is None:
        name = asked.model.rpartition(":")[2] if isinstance(recipe, Recipe) else Path(recipe).stem
        run = default_run(name, asked.seed if seed is None else seed)
    return session(
        asked,
        data if isinstance(data, Store) else Store.open(data),
        Run(Path(run)),
        seed=seed,
        device=device,
        resume=resume,
        threads=threads,
        checkpoint_every_s=checkpoint_every_s,
        evaluate_every=evaluate_every,
        tensorboard=tensorboard,
        watch=watch,
    )
