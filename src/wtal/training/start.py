"""Where a training begins or goes on: what has to hold before anything is computed or written."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from wtal.card import read_card
from wtal.data.store import Store
from wtal.devices import choose_device
from wtal.errors import DataWarning, InputError, some
from wtal.instances import Instances
from wtal.models.precision import chosen
from wtal.training import checkpoint
from wtal.training.config import Recipe
from wtal.training.corrections import fingerprint, on_grid, read_corrections
from wtal.training.execution import Execution
from wtal.training.run import Run
from wtal.training.videos import Videos


@dataclass(frozen=True)
class Start:
    """What the leading process has read and the others need: they may be on machines that do not see the folder."""

    recipe: Recipe
    data: str
    threads: int
    begun: bool
    checkpoint: Path | None
    corrected: Mapping[str, Instances]
    """What people have said of some of the training videos, in seconds."""


def beginning_of(
    recipe: Recipe,
    store: Store,
    run: Run,
    seed: int | None,
    resume: bool,
    teachers: Sequence[Path],
    corrections: Path | None,
    execution: Execution,
) -> Start:
    """Where a run stands, if it may begin or go on."""
    recipe = _with_seed(recipe, run, seed, resume)
    if not resume and run.begun:
        raise InputError(f"{run.path} holds a run already: `resume=True` goes on with it, `run=DIR` starts another")
    run.refuse_other_work(recipe, store)
    fast = chosen(recipe.precision, choose_device(execution.device))
    recipe = recipe.with_precision(run.recipe.precision if run.begun else fast)
    _refuse_wrong_teachers(recipe, store, run, teachers)
    known = run.environment()
    corrected = _corrected(run, known, corrections, store, recipe)
    in_snippets = on_grid(corrected, store, recipe.test.offset_snippets)
    videos = Videos(store, recipe.train_split, torch.device("cpu"), corrected=in_snippets)
    _refuse_videos_without_tags(videos)
    _warn_of_classes_without_videos(videos)
    # the order of sums depends on the number of threads, so a run keeps the one it began with
    threads = int(known["threads"]) if known else execution.threads or torch.get_num_threads()
    checkpoint.tidy(run.checkpoints)
    last = checkpoint.newest(run.checkpoints)
    return Start(recipe, store.fingerprint, threads, known is not None, last, corrected)


def _with_seed(recipe: Recipe, run: Run, seed: int | None, resume: bool) -> Recipe:
    if seed is None and resume and run.begun:
        seed = run.recipe.seed
    return recipe if seed is None else recipe.with_seed(seed)


def _refuse_wrong_teachers(recipe: Recipe, store: Store, run: Run, teachers: Sequence[Path]) -> None:
    """Make sure that a detector's teachers know the same classes and features, and that no other model has any."""
    run.check_teachers(recipe, teachers)
    for teacher in teachers:
        card = read_card(teacher)
        if card.classes != store.classes or card.dimensions != store.dimensions:
            raise InputError(
                f"the teacher {teacher} knows {len(card.classes)} classes and {card.dimensions} dimensions, the store "
                f"{store.path} has {len(store.classes)} and {store.dimensions}; "
                "they must be the same, in the same order"
            )


def _corrected(
    run: Run, known: Mapping[str, Any] | None, given: Path | None, store: Store, recipe: Recipe
) -> dict[str, Instances]:
    """The corrected videos to learn from: those that the run began with, or those that are given now."""
    asked = {} if given is None else read_corrections(given, store, recipe.train_split)
    if known is None:
        return asked
    begun = known.get("corrections", {}).get("fingerprint")
    if given is not None and fingerprint(asked) != begun:
        what = "without corrections" if begun is None else "with other corrections than are in that file now"
        raise InputError(
            f"{run.path} was begun {what}: resume it without `corrections`, which goes on as it began, or start anew "
            f"with {given} in another folder: `run=DIR`"
        )
    return {} if begun is None else read_corrections(run.corrections, store, recipe.train_split)


def _refuse_videos_without_tags(videos: Videos) -> None:
    if not videos.tags.any():
        raise InputError(
            f"none of the {len(videos)} training videos of {videos.store.path} carries a tag, and tags are all that is "
            "learned from; tag them in the CSV or the annotations and convert again"
        )


def _warn_of_classes_without_videos(videos: Videos) -> None:
    counts: list[float] = videos.tags.sum(axis=0).tolist()
    without = [name for name, count in zip(videos.store.classes, counts, strict=True) if not count]
    if without:
        warnings.warn(f"no training video is tagged {some(without)}; that cannot be learned", DataWarning, stacklevel=4)
