"""One training epoch of RSKP against its own two large GEMMs (the floor) and against a port that goes video by video.

In single precision, and in bfloat16 (`precision: bfloat16` in a recipe): with the three branches that
RSKP has after its warm-up, and with the two that it has without a memory, as in thumos14-gaufuse.

Real THUMOS14 features if WTAL_THUMOS14 names a folder with `features/train/{rgb,flow}/NAME.npy`, otherwise random
ones of about the same sizes. Rounds are interleaved, so that a machine with other work on it is unfair to all alike.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from tests.models.literal import rskp as straightforward
from torch import Tensor

from wtal.machine import keeping_memory
from wtal.models.precision import Precision
from wtal.models.protocol import Batch
from wtal.models.rskp import RSKP

N_CLASSES, D, BATCH = 20, 2048, 10
ROUNDS = 3


def features() -> tuple[list[Tensor], str]:
    """The training videos' features, and where they are from."""
    folder = os.environ.get("WTAL_THUMOS14")
    if folder:
        root = Path(folder) / "features" / "train"
        videos = [
            np.concatenate([np.load(path), np.load(root / "flow" / path.name)], axis=1)
            for path in sorted((root / "rgb").glob("*.npy"))
        ]
        return [torch.from_numpy(video.astype(np.float32)) for video in videos], "THUMOS14"
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(5.2, 0.85, 188), 13, 926).astype(int)  # near the real ones: 48 610 snippets in all
    return [torch.from_numpy(rng.random((n, D), dtype=np.float32)) for n in lengths], "random features"


def steps(order: list[int]) -> list[tuple[int, ...]]:
    """The videos of each step."""
    return [tuple(order[i : i + BATCH]) for i in range(0, len(order), BATCH)]


def epoch(step: Callable[[list[int]], None], order: list[int]) -> float:
    """Seconds for one pass over the videos in steps of ten."""
    begin = time.perf_counter()
    for ids in steps(order):
        step(list(ids))
    return time.perf_counter() - begin


def run(console: Console) -> None:
    """Print the table; fail if the two forms disagree."""
    videos, source = features()
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(np.eye(N_CLASSES, dtype=np.float32)[rng.integers(N_CLASSES, size=len(videos))])
    order = rng.permutation(len(videos)).tolist()

    torch.manual_seed(0)
    model = RSKP(N_CLASSES, D, warmup_epoch=0)
    _check(model, videos[order[0]], labels[order[0]])
    first = Batch.pack([videos[i] for i in order[:BATCH]], labels[order[:BATCH]])
    model.end_epoch(0, [first])  # fills the memory: from here on there are three branches
    no_memory = RSKP(N_CLASSES, D, precision="bfloat16")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-9, betas=(0.9, 0.99), weight_decay=5e-4, fused=True)
    no_memory_optimizer = torch.optim.Adam(
        no_memory.parameters(), lr=1e-9, betas=(0.9, 0.99), weight_decay=5e-4, fused=True
    )
    plain_optimizer = torch.optim.Adam(model.parameters(), lr=1e-9, betas=(0.9, 0.99), weight_decay=5e-4)

    def step(model: RSKP, optimizer: torch.optim.Optimizer, ids: list[int]) -> None:
        batch = Batch.pack([videos[i] for i in ids], labels[ids], seeds=ids)
        output = model(batch)
        torch.stack(list(model.losses(output, batch, 1).values())).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        model.end_step(output, batch, 1)

    def ours(ids: list[int], precision: Precision) -> None:
        model.precision = precision
        step(model, optimizer, ids)

    def port(ids: list[int]) -> None:
        for i in ids:
            losses, _ = straightforward(model, videos[i], labels[i], 1)
            torch.stack(list(losses.values())).sum().backward()
        plain_optimizer.step()
        plain_optimizer.zero_grad()

    floors = {dtype: _floor(videos, order, dtype) for dtype in (torch.float32, torch.bfloat16)}
    ways: dict[str, Callable[[list[int]], None]] = {
        "floor": floors[torch.float32],
        "wtal": partial(ours, precision="float32"),
        "floor, bfloat16": floors[torch.bfloat16],
        "wtal, bfloat16": partial(ours, precision="bfloat16"),
        "wtal, no memory, bfloat16": partial(step, no_memory, no_memory_optimizer),
        "port": port,
    }
    model.train()
    times: dict[str, list[float]] = {name: [] for name in ways}
    with keeping_memory():  # as in training
        for name in ("wtal", "wtal, bfloat16", "wtal, no memory, bfloat16"):
            epoch(ways[name], order[:BATCH])  # the first step of each allocates
        for _ in range(ROUNDS):
            for name, way in ways.items():
                times[name].append(epoch(way, order))
    best = {name: min(values) for name, values in times.items()}  # the round that the machine disturbed least
    table = Table(title=f"One training epoch of RSKP, {source}: {sum(map(len, videos))} snippets, 3 branches")
    for heading in ("", "seconds", "of the floor", "the port takes"):
        table.add_column(heading, justify="left" if not heading else "right")
    titles = {"floor": "the embedding's two GEMMs alone", "port": "video by video, T×T inverse"}
    for name, seconds in best.items():
        way, _, rest = name.partition(", ")
        title = ", ".join(part for part in (titles.get(way, way), rest) if part)
        floor = best["floor, bfloat16" if rest else "floor"]
        table.add_row(title, f"{seconds:.2f}", f"{seconds / floor:.2f}×", f"{best['port'] / seconds:.2f}×")
    console.print(table)
    console.print(f"{torch.get_num_threads()} threads, best of {ROUNDS} rounds")


def _floor(videos: list[Tensor], order: list[int], dtype: torch.dtype) -> Callable[[list[int]], None]:
    """The embedding's GEMM forward and that of its weights' gradient, with everything in place beforehand."""
    packed = {ids: torch.cat([videos[i] for i in ids]).to(dtype) for ids in steps(order)}
    hidden = torch.empty(max(map(len, packed.values())), D, dtype=dtype)
    weight, gradient = torch.randn(D, D).to(dtype), torch.empty(D, D, dtype=dtype)

    def floor(ids: list[int]) -> None:
        x = packed[tuple(ids)]
        torch.mm(x, weight.t(), out=hidden[: len(x)])
        torch.mm(hidden[: len(x)].t(), x, out=gradient)

    return floor


def _check(model: RSKP, video: Tensor, tags: Tensor) -> None:
    """Both forms compute the same thing."""
    model.eval()
    batch = Batch.pack([video], tags[None])
    with torch.no_grad():
        ours = model.losses(model(batch), batch, 0)
        port, _ = straightforward(model, video, tags, 0)
    for name, value in ours.items():
        torch.testing.assert_close(value, port[name], rtol=1e-3, atol=1e-4)
    model.train()
