"""The training loop, to be read from top to bottom."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wtal.engine import LOCAL, Engine
from wtal.errors import InputError, Interrupted
from wtal.losses import signed_cross_entropy
from wtal.models.protocol import Batch, Output
from wtal.progress import Progress, adapted, silent
from wtal.pseudo.delta import Stage
from wtal.training.checkpoint import State
from wtal.training.config import Recipe
from wtal.training.distributed import ALONE, Group, Share
from wtal.training.relabel import Generation, relabel, target
from wtal.training.videos import Batches, Videos, shuffled, video_seeds


@dataclass(frozen=True)
class Hooks:
    """What the loop does beside learning: all of it may be nothing."""

    save: Callable[[], Any] = lambda: None
    """Write a checkpoint now."""
    save_due: Callable[[], bool] = lambda: False
    """Whether it is time to write one."""
    targets_made: Callable[[Generation, int], Any] = lambda *_: None
    step_ended: Callable[[], Any] = lambda: None
    epoch_ended: Callable[[dict[str, Any]], Any] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    """Whether somebody wants training to end after this step."""
    progress: Progress = silent


def fit(
    state: State,
    recipe: Recipe,
    videos: Videos,
    *,
    hooks: Hooks,
    group: Group = ALONE,
    workers: int = 1,
    engine: Engine = LOCAL,
) -> None:
    """Train from where `state` stands to the recipe's last epoch."""
    model, schedule, size = state.model.train(), recipe.schedule, recipe.batch_videos
    n_steps = math.ceil(len(videos) / size)
    if not (state.epoch or state.step):
        model.begin(Batches(videos))

    def report(epoch: int, losses: Mapping[str, float]) -> None:
        at = {"epoch": epoch, "step": state.step, "steps": n_steps}
        hooks.progress("training", epoch + state.step / n_steps, recipe.epochs, {**at, **losses})

    report(state.epoch, {})
    for epoch in range(state.epoch, recipe.epochs):
        begun = time.perf_counter()
        making = schedule.relabels(epoch)
        if making and state.generations.epoch != epoch:
            renew_targets(state, recipe, videos, making, hooks=hooks, group=group, workers=workers, engine=engine)
            hooks.save()
        stage = schedule.active(epoch)
        for parameters in state.optimizer.param_groups:
            parameters["lr"] = recipe.rate_at(epoch)
        state.order = state.order or shuffled(len(videos), seed=recipe.seed, epoch=epoch)

        for number in range(state.step, n_steps):
            numbers = state.order[number * size : (number + 1) * size]
            losses, stops = step(state, recipe, videos, numbers, epoch, stage, stop=hooks.stop, group=group)
            state.step = number + 1
            for name, value in losses.items():
                state.totals[name] = state.totals.get(name, 0.0) + value
            done = min(state.step * size, len(videos))
            means = {name: value / done for name, value in state.totals.items()}
            report(epoch, means)
            hooks.step_ended()
            if stops:
                hooks.save()
                raise Interrupted
            if state.step < n_steps and hooks.save_due():
                hooks.save()

        model.end_epoch(epoch, Batches(videos))
        means = {name: value / len(videos) for name, value in state.totals.items()}
        metrics = {"epoch": epoch, "loss": sum(means.values()), **means, "learning_rate": recipe.rate_at(epoch)}
        if stage:
            metrics["pseudo_weight"] = stage.weight_at(epoch)
        hooks.epoch_ended({**metrics, "seconds": round(time.perf_counter() - begun, 3)})
        state.epoch, state.step, state.order, state.totals = epoch + 1, 0, None, {}
        if state.epoch == recipe.epochs or hooks.save_due():
            hooks.save()


