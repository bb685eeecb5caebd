"""`wtal train`: a recipe and a store in, a run's folder with a trained model out."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from wtal.cli.data import Tagging
from wtal.cli.parse import run_command
from wtal.cli.table import print_table
from wtal.errors import DataWarning, InputError, Interrupted
from wtal.training.execution import Device, Execution, leads, several
from wtal.video.extractor import ExtractorOptions

if TYPE_CHECKING:
    from rich.console import Console

    from wtal.data.store import Store
    from wtal.training import Recipe
    from wtal.training.run import Run


@dataclass(frozen=True)
class RunOptions:
    """Which run it is."""

    run: Path | None = None
    """Folder for all that comes out; by default runs/RECIPE-seedN."""
    seed: int | None = None
    """Takes the place of the recipe's seed."""
    resume: bool = False
    """Go on with the run in that folder, to the same result as if it had never stopped."""
    teacher: tuple[Path, ...] = ()
    """Of a detector: the finished runs that it learns from; or the recipe of one, which is trained first (into
    RECIPE-seedN beside the run's folder, and reused if it is there); by default the recipe's own."""
    corrections: Path | None = None
    """What wtal serve --edit has saved: the corrected training videos' segments are learned from, the tags of the
    others. With --resume a run keeps what it began with."""
    fold: str | None = None
    """Such as 1/4: hold out the first of four parts of the training videos and score on it, to choose settings without
    a look at the test videos."""

    def folder(self, recipe_path: Path, recipe: "Recipe") -> Path:
        """Where the run of a recipe is to be, unless it is said."""
        from wtal.training import default_run

        suffix = f"-fold{self.fold.replace('/', 'of')}" if self.fold else ""
        return default_run(recipe_path.stem + suffix, recipe.seed if self.seed is None else self.seed)


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""

    def train(
        recipe: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RECIPE")],
        data: Path | None = None,
        videos: Path | None = None,
        tags: Path | None = None,
        gt: Path | None = None,
        options: Annotated[ExtractorOptions, tyro.conf.arg(name="")] = ExtractorOptions(),  # noqa: B008  frozen
        skip_bad: bool = False,
        run: Annotated[RunOptions, tyro.conf.arg(name="")] = RunOptions(),  # noqa: B008  frozen
        execution: Annotated[Execution, tyro.conf.arg(name="")] = Execution(),  # noqa: B008  frozen
    ) -> None:
        """Train on videos that carry tags only, then localize and score the test videos.

        Either --data STORE, or --videos DIR --tags FILE, which extracts the videos' features first (wtal extract).
        Ctrl-C finishes the step and saves; --resume goes on. For several processes:
        torchrun --nproc-per-node N --no-python -- wtal train ...

        Args:
            recipe: YAML file with everything that decides what is learned, or the name of one that comes with wtal,
                such as demo or my-videos.
            data: Store of features, made by wtal extract, wtal data convert or wtal data synthesize; with --videos,
                where to keep their features, by default DIR-store.
            videos: Folder of video files to train on.
            tags: CSV video,label[,split] with one row per tag of a video.
            gt: ActivityNet-style JSON with the true instances of test videos, to score by.
            options: What turns videos into features.
            skip_bad: Leave videos that cannot be read out, and list them.
            run: Which run it is.
            execution: Where and how it is computed.
        """
        if videos is not None:
            tagging = Tagging(gt, tags)
            _check_before_extraction(recipe, run, tagging)
            data = _extracted(videos, data, tagging, options, execution.device, skip_bad=skip_bad)
        elif data is None or tags is not None or gt is not None or options != ExtractorOptions() or skip_bad:
            raise InputError("wanted --data STORE, or --videos DIR --tags FILE, which the other options belong to")
        _train(recipe, data, run, execution, arguments)

    run_command(train, "wtal train", arguments)


