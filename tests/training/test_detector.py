"""The second stage: a detector taught by a run's boxes, in a folder that needs nothing from elsewhere."""

import json
import shutil
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from small import outcome
from wtal.data.store import Store
from wtal.errors import InputError, Interrupted
from wtal.formats import read_predictions
from wtal.localize import Localizer
from wtal.pool import Pooling
from wtal.propose import RELEASED
from wtal.training import Execution, Run, read_recipe, train
from wtal.training.boxes import read_boxes

RECIPE = """
model: detector
model_options: {width: 16, averaging: 0.9}
epochs: 3
batch_videos: 4
learning_rate: [[3, 3e-3]]
anneal: cosine
optimizer: {name: adamw, clip_norm: 1.0}
boxes: {least_weight: 0.4}
test: {protocols: [thumos14], pool: {weight: 0.5}}
"""
ONE = Execution(threads=1)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "tiny-detector.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def run(recipe: Path, store: Store, whole_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector whose teacher is gone by the time it is looked at."""
    folder = tmp_path_factory.mktemp("detector")
    shutil.copytree(whole_run, folder / "teacher")
    made = train(recipe, store, folder / "run", teacher=folder / "teacher", execution=ONE).path
    shutil.rmtree(folder / "teacher")
    return made


def test_boxes_are_of_the_tags_with_weights_up_to_1(run: Path, store: Store) -> None:
    boxes = read_predictions(run / "boxes.json", store.classes)
    assert set(boxes) == set(store.names("train"))
    assert sum(map(len, boxes.values()))
    for name, tags in zip(store.names("train"), store.tags("train"), strict=True):
        found = boxes[name]
        assert set(found.class_ids.tolist()) <= set(np.flatnonzero(tags).tolist())
        assert (found.scores >= 0.4 - 1e-9).all()
        for class_id in np.unique(found.class_ids):
            assert found.of_class(class_id).scores.max() == pytest.approx(1.0)
    in_snippets = read_boxes(run / "boxes.json", store, "train")
    assert all(one.unit == "snippets" for one in in_snippets)


def test_the_pair_finds_what_either_finds_and_needs_nothing_else(run: Path, store: Store, tmp_path: Path) -> None:
    shutil.copytree(run / "model", tmp_path / "copied")
    pair = Localizer.load(tmp_path / "copied")
    (teacher,) = pair.teachers
    for name in store.names("test"):
        features = store.features(name)
        own = pair.card.proposer.combine(pair.candidates(name, features)).instances
        from_teacher = teacher.found(name, features)
        both = pair.found(name, features)
        known = {tuple(segment) for part in (own, from_teacher) for segment in part.segments.round(6).tolist()}
        assert {tuple(segment) for segment in both.segments.round(6).tolist()} <= known
        assert (np.diff(both.scores) <= 0).all()
    written = read_predictions(run / "predictions.json", store.classes)
    name = store.names("test")[0]
    again = pair(store.features(name), store.timebase(name), duration_s=store.duration_s(name))
    np.testing.assert_allclose(written[name].sorted().scores, again.sorted().scores, atol=1e-6)


def test_interrupted_it_resumes_to_the_same_bits_without_its_teacher(
    recipe: Path, store: Store, run: Path, whole_run: Path, tmp_path: Path
) -> None:
    def stop(step: str, _completed: float, _total: float, at: Mapping[str, Any]) -> None:
        if step == "training" and (at["epoch"], at["step"]) == (1, 2):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        train(recipe, store, tmp_path / "run", teacher=whole_run, execution=ONE, progress=stop)
    assert Run(tmp_path / "run").boxes.exists()
    train(recipe, store, tmp_path / "run", resume=True, execution=ONE)
    assert outcome(tmp_path / "run") == outcome(run)


def test_losses_fall_and_are_named(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert {"class", "place", "quality", "tags"} <= set(lines[0])
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert lines[-1]["learning_rate"] < lines[0]["learning_rate"]


def test_a_detector_without_a_teacher_and_a_teacher_without_a_detector_are_refused(
    recipe: Path, store: Store, other_store: Store, whole_run: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="`teacher=RUN`"):
        train(recipe, store, tmp_path / "none", execution=ONE)
    assert not (tmp_path / "none").exists()
    with pytest.raises(InputError, match="a teacher is for detectors"):
        train(Run(whole_run).path / "config.yaml", store, tmp_path / "base", teacher=whole_run, execution=ONE)
    with pytest.raises(InputError, match="holds no trained model"):
        train(recipe, store, tmp_path / "wrong", teacher=tmp_path, execution=ONE)


def test_a_wrong_number_of_teachers_is_refused_before_any_is_trained(
    recipe: Path, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "first.yaml").write_text("model: rskp\nepochs: 1\nlearning_rate: [[1, 1e-3]]\n")
    two = tmp_path / "two.yaml"
    two.write_text(recipe.read_text().replace("pool: {weight: 0.5}", "pool: {teacher_weights: [1.0, 0.5]}"))
    with pytest.raises(InputError, match="teacher_weights are 2 for 1 teacher:"):
        train(two, store, tmp_path / "run", teacher=tmp_path / "first.yaml", execution=ONE)
    assert not (tmp_path / "first-seed0").exists()


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("test: {pool: {}, proposer: {cut: {upsample: 4}}}", "test.proposer.cut"),
        ("test: {pool: {}, segments: 75}", "test.segments"),
        ("test: {pool: {}}\ntargets: {stages: [{from_epoch: 1}]}", "targets.stages"),
        ("test: {pool: {}}\nstream_weights: {rgb: 1.0, flow: 1.0}", "stream_weights"),
        ("test: {}", "both, boxes and test.pool"),
    ],
)
def test_what_does_nothing_in_a_detectors_recipe_is_refused(line: str, named: str, tmp_path: Path) -> None:
    base = RECIPE[: RECIPE.index("test:")]
    (tmp_path / "r.yaml").write_text(base + line + "\n")
    with pytest.raises(InputError, match=named):
        read_recipe(tmp_path / "r.yaml")


