"""Train what a plan lacks, one run after the other; whatever ends it, the same call goes on."""

from collections.abc import Callable
from typing import Any

from wtal.data.store import Store
from wtal.paper.plan import Plan, PlannedRun
from wtal.training import Execution, train
from wtal.training.fork import fork


def carry_out(
    plan: Plan,
    store: Store,
    *,
    execution: Execution = Execution(),  # noqa: B008  frozen
    watch: Callable[[PlannedRun, float, Any], None] = lambda *_: None,
    done: Callable[[PlannedRun], None] = lambda _: None,
) -> None:
    """Train every job that has not finished; a job with a base begins as its copy.

    `watch` hears the job, the epochs of the whole plan that are behind it, and the training's own status.
    """
    behind = 0.0
    for job in plan.jobs:
        if job.state == "finished":
            continue
        first = job.recipe.epochs - job.epochs_to_train
        if job.base is not None and not job.run.begun:
            fork(job.base.run, job.recipe, job.run)

        def hear(status: Any, job: PlannedRun = job, first: int = first, behind: float = behind) -> None:
            share = status.completed / max(status.total, 1) if status.phase == "training" else 0.0
            watch(job, behind + max(0.0, status.epoch + share - first), status)

        train(
            # a begun run keeps its own recipe, which may differ from the job's in the settings of the test
            job.run.recipe if job.run.begun else job.recipe,
            store,
            job.path,
            resume=True,
            execution=execution,
            watch=hear,
        )
        behind += job.epochs_to_train
        done(job)
