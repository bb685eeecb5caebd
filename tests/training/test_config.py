"""Recipes: complete, checked, and the same after being written and read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wtal.errors import InputError
from wtal.maps import ActivationMap
from wtal.propose import RECOMMENDED, RELEASED, Fusion, Nms
from wtal.pseudo.delta import PAPER_SCHEDULE, RELEASED_SCHEDULE
from wtal.training import read_recipe
from wtal.training.config import BoxSettings, write_recipe
from wtal.training.relabel import targets_from
from wtal.training.session import model_options

RECIPES = Path(__file__).parents[2] / "recipes"
START = "model: rskp\nepochs: 2\nlearning_rate: [[2, 1e-3]]\n"


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_is_read_and_survives_being_written(path: Path, tmp_path: Path) -> None:
    recipe = read_recipe(path)
    assert model_options(recipe)
    write_recipe(tmp_path / "again.yaml", recipe)
    assert read_recipe(tmp_path / "again.yaml") == recipe


def test_the_named_recipes_are_what_their_names_say() -> None:
    released = read_recipe(RECIPES / "thumos14-gaufuse-released.yaml")
    assert released.schedule == RELEASED_SCHEDULE
    assert released.test.proposer == RELEASED
    assert released.targets.flanks == RELEASED.cut.flanks
    assert read_recipe(RECIPES / "thumos14-gaufuse.yaml").test.proposer == RECOMMENDED
    assert [released.rate_at(epoch) for epoch in (79, 80, 244, 245, 349)] == [5e-5, 4e-5, 2.048e-5, 5.12e-7, 2.56e-7]
    assert read_recipe(RECIPES / "thumos14-gaufuse-paper.yaml").schedule == PAPER_SCHEDULE
    assert not read_recipe(RECIPES / "thumos14-rskp.yaml").targets.stages


def test_recipes_that_come_with_wtal_are_read_by_name() -> None:
    assert read_recipe("demo") == read_recipe(RECIPES / "demo.yaml")
    with pytest.raises(InputError, match=r"cannot read the recipe demmo: .*one of .*demo, .*thumos14-rskp"):
        read_recipe("demmo")


@pytest.mark.parametrize(
    ("base", "ours"),
    [
        (f"{data}-{model}{short}", f"{data}-{model}-gaufuse{short}" if model != "rskp" else f"{data}-gaufuse")
        for data, model, short in (
            ("thumos14", "rskp", "-short"),
            ("thumos14", "stpn", ""),
            ("thumos14", "stpn", "-short"),
            ("thumos14", "bm", ""),
            ("thumos14", "wum", ""),
            ("thumos14", "wum", "-short"),
            ("thumos14", "facnet", ""),
            ("thumos14", "facnet", "-short"),
            ("activitynet13", "rskp", ""),
        )
    ],
)
def test_a_plug_in_recipe_is_its_base_with_the_same_budget_and_our_parts(base: str, ours: str) -> None:
    alone, plugged = (read_recipe(RECIPES / f"{name}.yaml") for name in (base, ours))
    assert replace(plugged, targets=alone.targets, test=alone.test) == alone
    assert not alone.targets.stages
    assert plugged.targets.stages[-1].from_epoch < plugged.epochs
    assert isinstance(alone.test.proposer.combine, Nms)
    assert isinstance(plugged.test.proposer.combine, Fusion)
    assert plugged.test.proposer.combine.template == "gaussian"
    assert replace(plugged.test, proposer=alone.test.proposer) == alone.test


def test_numbers_that_yaml_takes_for_text_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(START)
    assert read_recipe(tmp_path / "r.yaml").learning_rate == ((2, 0.001),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch_video: 3", r"unknown key batch_video \(did you mean batch_videos\?\)"),
        (
            "targets: {proposer: {combine: {fusion: {temprature: 1}}}}",
            r"targets\.proposer\.combine\.fusion\.temprature \(did you mean temperature\?\)",
        ),
        (
            "test: {proposer: {combine: {fusoin: {}}}}",
            r"unknown key test\.proposer\.combine\.fusoin \(did you mean fusion\?\); there are fusion, nms, soft_nms",
        ),
        ("test: {proposer: {combine: {fusion: {}, nms: {}}}}", r"combine must have one key .*, got fusion, nms"),
        ("test: {proposer: {combine: {}}}", r"combine must have one key of fusion, nms, soft_nms, got none"),
        ("test: {proposer: {combine: nms}}", r"combine must be a mapping with one key of .*, got the text 'nms'"),
        ("test: {proposer: {combine: {nms: {temperature: 1}}}}", r"combine\.nms\.temperature"),
        ("test: {proposer: {combine: {soft_nms: {threshold: 0.5}}}}", "gaussian decay has no threshold; .* set sigma"),
        (
            "test: {proposer: {combine: {fusion: {template: gausian}}}}",
            r"template must be uniform or .*gausian' \(did you mean gaussian\?\)",
        ),
        ("targets: {flanks: {power: 1}}", r"targets\.flanks\.scale is missing"),
        ("targets: {stages: [{from_epok: 1}]}", r"targets\.stages\[0\]\.from_epok \(did you mean from_epoch\?\)"),
        ("batch_videos: ten", r"batch_videos must be a whole number, got the text 'ten'"),
        ("batch_videos: true", "batch_videos must be a whole number, got the truth value True"),
        ("optimizer: {betas: [0.9]}", r"optimizer\.betas must have 2 values, got 1"),
        (
            "optimizer: {name: adma}",
            r"optimizer\.name must be adam or adamw, got the text 'adma' \(did you mean adam\?\)",
        ),
        ("test: {offset_snippets: half}", r"test\.offset_snippets must be a number, got the text 'half'"),
        ("targets: 3", "targets must be a mapping"),
        ("test: {protocols: thumos14}", r"test\.protocols must be a list"),
        ("test: {protocols: [thumos]}", "no protocol 'thumos'"),
        ("batch_videos: 0", "batch_videos must be 1 or more"),
        ("epochs: 3", "line 4: the key epochs stands twice"),
        ("targets: {stages: [{from_epoch: 5}]}", "training ends at 2"),
        ("targets: {stages: [{from_epoch: 1, relabel: false}]}", "must make labels"),
        ("seed: -1", "seed must be 0 or more"),
        ("targets: [", "is not a YAML file"),
    ],
)
def test_a_wrong_recipe_names_the_key_and_what_is_wanted(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(START + text)
    with pytest.raises(InputError, match=message) as caught:
        read_recipe(path)
    assert str(path) in str(caught.value) or "twice" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "must be a mapping"), ("model: rskp\nepochs: 1", "learning_rate is missing"), ("- a", "must be a mapping")],
)
def test_an_incomplete_recipe_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_recipe(tmp_path / "r.yaml")


def test_learning_rates_must_reach_the_last_epoch(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("model: rskp\nepochs: 3\nlearning_rate: [[2, 1e-3]]\n")
    with pytest.raises(InputError, match="up to 3"):
        read_recipe(tmp_path / "r.yaml")


def test_boxes_without_a_least_weight_have_that_of_the_shipped_detectors() -> None:
    for name in ("demo-detector", "thumos14-detector"):
        boxes = read_recipe(name).boxes
        assert boxes is not None
        assert boxes.least_weight == BoxSettings().least_weight
    with pytest.raises(InputError, match=r"boxes\.least_weight must be from 0 to 1, got 1\.3"):
        BoxSettings(least_weight=1.3)


def test_a_recipe_that_is_not_there_and_one_that_is_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the recipe .*none\.yaml: No such file"):
        read_recipe(tmp_path / "none.yaml")
    with pytest.raises(InputError, match=r"cannot read the recipe .*: it is a folder"):
        read_recipe(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{dropuot: 0.1}", r"model_options\.dropuot \(did you mean dropout\?\)"),
        ("{dropout: much}", r"model_options\.dropout must be a number"),
        ("{tcam_mix: [0.5]}", r"model_options\.tcam_mix must have 2 values"),
    ],
)
def test_model_options_are_checked_against_the_model(tmp_path: Path, options: str, message: str) -> None:
    (tmp_path / "r.yaml").write_text(f"{START}model_options: {options}")
    with pytest.raises(InputError, match=message):
        model_options(read_recipe(tmp_path / "r.yaml"))


def test_the_fusion_of_targets_acts_where_a_stage_names_no_temperature(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    start = START + "targets:\n  proposer: {combine: {fusion: {temperature: 0.5}}}\n  stages: "
    path.write_text(start + "[{from_epoch: 1}]\n")
    recipe = read_recipe(path)
    tcam = np.zeros((12, 1))
    tcam[2:10, 0], tcam[4:8, 0] = 0.02, 0.03
    maps = [(ActivationMap("v", tcam, np.ones(1)),)]

    def made(temperature: float | None) -> list[list[float]]:
        found = targets_from(maps, np.ones((1, 1)), recipe.targets, temperature=temperature)
        segments: list[list[float]] = found.instances[0].segments.tolist()
        return segments

    assert made(recipe.targets.stages[0].temperature) == made(0.5)
    assert made(0.001) != made(0.5)
