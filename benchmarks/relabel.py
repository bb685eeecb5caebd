"""New pseudo labels for all training videos, made and written: what they cost beyond the model's pass, and the memory.

The 188 real THUMOS14 training videos if WTAL_STORE names their store and WTAL_RUN a run that was trained on it;
otherwise generated videos of about the same number and lengths, and a model that has seen them for some epochs.
"""

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from wtal.data.convert import convert
from wtal.data.store import Store
from wtal.data.synthetic import synthetic_source
from wtal.data.synthetic_annotations import random_annotations
from wtal.localize import Localizer
from wtal.models.protocol import Model
from wtal.training import Recipe, read_recipe, train
from wtal.training import relabel as relabelling
from wtal.training.relabel import relabel, write_generation
from wtal.training.videos import Videos

ROUNDS = 3


def run(console: Console) -> None:
    """Print the best of some rounds for the label settings of each recipe that makes labels."""
    with _trained() as (model, store, source), tempfile.TemporaryDirectory() as folder:
        videos = Videos(store, "train", torch.device("cpu"))
        table = Table(title=f"labels of {len(videos)} videos, {videos.offsets[-1]} snippets ({source})")
        for heading in ("labels of", "instances", "programs", "the model's pass, s", "beyond it, s"):
            table.add_column(heading, justify="left" if heading == "labels of" else "right")
        for name in ("thumos14-gaufuse", "thumos14-gaufuse-paper", "thumos14-gaufuse-released"):
            recipe = read_recipe(name)
            settings = recipe.targets
            rounds = []
            for _ in range(ROUNDS):
                with _pass_timed() as spent:
                    begun = time.perf_counter()
                    made = relabel(model, videos, recipe, settings.stages[0])
                    write_generation(Path(folder) / "labels.npz", made, videos, background=settings.background)
                    rounds.append((time.perf_counter() - begun - sum(spent), sum(spent)))
            beyond, forward = min(rounds)
            counts = (str(sum(map(len, made.instances))), str(made.n_programs))
            table.add_row(name, *counts, f"{forward:.2f}", f"{beyond:.2f}")
    console.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    console.print(f"{torch.get_num_threads()} threads, best of {ROUNDS} rounds; peak memory {peak / 1e6:.0f} MB")


@contextmanager
def _pass_timed() -> Iterator[list[float]]:
    """Seconds that relabel spends where it reads features and runs the model, call by call."""
    maps, spent = relabelling.target_maps, []

    def timed(*arguments: Any, **options: Any) -> Iterator[Any]:
        source = maps(*arguments, **options)
        while True:
            begun = time.perf_counter()
            item = next(source, None)
            spent.append(time.perf_counter() - begun)
            if item is None:
                return
            yield item

    with patch.object(relabelling, "target_maps", timed):
        yield spent


@contextmanager
def _trained() -> Iterator[tuple[Model, Store, str]]:
    place, trained = os.environ.get("WTAL_STORE"), os.environ.get("WTAL_RUN")
    if place and trained:
        yield Localizer.load(trained, device="cpu").model, Store.open(place), f"THUMOS14, {Path(trained).name}"
        return
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        made = random_annotations(rng, n_train=188, n_test=0, n_classes=20, duration_s=165.0, action_s=2.5, gap_s=2.7)
        convert(synthetic_source(made, rng), Path(folder) / "store")
        store = Store.open(Path(folder) / "store")
        run = train(Recipe("rskp", 4, ((4, 1e-3),), {"warmup_epoch": 0}), store, Path(folder) / "run")
        yield Localizer.load(run.path, device="cpu").model, store, "generated"
