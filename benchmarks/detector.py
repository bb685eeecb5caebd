"""A training epoch of the detector against its own matrix products, and the pair's test against its teacher's.

Features as for `training_step`: real ones if WTAL_THUMOS14 names a folder. The second table wants a trained detector
and a store of videos: WTAL_RUN and WTAL_STORE.
"""

import os
import time
from collections.abc import Callable
from itertools import count

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.training_step import N_CLASSES, ROUNDS, D, features
from wtal.data.store import Store
from wtal.forward import packed
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.machine import keeping_memory
from wtal.models.convolution import CellConvolution, OutputConvolution
from wtal.models.detector import Detector
from wtal.models.protocol import Batch
from wtal.models.pyramid import PyramidNetwork
from wtal.training import read_recipe

BATCH = 4


def run(console: Console) -> None:
    """Print both tables; the second one where there is something to print."""
    _training(console)
    trained, data = os.environ.get("WTAL_RUN"), os.environ.get("WTAL_STORE")
    if trained and data:
        _test(console, Localizer.load(trained), Store.open(data))


def _training(console: Console) -> None:
    videos, source = features()
    rng = np.random.default_rng(0)
    tags = torch.from_numpy(np.eye(N_CLASSES, dtype=np.float32)[rng.integers(N_CLASSES, size=len(videos))])
    boxes = [_boxes(rng, len(video), int(row.argmax())) for video, row in zip(videos, tags, strict=True)]
    torch.manual_seed(0)
    model = Detector(N_CLASSES, D, **read_recipe("thumos14-detector").model_options).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-9, fused=True)
    order = rng.permutation(len(videos)).tolist()
    steps = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    model.begin([packed([videos[i].numpy() for i in order[:10]], torch.device("cpu"))])

    def batch(ids: list[int], epoch: int = 0) -> Batch:
        parts, seeds = [videos[i].numpy() for i in ids], [epoch * len(videos) + i for i in ids]
        return packed(parts, torch.device("cpu"), tags=tags[ids], seeds=seeds, boxes=[boxes[i] for i in ids])

    epochs = count(1)

    def ours() -> None:
        epoch = next(epochs)  # other views of the videos, and so other sizes, in each
        for ids in steps:
            one = batch(ids, epoch)
            output = model(one)
            torch.stack(list(model.losses(output, one, 0).values())).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            model.end_step(output, one, 0)

    floor = _floor(model, [batch(ids) for ids in steps])
    with keeping_memory():  # as in training
        best = _best({"its matrix products alone": floor, "wtal": ours})
    _print(
        console, f"One training epoch of the detector, {source}: {len(model.networks)} networks", "of the floor", best
    )


def _boxes(rng: np.random.Generator, length: int, class_id: int) -> Instances:
    """As many boxes as a teacher finds: about one in fifteen snippets, a few snippets long."""
    n = max(1, length // 15)
    starts = rng.uniform(0, max(1, length - 6), n)
    lengths = np.minimum(rng.lognormal(1.5, 0.7, n), length - starts)
    return Instances(
        np.stack([starts, starts + lengths], axis=1), rng.uniform(0.3, 1, n), [class_id] * n, unit="snippets"
    )


def _floor(model: Detector, batches: list[Batch]) -> Callable[[], None]:
    """Each layer's product forward, that of its weights' gradient, and that of its input's, of the same sizes."""
    sizes: list[tuple[int, int, int, bool]] = []

    def note(layer: torch.nn.Module, given: tuple[torch.Tensor, ...], made: torch.Tensor) -> None:
        n, width = given[0].shape
        if isinstance(layer, PyramidNetwork):  # its first layer; nobody asks for the gradient of the features
            sizes.append((n, width, layer.project.out_features, False))
        elif isinstance(layer, CellConvolution):
            sizes.append((n, 3 * width, made.shape[1], True))
        else:
            sizes.append((n, width, 3 * made.shape[1], True))

    kinds = (PyramidNetwork, CellConvolution, OutputConvolution)
    layers = [part for part in model.networks.modules() if isinstance(part, kinds)]
    hooks = [layer.register_forward_hook(note) for layer in layers]
    with torch.no_grad():
        for one in batches:
            model(one)
    for hook in hooks:
        hook.remove()
    most = max(n for n, _, _, _ in sizes)
    x = {d: torch.randn(most, d).bfloat16() for d in {size[1] for size in sizes}}
    g = {d: torch.randn(most, d).bfloat16() for d in {size[2] for size in sizes}}
    w = {(i, o): torch.randn(o, i).bfloat16() for _, i, o, _ in sizes}

    def floor() -> None:
        for n, i, o, inner in sizes:
            torch.mm(x[i][:n], w[i, o].t())
            torch.mm(g[o][:n].t(), x[i][:n])
            if inner:
                torch.mm(g[o][:n], w[i, o])

    return floor


def _test(console: Console, pair: Localizer, store: Store) -> None:
    names = store.names("test")
    both = {name: store.features(name) for name in names}
    teacher = pair.teachers[0]
    best = _best(
        {
            "the first teacher alone": lambda: [teacher(one) for one in both.values()],
            "with the detector and its teachers": lambda: [pair(one) for one in both.values()],
        }
    )
    _print(console, f"{len(names)} test videos, features to instances", "of the teacher's", best)


def _print(console: Console, title: str, ratio: str, best: dict[str, float]) -> None:
    """A row for each way, with its ratio to the first."""
    table = Table(title=title)
    for heading in ("", "seconds", ratio):
        table.add_column(heading, justify="left" if not heading else "right")
    first = next(iter(best.values()))
    for name, seconds in best.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / first:.2f}×")
    console.print(table)


def _best(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of the round that the machine disturbed least; rounds are interleaved."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - begin)
    return {name: min(values) for name, values in times.items()}