def _check_before_extraction(recipe_path: Path, options: RunOptions, tagging: Tagging) -> None:
    """Refuse now what training would refuse after hours of extraction."""
    import warnings

    from wtal.data.tags import read_tagged
    from wtal.formats import read_annotations
    from wtal.training import Run, read_recipe, teacher_recipe

    recipe = read_recipe(recipe_path)
    run = Run(options.run or options.folder(recipe_path, recipe))
    taught_by = options.teacher or run.first_stages(recipe)
    run.check_teachers(recipe, taught_by)
    for teacher in taught_by:
        teacher_recipe(teacher)
    if options.corrections is not None:
        read_annotations(options.corrections)
    if options.fold is not None:
        _fold(options.fold)
    table = tagging.tags or tagging.gt
    if table is None:
        raise InputError("--videos DIR needs --tags FILE, a CSV that says what each video shows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # extraction will say them
        videos = read_tagged(tagging.given()).videos.values()
    there = sorted({video.split for video in videos})
    if recipe.train_split not in there:
        raise InputError(
            f"{recipe_path} trains on the videos of split {recipe.train_split}, but {table} has {', '.join(there)}"
        )
    if not any(video.tags for video in videos if video.split == recipe.train_split):
        raise InputError(f"{table} has no tag for any video of split {recipe.train_split}: nothing to learn from")
    _check_run_folder(run, resume=options.resume)


def _check_run_folder(run: "Run", *, resume: bool) -> None:
    folder = run.path
    if not resume and run.begun:
        raise InputError(f"{folder} holds a run already: --resume goes on with it, --run DIR starts another")
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(f"cannot write the run {folder}: {there} is not a folder that you may write to; see --run")


def _extracted(
    videos: Path,
    store: Path | None,
    tagging: Tagging,
    options: ExtractorOptions,
    device: Device,
    *,
    skip_bad: bool,
) -> Path:
    """The store of the videos' features, made or brought up to date."""
    from wtal.cli.extract import extract

    if several():
        raise InputError("several processes would extract the same videos: run wtal extract first, then --data STORE")
    out = store or Path(f"{str(videos).rstrip('/')}-store")
    extract((videos,), out, tagging, options=options, device=device, skip_bad=skip_bad)
    return out


def _train(recipe_path: Path, data: Path, options: RunOptions, execution: Execution, arguments: Sequence[str]) -> None:
    from rich.console import Console

    from wtal.cli import data_warnings_on_stderr
    from wtal.training import read_recipe, train

    recipe = read_recipe(recipe_path)
    store = open_store(data, options.fold)
    folder = options.run or options.folder(recipe_path, recipe)
    again = shlex.join(["wtal", "train", *arguments, *([] if options.resume else ["--resume"])])
    with interruptible(Console(stderr=True), again), data_warnings_on_stderr():
        run = train(
            recipe,
            store,
            folder,
            seed=options.seed,
            resume=options.resume,
            teacher=options.teacher,
            corrections=options.corrections,
            execution=execution,
        )
    if leads():
        _print_result(run)


@contextmanager
def interruptible(console: "Console", again: str) -> Iterator[None]:
    """After Ctrl-C, once training has saved, say which command goes on, and end."""
    try:
        yield
    except KeyboardInterrupt as error:
        if not isinstance(error, Interrupted):
            raise
        if leads():
            console.print(f"stopped; everything is saved. To go on:\n  {again}", highlight=False, soft_wrap=True)
        sys.exit(130)


def _fold(text: str) -> tuple[int, int]:
    number, slash, of = text.partition("/")
    if not slash or not number.isdigit() or not of.isdigit():
        raise InputError(f"--fold is a part and their number, such as 1/4; got {text!r}")
    return int(number), int(of)


def open_store(path: Path, fold: str | None = None) -> "Store":
    """The store in a folder that --data names, or a fold of it; where it is none, how to make one of it."""
    from wtal.data.layouts import guess_layout
    from wtal.data.store import Store, is_store

    if is_store(path):
        return Store.open(path) if fold is None else Store.open(path).fold(*_fold(fold))
    if not path.exists():
        raise InputError(f"--data {path} does not exist")
    try:
        layout = f" --layout {guess_layout(path)}"
    except InputError:
        layout = ""
    made = f"{str(path).rstrip('/')}-store"
    raise InputError(
        f"{path} is not a store of features; make one:\n  wtal data convert {path}{layout} -o {made}\n"
        f"then --data {made}"
    )


def _print_result(run: "Run") -> None:
    from wtal.card import read_card
    from wtal.evaluate import headline

    scores = run.evaluation
    if scores:
        first = next(iter(scores.values()))
        shared = [t for t in first["tiou"] if all(t in one["tiou"] for one in scores.values())]
        rows = []
        for name, one in scores.items():
            at = dict(zip(one["tiou"], one["map"], strict=True))
            rows.append((name, *(f"{at[t]:.1f}" for t in shared), f"{headline(one['average'])[1]:.1f}"))
        head = ("protocol", *(f"{t:g}" for t in shared), "average")
        print_table(head, rows, title="test videos, last epoch: mAP in percent")
    else:
        print("no score: the store has no test videos with true instances (give them with --gt FILE to get one)")
    what = ["model/", "predictions.json", "evaluation.json", "metrics.jsonl"]
    there = ", ".join(name for name in what if (run.path / name).exists())
    print(f"{run.path}: {there}")
    card = read_card(run.path)
    if card.calibration is not None:
        off = (
            "" if card.calibration.error is None else f", off by {card.calibration.error:.0f} points (cross-validated)"
        )
        print(f"confidence of classes: by {card.calibration.source}, {card.calibration.videos} videos{off}")
    what_in = "VIDEO.mp4" if card.extraction is not None else "--features STORE -o found.json"
    print(f"use it:  wtal localize {run.path} {what_in}")