def step(
    state: State,
    recipe: Recipe,
    videos: Videos,
    numbers: Sequence[int],
    epoch: int,
    stage: Stage | None,
    *,
    stop: Callable[[], bool],
    group: Group,
) -> tuple[dict[str, float], bool]:
    """One step of the optimizer on these videos: its losses, summed over videos and processes, and whether to stop."""
    model = state.model
    lengths = [videos.lengths[number] for number in numbers]
    share = group.share(numbers, [min(length, recipe.sampling.segments or length) for length in lengths])
    batch, snippets = _seen(videos, share, recipe, epoch)
    output = model(batch)
    losses = model.losses(output, batch, epoch)
    places = videos.rows(share.videos, snippets)
    taught = None
    if videos.taught is not None and recipe.boxes is None and epoch >= recipe.corrections.from_epoch:
        taught = videos.taught[places].toarray()
        losses["corrected"] = recipe.corrections.weight * pseudo_loss(output, batch, taught)
    if stage:
        rows = target(stage, state.generations, recipe.targets, places)
        if taught is not None:  # what people say takes the place of what the model believes
            rows[taught.any(axis=1)] = 0.0
        losses["pseudo"] = stage.weight_at(epoch) * pseudo_loss(output, batch, rows)
    total = torch.stack(list(losses.values())).sum() / (len(numbers) if recipe.reduction == "mean" else 1)
    (share.counts * total).backward()  # type: ignore[no-untyped-call]
    values = [float(loss.detach()) if share.counts else 0.0 for loss in losses.values()]
    *values, stops = group.sum_gradients(model.parameters(), [*values, float(stop())])
    summed = dict(zip(losses, values, strict=True))
    _refuse_not_finite(summed, epoch, state.step, [videos.names[number] for number in numbers])
    if recipe.optimizer.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.optimizer.clip_norm)
    state.optimizer.step()
    state.optimizer.zero_grad()
    model.end_step(output, batch, epoch)
    return summed, bool(stops)


def _seen(videos: Videos, share: Share, recipe: Recipe, epoch: int) -> tuple[Batch, list[Int[np.ndarray, " _"]]]:
    """This process's part of a step's videos, and which of its snippets are seen of each."""
    seeds = video_seeds(recipe.seed, epoch, share.videos)
    snippets = videos.sampled(share.videos, seeds, recipe.sampling)
    batch = videos.batch(share.videos, seeds=seeds, snippets=snippets if recipe.sampling.segments else None)
    batch = replace(batch, places=tuple(share.places))
    return batch if share.counts else batch.untagged(), snippets


def pseudo_loss(output: Output, batch: Batch, rows: Float[np.ndarray, "n c"]) -> Float[Tensor, ""]:
    """The pseudo-label loss (Eq. 9) on all logits that the model offers, by their shares, summed over videos.

    A last column of `rows` that is background is left out where the model has no logit for it.
    """
    wanted = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)).to(batch.features.device)
    parts = [
        part.weight
        * signed_cross_entropy(
            part.logits, wanted[:, : part.logits.shape[1]], batch.lengths, bounded=part.bounded
        ).sum()
        for part in output.supervised
    ]
    return torch.stack(parts).sum()


def renew_targets(
    state: State,
    recipe: Recipe,
    videos: Videos,
    stage: Stage,
    *,
    hooks: Hooks,
    group: Group,
    workers: int,
    engine: Engine,
) -> None:
    """Make the targets of a new generation, each process those of its part of the videos."""
    made = relabel(
        state.model,
        videos,
        recipe,
        stage,
        group=group,
        workers=workers,
        engine=engine,
        progress=adapted(hooks.progress, epoch=stage.from_epoch),
    )
    hooks.targets_made(made, stage.from_epoch)
    state.generations = state.generations.renewed(made.targets, stage.from_epoch)
    state.model.targets_changed()


def _refuse_not_finite(losses: Mapping[str, float], epoch: int, step: int, names: list[str]) -> None:
    if not all(map(math.isfinite, losses.values())):
        listed = ", ".join(f"{name} {value:g}" for name, value in losses.items())
        raise InputError(
            f"epoch {epoch}, step {step}: the loss is not finite ({listed}); videos {', '.join(names)}. Check the data "
            "with wtal data check, or lower learning_rate or the weight of the pseudo labels"
        )
