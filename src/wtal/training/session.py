"""One training session: begin a run or go on with one, train to the end, write what came out."""

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import torch

from wtal.data.findings import some
from wtal.data.store import Store
from wtal.devices import choose_device
from wtal.errors import DataWarning, InputError, MissingExtraError
from wtal.formats import write_predictions
from wtal.localize import Card, Localizer
from wtal.models import MODELS, build
from wtal.models.protocol import Model
from wtal.named import look_up
from wtal.training import checkpoint
from wtal.training.checkpoint import State
from wtal.training.config import Recipe
from wtal.training.distributed import Group, process_group
from wtal.training.loop import Hooks, Status, fit
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
    device: str,
    resume: bool,
    threads: int | None,
    checkpoint_every_s: float,
    evaluate_every: int | None,
    tensorboard: bool,
    watch: Callable[[Status], Any],
) -> Run:
    """See `wtal.training.train`."""
    if evaluate_every is not None and evaluate_every < 1:
        raise InputError(f"--evaluate-every must be 1 epoch or more, got {evaluate_every}")
    if tensorboard and find_spec("tensorboard") is None:  # said before anything is written
        raise MissingExtraError("tensorboard", "tb")
    where = choose_device(device)
    recipe = _with_seed(recipe, run, seed, resume)
    if not resume and (run.path / "config.yaml").exists():
        raise InputError(f"{run.path} holds a run already: --resume goes on with it, --run DIR starts another")
    run.refuse_other_work(recipe, store)
    videos = Videos(store, recipe.train_split, where)
    _refuse_videos_without_tags(videos)
    _warn_of_classes_without_videos(videos)
    known = run.environment()
    # the order of sums depends on the number of threads, so a run keeps the one it began with
    threads = int(known["threads"]) if known else threads or torch.get_num_threads()
    with process_group(where) as group, _reproducible(where, threads):
        group.wait()  # no process may look at the folder after another has begun to write there
        state = _fresh_state(recipe, store, where)
        last = checkpoint.newest(run.checkpoints)
        if last is not None:
            checkpoint.load(last, state)
        group.wait()
        if group.leads:
            if known is None or not (run.path / "config.yaml").exists():
                about = describe_environment(store, recipe, threads=threads, device=where.type, processes=group.size)
                run.begin(recipe, about)
            run.rewind_log(state.epoch, state.generations.epoch)
        wanted = tensorboard and group.leads
        with curves(run.path) if wanted else nullcontext(_nothing) as draw:
            with _asked_to_stop() as stop:
                hooks = _hooks(run, recipe, state, videos, group, checkpoint_every_s, evaluate_every, stop, watch, draw)
                workers = threads if len(videos) > MANY_VIDEOS else 1
                fit(state, recipe, videos, hooks=hooks, group=group, workers=workers)
            if group.leads:
                _finish(run, recipe, store, state.model, watch)
                scores = {protocol: one["average"] for protocol, one in (run.evaluation or {}).items()}
                draw({"epoch": recipe.epochs, "event": "mAP", **scores})
    return run


def _nothing(_: Mapping[str, Any]) -> None:
    """Draw nothing."""


def _with_seed(recipe: Recipe, run: Run, seed: int | None, resume: bool) -> Recipe:
    if seed is None and resume:
        seed = run.begun_seed()
    return recipe if seed is None else recipe.with_seed(seed)


def _fresh_state(recipe: Recipe, store: Store, device: torch.device) -> State:
    options = model_options(recipe)
    torch.manual_seed(recipe.seed)
    model = build(
        recipe.model, len(store.classes), store.dimensions, stream_weights=recipe.stream_weights, **options
    ).to(device)
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
    group: Group,
    every_s: float,
    evaluate_every: int | None,
    stop: Callable[[], bool],
    watch: Callable[[Status], Any],
    draw: Callable[[Mapping[str, Any]], None],
) -> Hooks:
    if not group.leads:
        return Hooks(stop=stop)
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
        if evaluate_every and done % evaluate_every == 0 and done < recipe.epochs:
            _evaluate_on_the_way(log, recipe, videos.store, state.model, metrics["epoch"])

    return Hooks(
        save=save,
        save_due=lambda: time.monotonic() - saved_at >= every_s,
        targets_made=targets_made,
        epoch_ended=epoch_ended,
        stop=stop,
        watch=watch,
    )


def _localizer(recipe: Recipe, store: Store, model: Model) -> Localizer:
    card = Card(
        recipe.model,
        store.classes,
        store.dimensions,
        model_options(recipe),
        recipe.test.proposer,
        recipe.test.offset_snippets,
        recipe.stream_weights,
        recipe.test.segments,
        read_extraction(store.extraction),
    )
    return Localizer(model.eval(), card)


def _has_test_videos(recipe: Recipe, store: Store) -> bool:
    return any(record.split == recipe.test_split for record in store.records.values())


def _evaluate_on_the_way(
    log: Callable[[Mapping[str, Any]], None], recipe: Recipe, store: Store, model: Model, epoch: int
) -> None:
    """Log the scores of the model as it is, without any effect on training."""
    if not _has_test_videos(recipe, store):
        return
    scores = scored(_localizer(recipe, store, model).store(store, recipe.test_split), store, recipe)
    model.train()
    if scores is not None:
        averages = {protocol: one["average"] for protocol, one in scores.items()}
        log({"epoch": epoch, "event": "evaluation", "average": averages})


def _finish(run: Run, recipe: Recipe, store: Store, model: Model, watch: Callable[[Status], Any]) -> None:
    """Write the model, its predictions and their scores: of the last epoch, never of the best one."""
    localizer = _localizer(recipe, store, model)
    localizer.save(run.path)
    if not _has_test_videos(recipe, store):
        return  # one may train on tagged videos alone

    def track(names: tuple[str, ...]) -> Iterator[str]:
        for number, name in enumerate(names):
            watch(Status("predictions", recipe.epochs, recipe.epochs, number, len(names)))
            yield name

    found = localizer.store(store, recipe.test_split, track=track)
    write_predictions(run.path / "predictions.json", found, store.classes)
    run.evaluate(found, store, recipe)


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
