"""Train what a plan lacks, one run after the other; whatever ends it, the same call goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wtal.data.store import Store
from wtal.paper.plan import Job, Plan
from wtal.training import Execution, train
from wtal.training.fork import fork
from wtal.training.run import Run


def carry_out(
    plan: Plan,
    store: Store,
    *,
    execution: Execution = Execution(),  # noqa: B008  frozen
    watch: Callable[[Job, float, Any], None] = lambda *_: None,
    done: Callable[[Job], None] = lambda _: None,
) -> None:
    """Train every job that has not finished; a job with a base begins as its copy.

    `watch` hears the job, the epochs of the whole plan that are behind it, and the training's own status.
    """
    behind = 0.0
    for job in plan.jobs:
        if job.state == "finished":
            continue
        first = job.recipe.epochs - job.epochs_to_train
        if job.base is not None and not (job.path / "config.yaml").exists():
            fork(Run(job.base.path), job.recipe, Run(job.path))

        def hear(status: Any, job: Job = job, first: int = first, behind: float = behind) -> None:
            share = status.completed / max(status.total, 1) if status.phase == "training" else 0.0
            watch(job, behind + max(0.0, status.epoch + share - first), status)

        train(
            _own_recipe(job.path) or job.recipe,
            store,
            job.path,
            resume=True,
            execution=execution,
            watch=hear,
        )
        behind += job.epochs_to_train
        done(job)


def _own_recipe(path: Path) -> Path | None:
    """The recipe that a begun run was begun with; it may differ from the job's in the settings of the test."""
    own = path / "config.yaml"
    return own if own.exists() else None