def test_settings_of_the_cut_and_tuning_are_refused_for_a_detector(run: Path, store: Store) -> None:
    from wtal.cli.tune import main as tune

    pair = Localizer.load(run)
    features = store.features(store.names("test")[0])
    with pytest.raises(InputError, match="settings of the cut do nothing"):
        pair(features, proposer=RELEASED)
    with pytest.raises(InputError, match="is a detector"):
        tune([str(run), "--data", str(store.path)])


def test_one_command_trains_both_and_reuses_what_has_ended(
    recipe: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from wtal.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.yaml").write_text("model: rskp\nepochs: 1\nlearning_rate: [[1, 1e-3]]\n")
    command = ["train", str(recipe), "--data", str(store.path), "--teacher", "first.yaml", "--threads", "1"]
    main([*command, "--run", "pair"])
    first = tmp_path / "first-seed0"  # beside the run
    assert Run(first).ended
    assert Run(tmp_path / "pair").ended
    trained = (first / "model" / "model.safetensors").stat().st_mtime_ns
    main([*command, "--run", "again"])
    assert (first / "model" / "model.safetensors").stat().st_mtime_ns == trained
    assert outcome(tmp_path / "pair") == outcome(tmp_path / "again")
    assert "wtal localize again" in capsys.readouterr().out


def test_a_recipe_may_name_its_teacher_whose_run_is_not_taken_for_other_data(
    recipe: Path, store: Store, other_store: Store, tmp_path: Path
) -> None:
    first, both = tmp_path / "first.yaml", tmp_path / "both.yaml"
    first.write_text("model: rskp\nepochs: 1\nlearning_rate: [[1, 1e-3]]\n")
    both.write_text(recipe.read_text().replace("least_weight: 0.4", f"least_weight: 0.4, teachers: [{first}]"))
    stages: list[str | None] = []

    def hear(_step: str, _completed: float, _total: float, detail: Mapping[str, Any]) -> None:
        stages.append(detail.get("stage"))

    train(both, store, tmp_path / "pair", execution=ONE, progress=hear)
    assert list(dict.fromkeys(stages)) == ["1 of 2, first-seed0", "2 of 2, pair"]
    stages.clear()
    train(recipe, store, tmp_path / "given", teacher=tmp_path / "first-seed0", execution=ONE, progress=hear)
    assert set(stages) == {None}
    found = [(tmp_path / one / "predictions.json").read_bytes() for one in ("pair", "given")]
    assert found[0] == found[1]
    shutil.rmtree(tmp_path / "first-seed0")
    train(both, store, tmp_path / "pair", resume=True, execution=ONE)  # it has what it needs
    assert not (tmp_path / "first-seed0").exists()
    train(both, store, tmp_path / "third", execution=ONE)
    with pytest.raises(InputError, match="first-seed0 was trained on another data set"):
        train(both, other_store, tmp_path / "other", execution=ONE)
    # known before another one is trained
    another = tmp_path / "another.yaml"
    another.write_text(first.read_text())
    with pytest.raises(InputError, match="first-seed0 was trained on another data set"):
        train(recipe, other_store, tmp_path / "other", teacher=[another, first], execution=ONE)
    assert not (tmp_path / "another-seed0").exists()


def test_two_teachers_vote_beside_the_detector_on_one_clock(
    recipe: Path, store: Store, whole_run: Path, tmp_path: Path
) -> None:
    """The second one's snippets start half a snippet earlier: what it finds is moved, in the boxes and at test."""
    late = tmp_path / "late"
    shutil.copytree(whole_run, late)
    card = json.loads((late / "model" / "model.json").read_text())
    card["offset_snippets"] = -0.5
    (late / "model" / "model.json").write_text(json.dumps(card))
    made = train(recipe, store, tmp_path / "run", teacher=[whole_run, late], execution=ONE)
    assert [path.name for path in made.teachers] == ["teacher", "teacher-2"]
    alone = train(recipe, store, tmp_path / "alone", teacher=whole_run, execution=ONE)
    name = store.names("train")[0]
    moved = train(recipe, store, tmp_path / "moved", teacher=late, execution=ONE)
    boxes, later, between = (read_boxes(run.boxes, store, "train")[0].segments for run in (alone, moved, made))
    np.testing.assert_allclose(later, (boxes - 0.5).clip(min=0), atol=1e-3)
    np.testing.assert_allclose(between, (boxes - 0.25).clip(min=0), atol=1e-3)  # they agree on what lies between

    shutil.rmtree(late)
    pair = Localizer.load(made.path)
    features = store.features(name)
    found = pair.look(name, features)()
    first, second = (teacher.instances for teacher in found.teachers)
    np.testing.assert_allclose(second.segments, first.segments - 0.5)
    assert {tuple(ends) for ends in second.segments.tolist()} & {
        tuple(ends) for ends in found.instances.segments.tolist()
    }
    with pytest.raises(InputError, match="teacher_weights are 1 for 2 teachers"):
        replace(pair, card=replace(pair.card, pool=Pooling(teacher_weights=(1.0,)))).found(name, features)
    shutil.rmtree(made.teachers[1])
    with pytest.raises(InputError, match="teacher-2 holds no trained model"):
        Localizer.load(made.path)


def test_loading_a_model_draws_no_random_numbers(run: Path) -> None:
    """Whether a detector's boxes have to be found before it is trained must not decide what it learns."""
    before = torch.get_rng_state()
    Localizer.load(run)
    assert torch.equal(torch.get_rng_state(), before)
