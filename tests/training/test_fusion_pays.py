"""On generated data fusion pays against NMS, and pseudo labels against none, for the reasons the generator states."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wtal.data.convert import convert
from wtal.data.store import Store
from wtal.data.synthetic import Difficulty, synthetic_source
from wtal.data.synthetic_annotations import random_annotations
from wtal.evaluate import score
from wtal.localize import Localizer, localize_maps
from wtal.maps import Maps
from wtal.propose import RELEASED, Nms, Proposer
from wtal.timebase import TimeBase
from wtal.training import Execution, Recipe, read_recipe, train

SEEDS = (0, 1)
RSKP = Recipe("rskp", 25, ((25, 2e-3),), {"warmup_epoch": 10, "spl_stages": ((0, 1.0), (11, 0.5))})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Maps, Store]]:
    """The test videos' maps by models that saw tags only, of several seeds of generator and training."""
    return list(_trained(tmp_path_factory.mktemp("fusion")))


def _trained(folder: Path) -> Iterator[tuple[Maps, Store]]:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        made = random_annotations(rng, n_train=60, n_test=40, n_classes=6)
        convert(synthetic_source(made, rng, n_dims=128), folder / f"store-{seed}")
        store = Store.open(folder / f"store-{seed}")
        localizer = Localizer.load(
            train(RSKP, store, folder / f"run-{seed}", seed=seed, execution=Execution(threads=1)).path
        )
        yield {name: localizer.maps(name, store.features(name)) for name in store.names("test")}, store


def average(trained: list[tuple[Maps, Store]], proposer: Proposer) -> float:
    found = [(localize_maps(maps, proposer, TimeBase()), store.truth()) for maps, store in trained]
    return float(np.mean([score(*one).average["0.1:0.7"] for one in found]))


@pytest.mark.parametrize("name", ["demo", "released"])
def test_fusion_finds_more_than_nms(trained: list[tuple[Maps, Store]], name: str) -> None:
    fusion = RELEASED if name == "released" else read_recipe("demo").test.proposer
    same_groups = fusion.by(Nms)
    of_rskp = fusion.by(Nms, overlap="own_length", threshold=0.5)
    fused, kept, kept_by_rskp = (average(trained, way) for way in (fusion, same_groups, of_rskp))
    assert fused > max(kept, kept_by_rskp) + 1.0, (fused, kept, kept_by_rskp)


def test_thresholds_lie_on_both_sides_of_the_true_ends(trained: list[tuple[Maps, Store]]) -> None:
    """The reason: between the highest and the lowest of RSKP's thresholds most ends go from inside to outside."""
    outside = {level: [] for level in (0.039, 0.001)}
    for maps, store in trained:
        truth = store.truth()
        for (shown,) in maps.values():
            true = truth.videos[shown.name].instances
            for (start, end), label in zip(TimeBase().to_positions(true.segments), true.class_ids, strict=True):
                inside = np.arange(int(start), min(int(end) + 1, len(shown.tcam)))
                peak = inside[np.argmax(shown.tcam[inside, label])]
                for level, seen in outside.items():
                    below = np.flatnonzero(shown.tcam[:, label] <= level)
                    first = below[below < peak].max(initial=-1) + 1
                    past = below[below > peak].min(initial=len(shown.tcam))
                    if first <= peak < past and shown.tcam[peak, label] > 0.1:
                        seen += [first < start, past > end]
    assert np.mean(outside[0.039]) < 0.5 < 0.65 < np.mean(outside[0.001])


def test_labels_teach_what_noise_hides(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = random_annotations(rng, n_train=60, n_test=40, n_classes=6)
    convert(synthetic_source(made, rng, n_dims=128, difficulty=Difficulty(noise=1.8)), tmp_path / "store")
    store, recipe = Store.open(tmp_path / "store"), read_recipe("demo")
    without = replace(recipe, targets=replace(recipe.targets, stages=()))

    def trained(recipe: Recipe, run: str) -> tuple[float, float]:
        """Score, and the median activation inside the true actions."""
        localizer = Localizer.load(train(recipe, store, tmp_path / run, execution=Execution(threads=1)).path)
        truth, inside = store.truth(), []
        for name in store.names("test"):
            (shown,) = localizer.maps(name, store.features(name))
            true = truth.videos[name].instances
            for (start, end), label in zip(TimeBase().to_positions(true.segments), true.class_ids, strict=True):
                inside += shown.tcam[int(start) : int(end), label].tolist()
        return score(localizer.store(store, "test"), truth).headline, float(np.median(inside))

    (with_labels, seen), (with_tags, seen_by_tags) = trained(recipe, "labels"), trained(without, "tags")
    assert with_labels > with_tags + 0.5
    assert seen > 1.2 * seen_by_tags
