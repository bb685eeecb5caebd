"""Train what a plan lacks, one run after the other; whatever ends it, the same call goes on."""

from collections.abc import Callable, Mapping
from typing import Any

from wtal.data.store import Store
from wtal.paper.plan import Plan, PlannedRun
from wtal.progress import Progress, adapted, silent
from wtal.training import Execution, train
from wtal.training.fork import fork


def carry_out(
    plan: Plan,
    store: Store,
    *,
    execution: Execution = Execution(),  # noqa: B008  frozen
    progress: Progress = silent,
    done: Callable[[PlannedRun], None] = lambda _: None,
) -> None:
    """Train every job that has not finished; a job with a base begins as its copy.

    Progress is that of the trainings, with the run's name and its epochs as further detail; the step "training" counts
    the epochs of the whole plan.
    """
    behind = 0.0
    for job in plan.jobs:
        if job.state == "finished":
            continue
        if job.base is not None and not job.run.begun:
            fork(job.base.run, job.recipe, job.run)
        train(
            # a begun run keeps its own recipe, which may differ from the job's in the settings of the test
            job.run.recipe if job.run.begun else job.recipe,
            store,
            job.path,
            resume=True,
            execution=execution,
            progress=_part_of(plan, job, behind, progress),
        )
        behind += job.epochs_to_train
        done(job)


def _part_of(plan: Plan, job: PlannedRun, behind: float, progress: Progress) -> Progress:
    """The hook of one job's training, with so many epochs of the plan behind it."""
    first = job.recipe.epochs - job.epochs_to_train
    more = adapted(progress, run=job.path.name, epochs=job.recipe.epochs)

    def hear(step: str, completed: float, total: float, detail: Mapping[str, Any], /) -> None:
        if step == "training":
            completed, total = behind + max(0.0, completed - first), plan.epochs_to_train
        more(step, completed, total, detail)

    return hear
