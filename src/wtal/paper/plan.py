"""Which runs an experiment needs, which of them are there, what the others cost, and how they are trained."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, Literal

from wtal.data.store import Store
from wtal.errors import InputError
from wtal.progress import Progress, adapted, silent
from wtal.training import Execution, train
from wtal.training.config import Recipe
from wtal.training.fork import beginning, fork, training_of
from wtal.training.run import Run

RunState = Literal["finished", "begun", "new"]


@dataclass(frozen=True)
class Variant:
    """One way of training that an experiment wants, under a name that all experiments share.

    Its first `shared` epochs are those of other variants too, and are trained once, under the name `base`.
    """

    name: str
    recipe: Recipe
    base: str = ""
    shared: int | None = None


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """One run: where it lies, how far it is, and the run that it goes on from."""

    name: str
    recipe: Recipe
    path: Path
    state: RunState
    epochs_done: int
    base: "PlannedRun | None" = None

    @cached_property
    def run(self) -> Run:
        """Its folder, whether there is anything in it or not."""
        return Run(self.path)

    @property
    def epochs_to_train(self) -> int:
        """Epochs that are still to be trained, apart from those of its base."""
        if self.state == "finished":
            return 0
        shared = self.base.recipe.epochs if self.base is not None and self.state == "new" else 0
        return self.recipe.epochs - max(self.epochs_done, shared)


@dataclass(frozen=True, eq=False)
class Plan:
    """The jobs in the order in which they are done, and where to find each wanted variant and seed."""

    jobs: tuple[PlannedRun, ...]
    found: dict[tuple[str, int], PlannedRun]
    seconds_per_epoch: Mapping[str, float]
    """Of each base model that has logged epochs, the median."""

    @property
    def unpaced(self) -> tuple[str, ...]:
        """The base models that are to be trained and have no epoch logged yet."""
        models = dict.fromkeys(job.recipe.model for job in self.jobs if job.epochs_to_train)
        return tuple(model for model in models if model not in self.seconds_per_epoch)

    def seconds(self, *jobs: PlannedRun) -> float | None:
        """How long what these jobs lack will take at the pace logged so far; None if that is known of none of them."""
        known = [job for job in jobs if job.epochs_to_train and job.recipe.model in self.seconds_per_epoch]
        return sum(job.epochs_to_train * self.seconds_per_epoch[job.recipe.model] for job in known) if known else None

    @property
    def epochs_to_train(self) -> int:
        """Epochs that are still to be trained in all."""
        return sum(job.epochs_to_train for job in self.jobs)

    @property
    def alone(self) -> int:
        """Epochs that the same runs would take if each was trained by itself from the beginning."""
        return sum(job.recipe.epochs for job in self.jobs)


def make_plan(
    variants: Iterable[Variant],
    seeds: Sequence[int],
    store: Store,
    folder: Path,
    *,
    reuse: Sequence[Path] = (),
) -> Plan:
    """The runs that are wanted, each once however often it is wanted; `reuse` are runs of elsewhere to look at first.

    A run is the wanted one if it learned the same from the same data: settings of the test alone do not matter.
    """
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise InputError(f"seeds must be different whole numbers from 0 on, got {','.join(map(str, seeds)) or 'none'}")
    given = _runs_there(reuse, store)
    unusable = [str(path) for path in reuse if path not in [run.path for run, _ in given]]
    if unusable:
        raise InputError(f"`reuse={unusable[0]}`: not a run over {store.path}")
    there = [*given, *_runs_there(sorted(folder.glob("*/")), store)]
    jobs: list[PlannedRun] = []
    found: dict[tuple[str, int], PlannedRun] = {}

    def job_of(name: str, recipe: Recipe, shared: Variant | None = None) -> PlannedRun:
        wanted = training_of(recipe)
        same = next((job for job in jobs if training_of(job.recipe) == wanted), None)
        if same is not None:
            return same
        run = next((run for run, training in there if training == wanted), None)
        state, done = _progress(run)
        base = None
        if shared is not None and shared.shared and state == "new":
            base = job_of(shared.base, beginning(recipe, shared.shared))
        path = run.path if run is not None else _free(folder / f"{name}-seed{recipe.seed}", recipe)
        job = PlannedRun(name, recipe, path, state, done, base)
        jobs.append(job)
        return job

    for seed in seeds:
        for variant in variants:
            found[variant.name, seed] = job_of(variant.name, variant.recipe.with_seed(seed), variant)
    return Plan(tuple(jobs), found, _seconds_per_epoch(there))


def _runs_there(folders: Iterable[Path], store: Store) -> list[tuple[Run, dict[str, Any]]]:
    """The runs over this data set in these folders, and what each learns from."""
    runs = []
    for run in map(Run, folders):
        about = run.environment() or {}
        if about.get("data", {}).get("fingerprint") == store.fingerprint:
            runs.append((run, training_of(run.recipe)))
    return runs


def _progress(run: Run | None) -> tuple[RunState, int]:
    if run is None:
        return "new", 0
    return ("finished", run.recipe.epochs) if run.ended else ("begun", run.metrics().epochs_done)


def _free(path: Path, recipe: Recipe) -> Path:
    if Run(path).begun:
        raise InputError(
            f"{path} holds a run of another recipe or data set than the {recipe.model} run that belongs there; choose "
            "another folder `out=DIR`, or remove that one"
        )
    return path


def _seconds_per_epoch(runs: Iterable[tuple[Run, dict[str, Any]]]) -> dict[str, float]:
    """For each base model the median over all epochs that its runs have logged."""
    seconds: dict[str, list[float]] = {}
    for run, training in runs:
        logged = [line["seconds"] for line in run.metrics().epochs if "seconds" in line]
        seconds.setdefault(training["model"], []).extend(logged)
    return {model: median(logged) for model, logged in seconds.items() if logged}


def carry_out(
    plan: Plan,
    store: Store,
    *,
    execution: Execution = Execution(),  # noqa: B008  frozen
    progress: Progress = silent,
    done: Callable[[PlannedRun], None] = lambda _: None,
) -> None:
    """Train every job that has not finished, one after the other; whatever ends it, the same call goes on.

    A job with a base begins as its copy. Progress is that of the trainings, with the run's name and its epochs as
    further detail; the step "training" counts the epochs of the whole plan.
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
