"""Checkpoints: all the state that makes a run resumable to the same bits, written atomically.

A checkpoint is a folder `epoch-0012-step-0003` with state.safetensors (weights, optimizer, label generations, random
generators) and state.json (position and order in the epoch, losses so far). It is written beside its place and
renamed; the newest two are kept. Nothing is pickled, so a checkpoint from elsewhere cannot run code.
"""

import errno
import json
import os
import random
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from wtal.errors import InputError
from wtal.formats.targets import from_parts, to_parts
from wtal.models.protocol import Model
from wtal.reading import read_json, refusing
from wtal.training.relabel import Generations

KEPT = 2


@dataclass(eq=False)
class State:
    """Everything that changes while a run learns."""

    model: Model
    optimizer: torch.optim.Optimizer
    epoch: int = 0
    step: int = 0
    order: list[int] | None = None
    totals: dict[str, float] = field(default_factory=dict)
    generations: Generations = field(default_factory=Generations)


def save(folder: Path, state: State) -> Path:
    """Write a checkpoint into `folder` and drop all but the newest two."""
    path = folder / f"epoch-{state.epoch:04d}-step-{state.step:04d}"
    beside, aside = (folder / f".{path.name}.{kind}" for kind in ("partial", "replaced"))
    tensors, position = _packed(state)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        save_file(tensors, beside / "state.safetensors")
        (beside / "state.json").write_text(json.dumps(position), encoding="utf-8")
        for entry in (*beside.iterdir(), beside):
            _to_disk(entry)
        if path.exists():  # of the same step, before its new targets: never half of it under its name
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
        beside.rename(path)
        _to_disk(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise InputError(f"cannot write the checkpoint {path}: {_why(error)}. {_remaining(folder)}") from error
    tidy(folder)
    return path


def tidy(folder: Path) -> None:
    """Drop all but the newest two, and what a killed process has left; one that it was about to replace is back."""
    for aside in folder.glob(".*.replaced"):
        place = folder / aside.name[1:].removesuffix(".replaced")
        if not place.exists():
            aside.rename(place)
    for old in (*folder.glob(".*"), *_finished(folder)[:-KEPT]):
        shutil.rmtree(old, ignore_errors=True)


def newest(folder: Path) -> Path | None:
    """The newest whole checkpoint, if there is one."""
    found = _finished(folder)
    return found[-1] if found else None


Saved = tuple[dict[str, Tensor], dict[str, Any]]


def load(path: Path, state: State) -> None:
    """Bring `state` and all random generators to where the checkpoint was written."""
    restore(read(path), state, path)


def read(path: Path) -> Saved:
    """What a checkpoint holds."""
    with _refusing(path):
        return load_file(path / "state.safetensors"), read_json(path / "state.json")


def restore(saved: Saved, state: State, path: Path) -> None:
    """Bring `state` and all random generators to where the checkpoint in `path` was written, which was read."""
    with _refusing(path):
        _unpack(*saved, state)


def _refusing(path: Path) -> AbstractContextManager[None]:
    then = "; delete that folder, and `resume=True` goes on from the one before it"
    return refusing(path, "is a checkpoint that is damaged or of another model", then)


def _packed(state: State) -> Saved:
    tensors = {f"model.{name}": value for name, value in state.model.state_dict().items()}
    optimizer = state.optimizer.state_dict()
    scalars: dict[str, dict[str, Any]] = {}
    for number, values in optimizer["state"].items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{number}.{name}"] = value
            else:
                scalars.setdefault(str(number), {})[name] = value
    generations = state.generations
    for name, labels in (("now", generations.now), ("before", generations.before)):
        if labels is not None:
            for part, values in to_parts(labels).items():
                tensors[f"labels.{name}.{part}"] = torch.from_numpy(values)
    tensors["random.torch"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    kind, keys, *numpy_rest = np.random.get_state(legacy=True)  # noqa: NPY002  a user's model may use it
    tensors["random.numpy"] = torch.from_numpy(np.asarray(keys).astype(np.int64))
    position = {
        "epoch": state.epoch,
        "step": state.step,
        "order": state.order,
        "totals": state.totals,
        "targets_epoch": generations.epoch,
        "targets_width": None if generations.now is None else generations.now.shape[1],
        "optimizer_groups": optimizer["param_groups"],
        "optimizer_scalars": scalars,
        "random_python": random.getstate(),
        "random_numpy": [kind, *numpy_rest],
    }
    # safetensors refuses views of one memory, and a checkpoint has to fit any device
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}, position


def _unpack(tensors: dict[str, Tensor], position: dict[str, Any], state: State) -> None:
    model = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
    state.model.load_state_dict(model)
    values: dict[int, dict[str, Any]] = {int(n): dict(rest) for n, rest in position["optimizer_scalars"].items()}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            values.setdefault(int(number), {})[key] = tensor
    groups = position["optimizer_groups"]
    _refuse_other_optimizer(state.optimizer, groups, values)
    state.optimizer.load_state_dict({"state": values, "param_groups": groups})
    labels: dict[str, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        if name.startswith("labels."):
            _, which, part = name.split(".")
            labels.setdefault(which, {})[part] = tensor.numpy()
    made = {which: from_parts(parts, position["targets_width"]) for which, parts in labels.items()}
    state.generations = Generations(made.get("now"), made.get("before"), position["targets_epoch"])
    state.epoch, state.step, state.order = position["epoch"], position["step"], position["order"]
    state.totals = position["totals"]
    _refuse_wrong_position(state)
    torch.set_rng_state(tensors["random.torch"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
    version, internal, gauss = position["random_python"]
    random.setstate((version, tuple(internal), gauss))
    kind, *rest = position["random_numpy"]
    if type(rest[0]) is not int or not 0 <= rest[0] <= 624:  # numpy takes any, and reads beyond its state
        raise ValueError(f"numpy's random generator is at {rest[0]} of 624")
    np.random.set_state((kind, tensors["random.numpy"].numpy().astype(np.uint32), *rest))  # noqa: NPY002


def _refuse_other_optimizer(
    optimizer: torch.optim.Optimizer, groups: list[dict[str, Any]], values: dict[int, dict[str, Any]]
) -> None:
    """Refuse settings and moments that the optimizer would take now and fail over at its next step."""
    for was, now in zip(groups, optimizer.param_groups, strict=True):
        if other := {*was} ^ {*now}:
            raise ValueError(f"it is of another optimizer, with {min(other)} or without")
        for key in sorted({*was} - {"params"}):
            kinds = [_kind(group[key]) for group in (was, now)]
            if kinds[0] != kinds[1]:
                raise ValueError(f"the optimizer's {key} is {was[key]!r}")
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    known = {"step", "exp_avg", "exp_avg_sq"}  # Adam's and AdamW's
    for number, entry in values.items():
        if lacking := known - {*entry}:
            raise ValueError(f"the optimizer's {min(lacking)} of parameter {number} is missing")
        for key, value in entry.items():
            shape = tuple(value.shape) if isinstance(value, Tensor) else ()
            if shape not in ((), tuple(parameters[number].shape)) or key not in known:
                raise ValueError(f"the optimizer's {key} of parameter {number} has shape {shape}")


def _kind(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_kind(one) for one in value]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)


def _refuse_wrong_position(state: State) -> None:
    order, totals = state.order, state.totals
    if not all(type(number) is int and number >= 0 for number in (state.epoch, state.step)):
        raise ValueError(f"it is at epoch {state.epoch!r}, step {state.step!r}")
    if order is not None and sorted(order) != list(range(len(order))):
        raise ValueError("its order of the videos does not have each of them once")
    if not all(_kind(value) == "number" for value in totals.values()):
        raise ValueError(f"its losses so far are {totals}")


def _finished(folder: Path) -> list[Path]:
    """Whole checkpoints, oldest first."""
    return sorted(folder.glob("epoch-*-step-*"), key=lambda path: [int(part) for part in path.name.split("-")[1::2]])


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _why(error: Exception) -> str:
    full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
    return "the disk is full" if full else getattr(error, "strerror", None) or str(error)


def _remaining(folder: Path) -> str:
    last = newest(folder)
    return (
        f"The one before, {last.name}, is whole: make room, then `resume=True`" if last else "Make room and start anew"
    )
