"""Where activation curves leave an action, against where it ends, on real and on generated videos.

From an action's peak outward, the curve falls below one level after the other. On real videos high levels are left
before the true end and low ones after it, which is why a mean over thresholds is better than any of them. The generator
of wtal.data.synthetic is held to the same shares. Nothing is timed here.
"""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.table import Table

from benchmarks.real import GOLDEN
from wtal.annotations import Annotations
from wtal.data.convert import convert
from wtal.data.store import Store
from wtal.data.synthetic import Difficulty, synthetic_source
from wtal.data.synthetic_annotations import random_annotations
from wtal.evaluate import score
from wtal.formats import read_annotations
from wtal.formats.maps import read_maps
from wtal.localize import Localizer, localize_maps
from wtal.maps import Maps
from wtal.propose import RELEASED, Nms, Proposer
from wtal.timebase import TimeBase
from wtal.training import read_recipe, train

LEVELS = (0.039, 0.011, 0.003, 0.001)
SHOWN = 0.1  # an action counts if its peak reaches this
SEEDS = int(os.environ.get("WTAL_SEEDS", "1"))
STEPS = Difficulty(shoulder=0.0)


def crossings(maps: Maps, truth: Annotations, clock: TimeBase) -> Float[np.ndarray, "n h"]:
    """Of each end of each action that shows: where the curve falls below each level, in snippets beyond the end."""
    places = []
    for (shown,) in maps.values():
        true = truth.videos[shown.name].instances
        for (start, end), label in zip(clock.to_positions(true.segments), true.class_ids, strict=True):
            curve = shown.tcam[:, label]
            first, past = max(round(start), 0), min(round(end), len(curve))
            if past - first < 3 or curve[first:past].max() < SHOWN:
                continue
            peak = first + int(curve[first:past].argmax())
            for side, end_at in ((curve[: peak + 1][::-1], peak + 0.5 - start), (curve[peak:], end - peak - 0.5)):
                places.append([_falls_below(side, level) - end_at for level in LEVELS])
    return np.array(places)


def _falls_below(side: Float[np.ndarray, " t"], level: float) -> float:
    """Snippets from the first one on until the curve is below the level, between snippets by a straight line."""
    below = np.flatnonzero(side < level)
    if not len(below):
        return np.nan  # it never does before the video ends
    k = int(below[0])
    return k - 1 + float((side[k - 1] - level) / (side[k - 1] - side[k]))


def generated(seed: int, difficulty: Difficulty) -> tuple[Maps, Annotations]:
    """The test videos' maps by RSKP, trained by the demo's recipe without labels on generated data."""
    demo = read_recipe("demo")
    rskp = replace(demo, targets=replace(demo.targets, stages=()))
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(seed)
        convert(synthetic_source(random_annotations(rng), rng, difficulty=difficulty), Path(folder) / "store")
        store = Store.open(Path(folder) / "store")
        localizer = Localizer.load(train(rskp, store, Path(folder) / "run", seed=seed).path)
        maps = {name: localizer.maps(name, store.features(name)) for name in store.names("test")}
        return maps, store.truth()


def run(console: Console) -> None:
    """Print where curves fall below the levels, and what NMS and fusion make of the same curves."""
    sets: dict[str, list[tuple[Maps, Annotations, TimeBase]]] = {}
    truth = GOLDEN.parents[1] / "thumos14" / "gt.json"
    if GOLDEN.exists() and truth.exists():
        half = TimeBase(offset_snippets=-0.5)
        sets["THUMOS14, 99 test videos"] = [(read_maps(GOLDEN).videos, read_annotations(truth), half)]
    for name, difficulty in {"generated": Difficulty(), "generated, ends are steps": STEPS}.items():
        sets[name] = [(*generated(seed, difficulty), TimeBase()) for seed in range(SEEDS)]
    ends = Table(title="where a curve falls below a level, beyond the true end: median in snippets (share outside)")
    scores = Table(title="average mAP 0.1:0.7: fusion, and NMS on the same groups and by RSKP's rule")
    for table, headings in ((ends, [f"{level:g}" for level in LEVELS]), (scores, list(_ways(RELEASED)))):
        table.add_column("")
        for heading in headings:
            table.add_column(heading, justify="right")
    for name, parts in sets.items():
        places = np.concatenate([crossings(*part) for part in parts])
        shares = np.nanmean(places > 0, axis=0)
        ends.add_row(name, *(f"{m:+.1f} ({s:.0%})" for m, s in zip(np.nanmedian(places, axis=0), shares, strict=True)))
        for settings, proposer in {"released": RELEASED, "demo": read_recipe("demo").test.proposer}.items():
            values = [
                np.mean(
                    [score(localize_maps(maps, way, clock), true).average["0.1:0.7"] for maps, true, clock in parts]
                )
                for way in _ways(proposer).values()
            ]
            scores.add_row(f"{name}, {settings} settings", *(f"{value:.1f}" for value in values))
    console.print(ends)
    console.print(scores)
    console.print(f"generated data: mean over {SEEDS} seeds (WTAL_SEEDS)")


def _ways(fusion: Proposer) -> dict[str, Proposer]:
    return {
        "fusion": fusion,
        "NMS, same groups": fusion.by(Nms),
        "NMS, RSKP's": fusion.by(Nms, overlap="own_length", threshold=0.5),
    }
