"""One training session: begin a run or go on with one, train to the end, write what came out."""

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from wtal.data.store import Store
from wtal.devices import choose_device
from wtal.errors import DataWarning, InputError, some
from wtal.files import copy_whole
from wtal.formats import write_predictions
from wtal.localize import Card, Localizer, model_folder, read_card
from wtal.models import MODELS, build
from wtal.models.protocol import Model
from wtal.named import look_up
from wtal.progress import Progress, adapted
from wtal.training import checkpoint
from wtal.training.boxes import read_boxes, write_boxes
from wtal.training.checkpoint import State
from wtal.training.confidence import fitted_confidence, folds_to_train, remove_folds
from wtal.training.config import Recipe
from wtal.training.distributed import process_group
from wtal.training.execution import Execution
from wtal.training.loop import Hooks, fit
from wtal.training.relabel import Generation, write_generation
from wtal.training.run import Run, describe_environment, scored
from wtal.training.tensorboard import curves
from wtal.training.videos import Videos
from wtal.typed import parse_options
from wtal.video.extractor import read_extraction

#: from so many videos on, processes that make labels are worth their start
MANY_VIDEOS = 4000


def session(
    recipe: Recipe,
    store: Store,
    run: Run,
    *,
    seed: int | None,
    resume: bool,
    teacher: Path | None,
    execution: Execution,
    progress: Progress,
) -> Run:
    """See `wtal.training.train`."""
    where = choose_device(execution.device)
    recipe = _with_seed(recipe, run, seed, resume)
    if not resume and run.begun:
        raise InputError(f"{run.path} holds a run already: --resume goes on with it, --run DIR starts another")
    run.refuse_other_work(recipe, store)
    _refuse_wrong_teacher(recipe, store, run, teacher)
    videos = Videos(store, recipe.train_split, where)
    _refuse_videos_without_tags(videos)
    _warn_of_classes_without_videos(videos)
    _train_folds(recipe, store, run, execution, progress)
    known = run.environment()
    # the order of sums depends on the number of threads, so a run keeps the one it began with
    threads = int(known["threads"]) if known else execution.threads or torch.get_num_threads()
    with process_group(where) as group, _reproducible(where, threads):
        group.wait()  # no process may look at the folder after another has begun to write there
        state = _fresh_state(recipe, store, where)
        last = checkpoint.newest(run.checkpoints)
        if last is not None:
            checkpoint.load(last, state)
        group.wait()
        if group.leads:
            if known is None:
                about = describe_environment(store, recipe, threads=threads, device=where.type, processes=group.size)
                run.begin(recipe, about)
            if teacher is not None:
                _take_teacher(run, recipe, store, teacher, execution.device, progress)
            run.rewind_log(state.epoch, state.generations.epoch)
        if recipe.boxes is not None:
            group.wait()
            videos.boxes = read_boxes(run.boxes, store, recipe.train_split)
        wanted = execution.tensorboard and group.leads
        with curves(run.path) if wanted else nullcontext(_nothing) as draw:
            with _asked_to_stop() as stop:
                hooks = Hooks(stop=stop)
                if group.leads:
                    hooks = _hooks(run, recipe, state, videos, execution, stop, progress, draw)
                workers = threads if len(videos) > MANY_VIDEOS else 1
                fit(state, recipe, videos, hooks=hooks, group=group, workers=workers)
            if group.leads:
                _finish(run, recipe, store, state.model, progress)
                scores = {protocol: one["average"] for protocol, one in (run.evaluation or {}).items()}
                draw({"epoch": recipe.epochs, "event": "mAP", **scores})
        group.wait()  # the processes leave together: one that goes while others are still connected may be aborted
    return run


def _train_folds(recipe: Recipe, store: Store, run: Run, execution: Execution, progress: Progress) -> None:
    """Train the models whose held-out videos confidence is fitted to, those that are not there yet."""
    asked = replace(recipe, train_split="train", test_split="test", test=replace(recipe.test, confidence_folds=0))
    quiet = replace(execution, evaluate_every=None, tensorboard=False)
    for part, fold in folds_to_train(recipe, store, run):
        heard = adapted(progress, held_out=part.part)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # a part may lack a class of which there is one video
            session(asked, part, fold, seed=None, resume=True, teacher=None, execution=quiet, progress=heard)


def _nothing(_: Mapping[str, Any]) -> None:
    """Draw nothing."""


def _with_seed(recipe: Recipe, run: Run, seed: int | None, resume: bool) -> Recipe:
    if seed is None and resume and run.begun:
        seed = run.recipe.seed
    return recipe if seed is None else recipe.with_seed(seed)


def _fresh_state(recipe: Recipe, store: Store, device: torch.device) -> State:
    options = model_options(recipe)
    torch.manual_seed(recipe.seed)
    n, d = len(store.classes), store.dimensions
    model = build(recipe.model, n, d, streams=store.streams, stream_weights=recipe.stream_weights, **options).to(device)
    asked = recipe.optimizer
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[asked.name]
    optimizer = kind(
        model.parameters(),
        lr=recipe.rate_at(0),
        betas=asked.betas,
        eps=asked.eps,
        weight_decay=asked.weight_decay,
        fused=True,
    )
    return State(model, optimizer)


