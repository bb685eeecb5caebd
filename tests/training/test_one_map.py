"""The paper's idea as a property: pseudo labels and test instances are cut from the same maps, for every recipe."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from wtal.card import Card
from wtal.data.store import Store
from wtal.localize import Localizer
from wtal.models import build
from wtal.propose import Cut, Proposer
from wtal.timebase import TimeBase
from wtal.training.config import Recipe, read_recipe, shipped_recipes
from wtal.training.relabel import target_maps
from wtal.training.videos import Videos

MIX = (0.6, 0.4)


def narrow(recipe: Recipe) -> dict[str, Any]:
    """The recipe's options with one mix for both maps, and a layer as small as the data."""
    options = dict(recipe.model_options)
    if "hidden" in options:
        options["hidden"] = 16
    return {**options, "tcam_mix": MIX, "target_mix": MIX} if recipe.model == "rskp" else options


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_targets_and_test_instances_come_from_the_same_maps(name: str, store: Store) -> None:
    recipe = read_recipe(name)
    # segments that are fewer than most videos' snippets, so that thinning is seen; no dropout in either
    segments = 20 if recipe.test.segments else None
    recipe = replace(
        recipe,
        targets=replace(recipe.targets, dropout=False, background=False),
        test=replace(recipe.test, segments=segments),
    )
    check(recipe, narrow(recipe), store)


@pytest.mark.parametrize("model", ["rskp", "facnet", "wum", "stpn", "bm"])
def test_every_model_shown_a_part_of_its_snippets_gives_one_map(model: str, store: Store) -> None:
    recipe = Recipe(model, 1, ((1, 1e-3),))
    recipe = replace(recipe, test=replace(recipe.test, segments=20))
    check(recipe, narrow(recipe), store)


def check(recipe: Recipe, options: dict[str, Any], store: Store) -> None:
    torch.manual_seed(0)
    weights, streams = recipe.stream_weights, store.streams
    if weights:  # the generated store has one stream; halves of it stand for RGB and flow
        streams = {name: store.dimensions // len(weights) for name in weights}
    n, d = len(store.classes), store.dimensions
    model = build(recipe.model, n, d, streams=streams, stream_weights=weights, **options)
    videos = Videos(store, "train", torch.device("cpu"))
    assert max(store.length(name) for name in videos.names) > 20
    for_targets = list(target_maps(model, videos, recipe, epoch=0))
    card = Card(recipe.model, store.classes, d, segments=recipe.test.segments)
    localizer = Localizer(model.eval(), card)
    for name, made in zip(videos.names, for_targets, strict=True):
        at_test = localizer.maps(name, store.features(name))
        assert [one.weight for one in made] == [one.weight for one in at_test]
        for one, other in zip(made, at_test, strict=True):
            assert one.name == other.name == name
            assert one.attention is not None
            assert other.attention is not None
            # packed with other videos the sums have another order
            np.testing.assert_allclose(one.tcam, other.tcam, atol=1e-5)
            np.testing.assert_allclose(one.video_scores, other.video_scores, atol=1e-5)
            np.testing.assert_allclose(one.attention, other.attention, atol=1e-5)


def test_a_model_keeps_the_clock_that_it_was_trained_with(store: Store) -> None:
    """Features of half the usual stride end at half the time, and so do their instances."""
    torch.manual_seed(0)
    clock = TimeBase(stride_frames=8.0)
    card = Card("rskp", store.classes, store.dimensions, timebase=clock)
    card = replace(card, proposer=Proposer(Cut(class_threshold=0.0, thresholds=(0.0,))))
    localizer = Localizer(build("rskp", len(store.classes), store.dimensions).eval(), card)
    features = store.features(store.names("test")[0])
    found = localizer(features)
    assert len(found)
    assert found.ends.max() == pytest.approx(len(features) * clock.snippet_s)
    moved = replace(localizer, card=replace(card, offset_snippets=-0.5))(features)
    assert moved.ends.max() == pytest.approx((len(features) - 0.5) * clock.snippet_s)
    asked = localizer(features, TimeBase(stride_frames=16.0))
    assert asked.ends.max() == pytest.approx(len(features) * 0.64)
