"""Runs as a report sees them: what each folder holds, what it lacks, and which differ by their seed alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wtal.data.store import Store, is_store
from wtal.errors import InputError
from wtal.training.config import Recipe
from wtal.training.run import Log, Run
from wtal.typed import differences, plain


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A run's folder as read; `evaluation` is empty if there is none, `problems` says what is missing or damaged."""

    run: Run
    name: str
    environment: dict[str, Any]
    evaluation: dict[str, Any]
    log: Log
    problems: tuple[str, ...]

    @property
    def recipe(self) -> Recipe:
        """What it was asked for."""
        return self.run.recipe


@dataclass(frozen=True, eq=False)
class SeedGroup:
    """Runs of one recipe from different seeds."""

    name: str
    number: int
    runs: tuple[LoadedRun, ...]

    @property
    def recipe(self) -> Recipe:
        """What they share, but for the seed."""
        return self.runs[0].recipe


@dataclass(frozen=True, eq=False)
class Loaded:
    """All that one report is about. `store` is None where the data set is not at hand, and `notes` says so."""

    groups: tuple[SeedGroup, ...]
    store: Store | None
    notes: tuple[str, ...] = field(default=())

    @property
    def runs(self) -> tuple[LoadedRun, ...]:
        """The runs of all groups."""
        return tuple(one for group in self.groups for one in group.runs)

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols that any run is scored by."""
        return tuple(dict.fromkeys(name for one in self.runs for name in one.recipe.test.protocols))


def load(paths: Sequence[Path | str], data: Path | None = None) -> Loaded:
    """The runs in these folders, which must be of one data set; `data` is its store, if it has moved."""
    if not paths:
        raise InputError("wanted at least one folder of a run that wtal train made")
    folders = list(dict.fromkeys(Path(path).resolve() for path in paths))
    runs = [load_run(folder, name) for folder, name in zip(folders, run_names(folders), strict=True)]
    _refuse_different_data(runs)
    groups = _grouped(runs)
    store, notes = _find_store(runs[0], data)
    return Loaded(groups, store, (*notes, *_repeated_seeds(groups)))


def load_run(folder: Path, name: str) -> LoadedRun:
    """The run in a folder, under a name to show it by."""
    if not folder.is_dir():
        raise InputError(f"{folder} does not exist; wanted the folder of a run that wtal train made")
    run, problems = Run(folder), []
    if not run.begun:
        raise InputError(f"{folder} is not a run: it has no config.yaml, which wtal train writes when it begins")
    environment = run.environment()
    if environment is None:
        raise InputError(f"{folder} is a broken run: it has no environment.json, so its data set is not known")
    evaluation, log = None, Log()
    try:
        evaluation = run.evaluation
    except InputError as error:
        problems.append(str(error))
    try:
        log = run.metrics()
    except InputError as error:
        problems.append(str(error))
    if log.damaged:
        listed = ", ".join(map(str, log.damaged[:5]))
        problems.append(f"line {listed} of metrics.jsonl cannot be read and is left out")
    if not log.epochs:
        problems.append("metrics.jsonl has no epoch, so there are no curves")
    if not run.ended:
        problems.append(
            f"has not ended: {len(log.epochs)} of {run.recipe.epochs} epochs are logged, and it has no "
            "evaluation.json, which is written last; its scores are missing"
        )
    problems += [
        f"labels of epoch {epoch} are missing (targets/{run.targets(epoch).name})"
        for epoch in log.generations
        if not run.targets(epoch).exists()
    ]
    return LoadedRun(run, name, environment, evaluation or {}, log, tuple(problems))


def run_names(folders: Sequence[Path]) -> list[str]:
    """The folders' own names, led by as many parents as it takes to tell them apart.

    >>> run_names([Path("/a/one/run"), Path("/a/two/run")])
    ['one/run', 'two/run']
    """
    depth = 1
    names = [folder.name for folder in folders]
    while len(set(names)) < len(names) and depth < max(len(folder.parts) for folder in folders):
        depth += 1
        names = ["/".join(folder.parts[-depth:]) for folder in folders]
    return names


def _refuse_different_data(runs: Sequence[LoadedRun]) -> None:
    known = {one.name: one.environment.get("data", {}) for one in runs}
    prints = {about.get("fingerprint") for about in known.values()}
    if len(prints) > 1:
        listed = "\n".join(
            f"  {name}: {about.get('path')} ({str(about.get('fingerprint'))[:8]})" for name, about in known.items()
        )
        raise InputError(f"these runs are over different data, so their figures cannot stand side by side:\n{listed}")


def _grouped(runs: Sequence[LoadedRun]) -> tuple[SeedGroup, ...]:
    """Runs whose recipes differ by the seed alone, together; in the order in which they were given."""
    together: list[list[LoadedRun]] = []
    for one in runs:
        wanted = plain(one.recipe.with_seed(0))
        same = next((g for g in together if not differences(plain(g[0].recipe.with_seed(0)), wanted)), None)
        if same is None:
            together.append([one])
        else:
            same.append(one)
    names = [_without_seed(group[0].name) for group in together]
    if len(set(names)) < len(names):  # told apart by the whole folder name, then
        names = [group[0].name for group in together]
    return tuple(
        SeedGroup(name, number, tuple(sorted(group, key=lambda one: one.recipe.seed)))
        for number, (name, group) in enumerate(zip(names, together, strict=True))
    )


def _without_seed(name: str) -> str:
    """A run's name without its seed.

    >>> _without_seed("thumos14-rskp-seed0"), _without_seed("seed1")
    ('thumos14-rskp', 'seed1')
    """
    return re.sub(r"[-_.]?seed[-_]?\d+$", "", name) or name


def _repeated_seeds(groups: Sequence[SeedGroup]) -> list[str]:
    return [
        f"{group.name}: several runs have the seed {seed} ({', '.join(names)}); they count as if they were independent"
        for group in groups
        for seed in sorted({one.recipe.seed for one in group.runs})
        if len(names := [one.name for one in group.runs if one.recipe.seed == seed]) > 1
    ]


def _find_store(one: LoadedRun, data: Path | None) -> tuple[Store | None, list[str]]:
    about = one.environment.get("data", {})
    path = Path(data or about.get("path", ""))
    if data is None and not is_store(path):
        gone = (
            f"the data set {path} is not there, so there is nothing by class, by error or by video; --data STORE names "
            "the place it has moved to"
        )
        return None, [gone]
    store = Store.open(path)
    if store.fingerprint != about.get("fingerprint"):
        raise InputError(
            f"{path} is not the data set of {one.name}: its fingerprint is {store.fingerprint[:8]}, the run's "
            f"{str(about.get('fingerprint'))[:8]}"
        )
    return store, []
