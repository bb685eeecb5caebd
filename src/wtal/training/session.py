"""One training session: begin a run or go on with one, train to the end, write what came out."""

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from wtal.card import Card
from wtal.data.store import Store
from wtal.devices import choose_device
from wtal.engine import EngineOptions
from wtal.errors import DataWarning, InputError
from wtal.formats import write_predictions
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.machine import keeping_memory
from wtal.models import MODELS, build
from wtal.models.protocol import Model
from wtal.named import look_up
from wtal.pool import Pooling
from wtal.progress import Progress, adapted, silent
from wtal.training import checkpoint
from wtal.training.boxes import find_boxes, read_boxes
from wtal.training.checkpoint import State
from wtal.training.confidence import fitted_confidence, folds_to_train, remove_folds
from wtal.training.config import BoxSettings, Recipe
from wtal.training.corrections import fingerprint, on_grid, write_corrections
from wtal.training.distributed import Group, process_group
from wtal.training.execution import Execution
from wtal.training.loop import Hooks, fit
from wtal.training.relabel import Generation, write_generation
from wtal.training.run import Run, describe_environment, scored
from wtal.training.start import Start, beginning_of
from wtal.training.tensorboard import curves
from wtal.training.videos import Videos
from wtal.typed import parse_options
from wtal.video.extractor import read_extraction

#: from so many videos on, processes that make labels are worth their start
MANY_VIDEOS = 4000


@contextmanager
def in_group(execution: Execution) -> "Iterator[Session]":
    """Sessions of this process, together with those of the processes that torchrun has started beside it."""
    where = choose_device(execution.device)
    with process_group(where) as group:
        yield Session(group, where, execution)
        group.wait()  # the processes leave together: one that goes while others are still connected may be aborted


@dataclass(frozen=True)
class Session:
    """What trains: see `wtal.training.train`."""

    group: Group
    where: torch.device
    execution: Execution

    def __call__(
        self,
        recipe: Recipe,
        store: Store,
        run: Run,
        *,
        seed: int | None,
        resume: bool,
        teachers: Sequence[Path],
        corrections: Path | None,
        progress: Progress,
    ) -> Run:
        """Begin a run or go on with one, and train it to the end."""
        begins = None
        if self.group.leads:
            begins = beginning_of(recipe, store, run, seed, resume, teachers, corrections, self.execution)
        start: Start = self.group.told(begins)
        if store.fingerprint != start.data:
            raise InputError(f"{store.path} is not the data set that the leading process has; copy it from there")
        self._train_folds(start.recipe, store, run, progress)
        corrected = on_grid(start.corrected, store, start.recipe.test.offset_snippets)
        videos = Videos(store, start.recipe.train_split, self.where, corrected=corrected)
        with keeping_memory() as release, _reproducible(self.where, start.threads):
            _train(
                run,
                videos,
                start,
                teachers=teachers,
                corrections=corrections,
                execution=self.execution,
                progress=progress,
                group=self.group,
                step_ended=release,
            )
        return run

    def _train_folds(self, recipe: Recipe, store: Store, run: Run, progress: Progress) -> None:
        """Train the models whose held-out videos confidence is fitted to, those that are not there yet."""
        asked = replace(recipe, train_split="train", test_split="test", test=replace(recipe.test, confidence_folds=0))
        quiet = replace(self, execution=replace(self.execution, evaluate_every=None, tensorboard=False))
        todo = [part.part for part, _ in folds_to_train(recipe, store, run)] if self.group.leads else []
        for part in self.group.told(todo):
            number, of = map(int, part.split("/"))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # a part may lack a class of which there is one video
                quiet(
                    asked,
                    store.fold(number, of, split=recipe.train_split),
                    run.fold(number, of),
                    seed=None,
                    resume=True,
                    teachers=(),
                    corrections=None,  # a corrected video may be among those that are held out: tags alone
                    progress=adapted(progress, held_out=part),
                )


def _train(
    run: Run,
    videos: Videos,
    start: Start,
    *,
    teachers: Sequence[Path],
    corrections: Path | None,
    execution: Execution,
    progress: Progress,
    group: Group,
    step_ended: Callable[[], None],
) -> None:
    recipe, store, where = start.recipe, videos.store, videos.device
    state = _fresh_state(recipe, store, where)
    if start.checkpoint is not None:
        checkpoint.restore(
            group.told(checkpoint.read(start.checkpoint) if group.leads else None), state, start.checkpoint
        )
    if group.leads:
        if not start.begun:
            kind, size = where.type, group.size
            about = describe_environment(store, recipe, threads=start.threads, device=kind, processes=size)
            if corrections is not None:
                write_corrections(run.corrections, start.corrected, store)
                said = fingerprint(start.corrected)
                about["corrections"] = {"path": str(corrections.resolve()), "fingerprint": said}
            run.begin(recipe, about)
        run.rewind_log(state.epoch, state.generations.epoch)
    if recipe.boxes is not None:
        videos.boxes = _boxes(run, recipe, recipe.boxes, videos, start.corrected, teachers, progress, group)
    wanted = execution.tensorboard and group.leads
    with curves(run.path) if wanted else nullcontext(_nothing) as draw:
        with _asked_to_stop() as stop:
            hooks = Hooks(stop=stop)
            if group.leads:
                hooks = _hooks(run, recipe, state, videos, execution, stop, progress, draw)
            hooks = replace(hooks, step_ended=step_ended)
            workers = start.threads if len(videos) > MANY_VIDEOS else 1
            engine = EngineOptions(execution.engine, execution.address).open().ready()
            workers = 1 if engine.remote else workers  # there are processes enough
            fit(state, recipe, videos, hooks=hooks, group=group, workers=workers, engine=engine)
        if group.leads:
            _finish(run, recipe, store, state.model, progress)
            scores = {protocol: one["average"] for protocol, one in (run.evaluation or {}).items()}
            draw({"epoch": recipe.epochs, "event": "mAP", **scores})


def _nothing(_: Mapping[str, Any]) -> None:
    """Draw nothing."""


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
    teachers = () if recipe.test.pool is None else tuple(map(Localizer.load, run.teachers))
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
        teachers=len(teachers) or 1,
        streams=store.streams,
    )
    return Localizer(model.eval(), card, teachers)


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


def _boxes(
    run: Run,
    recipe: Recipe,
    settings: BoxSettings,
    videos: Videos,
    corrected: Mapping[str, Instances],
    teachers: Sequence[Path],
    progress: Progress,
    group: Group,
) -> tuple[Instances, ...]:
    """What a detector is taught: its teachers' boxes, each process finds those of its part of the videos."""
    if group.told(not run.boxes.exists()):
        if group.leads and teachers:
            run.take_teachers(teachers)
        loaded = [Localizer.load(one, device="cpu") for one in run.teachers] if group.leads else []
        localizers: list[Localizer] = group.told(loaded)
        for one in localizers:
            one.to(videos.device)
        pool = recipe.test.pool or Pooling()
        heard = adapted(progress if group.leads else silent, epoch=0)
        mine = group.part(videos.lengths)
        found = group.gathered(
            find_boxes(localizers, videos, mine, settings, pool, corrected=corrected, progress=heard)
        )
        if group.leads:
            boxes = {name: one for part in found for name, one in part.items()}
            write_predictions(run.boxes, boxes, videos.store.classes)
    told: tuple[Instances, ...] = group.told(
        read_boxes(run.boxes, videos.store, recipe.train_split, offset_snippets=recipe.test.offset_snippets)
        if group.leads
        else None
    )
    return told


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