def model_options(recipe: Recipe) -> dict[str, Any]:
    """The recipe's model options, checked against what the model takes."""
    make = look_up(recipe.model, MODELS, "model")
    return parse_options(make, recipe.model_options, "model_options", skipped=2)


def _hooks(
    run: Run,
    recipe: Recipe,
    state: State,
    videos: Videos,
    execution: Execution,
    stop: Callable[[], bool],
    progress: Progress,
    draw: Callable[[Mapping[str, Any]], None],
) -> Hooks:
    """What the leading process does beside learning."""
    saved_at = time.monotonic()

    def save() -> None:
        nonlocal saved_at
        checkpoint.save(run.checkpoints, state)
        saved_at = time.monotonic()

    def targets_made(made: Generation, epoch: int) -> None:
        write_generation(run.targets(epoch), made, videos, background=recipe.targets.background)
        counts = {"instances": sum(map(len, made.instances)), "programs": made.n_programs, "elastic": made.n_elastic}
        log({"epoch": epoch, "event": "labels", **counts})

    def log(line: Mapping[str, Any]) -> None:
        run.log(line)
        draw(line)

    def epoch_ended(metrics: dict[str, Any]) -> None:
        log(metrics)
        done = metrics["epoch"] + 1
        if execution.evaluate_every and done % execution.evaluate_every == 0 and done < recipe.epochs:
            _evaluate_on_the_way(log, run, recipe, videos.store, state.model, metrics["epoch"])

    return Hooks(
        save=save,
        save_due=lambda: time.monotonic() - saved_at >= execution.checkpoint_every_s,
        targets_made=targets_made,
        epoch_ended=epoch_ended,
        stop=stop,
        progress=progress,
    )


def _localizer(run: Run, recipe: Recipe, store: Store, model: Model) -> Localizer:
    card = Card(
        recipe.model,
        store.classes,
        store.dimensions,
        model_options=model_options(recipe),
        proposer=recipe.test.proposer,
        timebase=store.clock,
        offset_snippets=recipe.test.offset_snippets,
        stream_weights=recipe.stream_weights,
        segments=recipe.test.segments,
        extraction=read_extraction(store.extraction),
        pool=recipe.test.pool,
        streams=store.streams,
    )
    return Localizer(model.eval(), card, None if recipe.test.pool is None else Localizer.load(run.teacher))


def _evaluate_on_the_way(
    log: Callable[[Mapping[str, Any]], None], run: Run, recipe: Recipe, store: Store, model: Model, epoch: int
) -> None:
    """Log the scores of the model as it is, without any effect on training."""
    if not store.has_split(recipe.test_split):
        return
    scores = scored(_localizer(run, recipe, store, model).store(store, recipe.test_split), store, recipe)
    model.train()
    if scores:
        averages = {protocol: one["average"] for protocol, one in scores.items()}
        log({"epoch": epoch, "event": "evaluation", "average": averages})


def _finish(run: Run, recipe: Recipe, store: Store, model: Model, progress: Progress) -> None:
    """Write the model, its predictions and their scores: of the last epoch, never of the best one."""
    localizer = _localizer(run, recipe, store, model)
    found = None
    if store.has_split(recipe.test_split):  # one may train on tagged videos alone
        heard = adapted(progress, "predictions", epoch=recipe.epochs)
        found = localizer.store(store, recipe.test_split, progress=heard)
        write_predictions(run.path / "predictions.json", found, store.classes)
    card = replace(localizer.card, calibration=fitted_confidence(run, recipe, store, found))
    replace(localizer, card=card).save(run.path)
    run.evaluate(found or {}, store, recipe)
    remove_folds(run)


def _refuse_wrong_teacher(recipe: Recipe, store: Store, run: Run, teacher: Path | None) -> None:
    """Make sure that a detector has a teacher that knows the same classes and features, and no other model has one."""
    run.check_teacher(recipe, teacher)
    if teacher is None:
        return
    card = read_card(teacher)
    if card.classes != store.classes or card.dimensions != store.dimensions:
        raise InputError(
            f"the teacher {teacher} knows {len(card.classes)} classes and {card.dimensions} dimensions, the store "
            f"{store.path} has {len(store.classes)} and {store.dimensions}; they must be the same, in the same order"
        )


def _take_teacher(run: Run, recipe: Recipe, store: Store, teacher: Path, device: str, progress: Progress) -> None:
    """Copy the teacher into the run, which then needs nothing from elsewhere, and write down its boxes."""
    if recipe.boxes is None or run.boxes.exists():
        return
    copy_whole(model_folder(teacher), run.teacher)
    localizer = Localizer.load(run.teacher, device=device)
    write_boxes(run.boxes, localizer, store, recipe.train_split, recipe.boxes, progress=adapted(progress, epoch=0))


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


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or a polite kill has come; the second one ends the program at once, as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread hears signals
        return
    asked = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def hear(*_: Any) -> None:
        asked.set()
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, hear)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _reproducible(device: torch.device, threads: int) -> Iterator[None]:
    """The same sums in the same order every time: as many threads as the run began with, deterministic kernels."""
    switches: Any = torch.utils.deterministic
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), switches.fill_uninitialized_memory
    torch.set_num_threads(threads)
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        switches.fill_uninitialized_memory = False  # it costs time and changes no result
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])
        switches.fill_uninitialized_memory = before[2]
