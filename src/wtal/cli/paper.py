"""`wtal paper`: one of the paper's tables or figures, from training to the page."""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from wtal.cli import data_warnings_on_stderr
from wtal.cli.parse import run_command
from wtal.cli.progress import showing
from wtal.cli.table import print_table
from wtal.errors import InputError, MissingExtraError
from wtal.locks import held
from wtal.paper import EXPERIMENTS
from wtal.training.execution import Execution

if TYPE_CHECKING:
    from rich.console import Console

    from wtal.paper.experiment import Experiment
    from wtal.paper.plan import Plan, PlannedRun
    from wtal.paper.setting import Setting

    Name = str
else:
    Name = Literal[tuple(EXPERIMENTS)]


@dataclass(frozen=True)
class PaperOptions:
    """Which runs are made, and what is shown of them."""

    seeds: str = "0"
    """Seeds to run, such as 0,1,2; tables show mean and standard deviation over them."""
    reuse: tuple[Path, ...] = ()
    """Folders of further runs to look at before training; one that learned the same is taken."""
    videos: tuple[str, ...] = ()
    """Training videos for the qualitative figure; by default typical ones of the paper's classes."""
    fold: str | None = None
    """Such as 1/2: hold out the first half of the training videos and score on it, to choose settings without a look
    at the test videos; give each fold an --out of its own."""
    ambiguous: Path | None = None
    """Drop predictions that touch an interval of this list (Ambiguous_test.txt)."""
    dry_run: bool = False
    """Print what would be trained and what it costs, and stop."""
    as_is: bool = False
    """Train nothing: leave what no run is there for empty, and say so."""


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""

    def paper(
        experiment: tyro.conf.Positional[Name],
        data: Path,
        out: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
        recipe: str = "thumos14-gaufuse",
        recipes: Path | None = None,
        options: Annotated[PaperOptions, tyro.conf.arg(name="")] = PaperOptions(),  # noqa: B008  frozen
        execution: Annotated[Execution, tyro.conf.arg(name="")] = Execution(),  # noqa: B008  frozen
    ) -> None:
        """Train what a table or figure of the paper needs, then write it: Markdown, LaTeX, CSV, PNG, SVG and a page.

        Runs lie in OUT/runs. What they share is trained once, finished runs are found again, and after Ctrl-C or a
        kill the same command goes on. Settings of the test alone never train anything.

        Args:
            experiment: components, templates, temperature, plugin, qualitative and comparison are the paper's;
                thresholds, labels (how good the pseudo labels are) and ablation (one change of the labels' settings
                at a time) are not in it.
            data: Store of features, made by wtal data convert or wtal data synthesize.
            out: Folder for runs, tables and figures.
            recipe: The recipe whose variants are compared: a file, or the name of one that comes with wtal.
            recipes: Folder of the other models' recipes (plugin), named like thumos14-wum.yaml and
                thumos14-wum-gaufuse.yaml; by default those that come with wtal.
            options: Which runs are made, and what is shown of them.
            execution: Where and how runs are computed.
        """
        from wtal.cli.train import open_store
        from wtal.paper.setting import Setting
        from wtal.training.config import read_recipe, recipes_in, shipped_recipes

        for package in ("matplotlib", "torch"):
            if find_spec(package) is None:  # said now, not after the work is done
                raise MissingExtraError(package, "train", "report")
        others = shipped_recipes() if recipes is None else recipes_in(recipes)
        store = open_store(data, options.fold)
        setting = Setting(store, Path(recipe).stem, read_recipe(recipe), others, options.videos)
        _paper(experiment, setting, out, options, execution, shlex.join(["wtal", "paper", *arguments]))

    run_command(paper, "wtal paper", arguments)


def _paper(
    experiment: Name, setting: "Setting", out: Path, options: PaperOptions, execution: Execution, again: str
) -> None:
    from rich.console import Console

    from wtal.cli.train import interruptible
    from wtal.evaluate import read_ambiguous
    from wtal.named import look_up
    from wtal.paper.experiment import write_results
    from wtal.paper.plan import carry_out, make_plan
    from wtal.paper.trained import TrainedRuns

    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    store, seeds = setting.store, _numbers(options.seeds)
    chosen: Experiment = look_up(experiment, EXPERIMENTS, "experiment")
    intervals = None if options.ambiguous is None else read_ambiguous(options.ambiguous)
    for note in chosen.notes(setting):
        console.print(f"note: {note}")
    plan = make_plan(chosen.variants(setting), seeds, store, out / "runs", reuse=options.reuse)
    _print_plan(Console(highlight=False) if options.dry_run else console, plan)
    if options.dry_run:
        return
    # what is there so far may be looked at while another process trains
    with nullcontext() if options.as_is else held(out), data_warnings_on_stderr():
        if not options.as_is and plan.epochs_to_train:
            with interruptible(console, again), showing("epochs", main="training", note=_about_run) as progress:
                done = partial(_say_done, console)
                carry_out(plan, store, execution=execution, progress=progress, done=done)
        with showing("forward pass") as progress:
            trained = TrainedRuns(plan, store, seeds, intervals, progress=progress)
            written = write_results(experiment, chosen, setting, trained, out)
    for path in written:
        print(path)


def _say_done(console: "Console", job: "PlannedRun") -> None:
    console.print(f"done: {job.path}")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--seeds must be whole numbers with commas between them, such as 0,1,2; got {text!r}"
        ) from None


def _print_plan(console: "Console", plan: "Plan") -> None:

    rows = []
    for job in plan.jobs:
        state = job.state if job.state != "begun" else f"at epoch {job.epochs_done}"
        shared = str(job.base.recipe.epochs) if job.base is not None else ""
        time = _time(plan.seconds(job)) if job.epochs_to_train else "–"
        rows.append((job.path.name, state, shared, str(job.epochs_to_train), time))
    print_table(("run", "state", "shared", "to train", "time"), rows, title="runs", left=(0, 1), stderr=console.stderr)
    if not plan.epochs_to_train:
        console.print("nothing to train")
        return
    total, unpaced = _time(plan.seconds(*plan.jobs)), ", ".join(plan.unpaced)
    if not total:
        cost = "the time of an epoch is known once one is trained"
    else:
        cost = f"about {total} at the pace logged so far" + (f", without {unpaced}: no epoch logged" if unpaced else "")
    alone = f"{plan.alone} if each run was trained by itself"
    console.print(f"{plan.epochs_to_train} epochs to train ({alone}); {cost}")


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{max(minutes, 1)} min"


def _about_run(detail: Mapping[str, Any]) -> str:
    """The run that is going on, below the bar over all epochs of all runs."""
    return f"{detail['run']}: epoch {detail['epoch']} of {detail['epochs']}"
