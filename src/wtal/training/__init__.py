"""Training: a recipe and a store of features in, a run's folder with a trained model out."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from wtal.bars import showing
from wtal.data.store import Store
from wtal.errors import MissingExtraError
from wtal.locks import held
from wtal.machine import prepare_torch
from wtal.progress import Progress, adapted, silent
from wtal.training.config import Recipe, read_recipe
from wtal.training.execution import Execution, leads
from wtal.training.run import Run
from wtal.typed import as_path, checked, wanted_type

if TYPE_CHECKING:
    from wtal.training.session import Session

__all__ = ["Execution", "Recipe", "Run", "default_run", "read_recipe", "train"]


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
    resume: bool = False,
    teacher: Path | str | Sequence[Path | str] | None = None,
    corrections: Path | str | None = None,
    execution: Execution = Execution(),  # noqa: B008  frozen
    progress: Progress | bool = True,
) -> Run:
    """Train by a recipe on a store's training videos.

    Ctrl-C finishes the step, saves, and raises `wtal.errors.Interrupted`.

    Args:
        recipe: A recipe, its YAML file, or the name of one that comes with wtal.
        data: A store of features, or its folder.
        run: Folder for all that comes out; runs/RECIPE-seedN by default.
        seed: Takes the place of the recipe's.
        resume: Whether the run in that folder continues from its newest checkpoint, to the same bits as if it had
            never stopped; it starts if there is none.
        teacher: Of a detector: the finished run whose instances it is taught; or the recipe of one, which is trained
            first, in a folder beside the run's (RECIPE-seedN, reused if it is there). Or several of
            these. By default the recipe's own.
        corrections: What people have said happens when in some of the training videos: a file that wtal serve --edit
            has saved, or annotations. A run that is resumed keeps those that it began with.
        execution: Where and how it is computed.
        progress: Whether stderr shows how far it is: bars in a terminal, a line now and then elsewhere. Or a function
            of yours, called as progress(step, completed, total, detail) whenever training has got further: step
            "training" counts epochs, with the losses in the detail; "boxes", "targets" and "predictions" count videos.

    Returns:
        The run: its folder, and what is in it.
    """
    prepare_torch()
    try:
        from wtal.training.session import in_group
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingExtraError(error.name, "train") from error
    wanted_type(execution, Execution, "execution")
    seed = checked(int | None, seed, "seed")
    asked = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    if run is None:
        name = asked.model.rpartition(":")[2] if isinstance(recipe, Recipe) else Path(recipe).stem
        run = default_run(name, asked.seed if seed is None else seed)
    store = data if isinstance(data, Store) else Store.open(data)
    said = None if corrections is None else Path(corrections)
    given = teacher if isinstance(teacher, (list, tuple)) else () if teacher is None else (teacher,)
    teachers = [as_path(one, "teacher") for one in given]
    hook = silent if isinstance(progress, bool) else progress
    with (
        in_group(execution) as session,
        # of several processes that torchrun has started one speaks
        showing("epochs", main="training") if progress is True and leads() else nullcontext(hook) as heard,
    ):
        return _stages(session, asked, store, Run(Path(run)), seed, resume, teachers, said, heard)


def _stages(
    session: "Session",
    asked: Recipe,
    store: Store,
    run: Run,
    seed: int | None,
    resume: bool,
    teachers: Sequence[Path | str],
    corrections: Path | None,
    progress: Progress,
) -> Run:
    """The run, after those of its teachers that have to be trained first. The leading process decides that."""
    with held(run.path) if session.group.leads else nullcontext():
        taught_by = session.group.told(tuple(teachers) or run.first_stages(asked))
        if session.group.leads:
            run.check_teachers(asked, taught_by)  # before any of them is trained
        before: list[tuple[Recipe | None, Run]] = []
        for teacher in taught_by:
            first = session.group.told(teacher_recipe(teacher))
            if first is None:
                before.append((None, Run(Path(teacher))))
                continue
            first = first.with_seed(asked.seed if seed is None else seed)
            earlier = Run(run.path.parent / default_run(_stem(teacher, store), first.seed).name)
            earlier.refuse_other_work(first, store)  # before any of them is trained
            before.append((first, earlier))
        stages = [(first, earlier) for first, earlier in before if first is not None]
        for number, (first, earlier) in enumerate(stages, start=1):
            if session.group.told(not earlier.ended):
                heard = adapted(progress, stage=f"{number} of {len(stages) + 1}, {earlier.path.name}")
                _stages(session, first, store, earlier, None, True, (), corrections, heard)
        if stages:
            progress = adapted(progress, stage=f"{len(stages) + 1} of {len(stages) + 1}, {run.path.name}")
        trained = [earlier.path for _, earlier in before]
        return session(
            asked, store, run, seed=seed, resume=resume, teachers=trained, corrections=corrections, progress=progress
        )


def teacher_recipe(teacher: Path | str) -> Recipe | None:
    """The recipe by which a teacher is to be trained first; None if it is a trained run."""
    return None if Path(teacher).is_dir() else read_recipe(teacher)


def _stem(recipe: Path | str, store: Store) -> str:
    return Path(recipe).stem + (f"-fold{store.part.replace('/', 'of')}" if store.part else "")
