"""What the page shows is what the library finds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wtal.data.store import Store
from wtal.evaluate.calibration import Calibration
from wtal.formats import write_predictions
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.pool import Pooling
from wtal.propose import RECOMMENDED, Fusion, Nms, Proposer
from wtal.pseudo.candidates import Candidates
from wtal.sight import Sight
from wtal.view.payload import Footage, changed, payload
from wtal.view.taught import Taught


def segments(records) -> np.ndarray:
    return np.array([[one["start"], one["end"]] for one in records]).reshape(-1, 2)


@pytest.fixture(scope="module")
def taught(run: Path, localizer: Localizer) -> Taught:
    return Taught(run, localizer.classes)


@pytest.fixture(scope="module")
def made(localizer: Localizer, store: Store, name: str, taught: Taught) -> dict:
    return payload(localizer, Footage.of_store(store, name, store.truth()), run="tiny", taught=taught)


def test_instances_are_those_of_the_localizer(made, localizer, store, name):
    found = localizer(store.features(name), store.timebase(name), duration_s=store.duration_s(name))
    assert len(found)
    np.testing.assert_allclose(segments(made["instances"]), found.segments, atol=1e-3)
    np.testing.assert_allclose([one["score"] for one in made["instances"]], np.maximum(found.scores, 0), atol=1e-3)
    assert [one["label"] for one in made["instances"]] == [store.classes[i] for i in found.class_ids]


def test_what_stands_and_is_sure_enough_is_the_decision(localizer, store, name):
    steps = Calibration((0.0, 0.02), (0.01, 1.0), (0.3, 0.9), (5, 5), 4)
    sure = replace(localizer, card=replace(localizer.card, calibration=steps))
    made = payload(sure, Footage.of_store(store, name))
    kept = [one for one in made["instances"] if one["stands"] and one["confidence"] >= made["least"]]
    decided = sure.decide(store.features(name), store.timebase(name), duration_s=store.duration_s(name))
    assert len(decided)
    np.testing.assert_allclose(segments(kept), decided.instances.segments, atol=1e-3)
    np.testing.assert_allclose([one["confidence"] for one in kept], decided.confidence, atol=1e-3)
    assert all(one["confidence"] is None for one in made["instances"] if not one["stands"])
    # confidence was fitted to the model's own settings
    other = payload(sure, Footage.of_store(store, name), proposer=sure.card.proposer.at_temperature(1.0))
    assert {one["confidence"] for one in other["instances"]} == {None}


def test_an_instance_lies_within_what_it_was_made_from(made):
    for one in made["instances"]:
        members = np.array(one["members"])
        assert members[:, 0].min() - 2e-3 <= one["start"] <= members[:, 0].max() + 2e-3
        assert members[:, 1].min() - 2e-3 <= one["end"] <= members[:, 1].max() + 2e-3


def test_nms_keeps_the_groups_of_fusion(made, localizer, store, name):
    proposer = localizer.card.proposer.by(Nms)
    found = localizer(store.features(name), store.timebase(name), duration_s=store.duration_s(name), proposer=proposer)
    np.testing.assert_allclose(segments(made["nms"]), found.segments, atol=1e-3)


def test_curves_lie_on_the_grid_and_deltas_are_differences_of_labels(localizer, store, taught):
    trained = store.names("train")[0]
    made = payload(localizer, Footage.of_store(store, trained), taught=taught)
    by_kind: dict[str, list] = {}
    for one in made["curves"]:
        assert len(one["values"]) == made["grid"]["count"] == store.length(trained)
        by_kind.setdefault(one["kind"], []).append(one)
    assert {one["label"] for one in by_kind["activation"]} >= set(store.records[trained].tags)
    tag = store.records[trained].tags[0]
    targets = [np.array(one["values"]) for one in by_kind["target"] if one["label"] == tag]
    deltas = [np.array(one["values"]) for one in by_kind["delta"] if one["label"] == tag]
    assert len(targets) == 2
    assert len(deltas) == 1
    np.testing.assert_allclose(deltas[0], targets[1] - targets[0], atol=2e-4)
    untaught = payload(localizer, Footage.of_store(store, store.names("test")[0]), taught=taught)
    assert {one["kind"] for one in untaught["curves"]} == {"activation", "attention"}


def test_boxes_are_those_that_a_detector_was_taught(localizer, store, tmp_path):
    name, tag = store.names("train")[0], localizer.classes[1]
    boxes = Instances([[1.0, 3.0], [4.0, 9.0]], [0.4, 1.0], [1, 1])
    write_predictions(tmp_path / "boxes.json", {name: boxes}, localizer.classes)
    taught = Taught(tmp_path, localizer.classes)
    made = payload(localizer, Footage.of_store(store, name), taught=taught)
    assert made["boxes"] == [
        {"start": 4.0, "end": 9.0, "label": tag, "score": 1.0},
        {"start": 1.0, "end": 3.0, "label": tag, "score": 0.4},
    ]
    assert payload(localizer, Footage.of_store(store, store.names("test")[0]), taught=taught)["boxes"] == []


def test_who_found_it_is_said_of_a_detector_and_its_teacher(localizer):
    # one found by both, one by each alone; far apart, so that nothing decays
    own = Instances([[0.0, 4.0], [10.0, 14.0]], [0.5, 0.5], unit="snippets")
    tcam = np.zeros((30, 1))
    tcam[0:4] = tcam[20:24] = 0.5
    from wtal.maps import ActivationMap

    teacher = Sight((ActivationMap("a", tcam, np.ones(1)),), Proposer(), model="rskp")
    pair = Sight(Candidates(own, np.ones(2)), Proposer(), (teacher,), Pooling(), model="detector")
    footage = Footage("a", np.ones((30, 1)), localizer.card.timebase, 100.0)
    made = payload(localizer, footage, sight=pair)
    by = {round(one["start"]): one["found_by"] for one in made["instances"]}
    step = made["grid"]["step"]
    assert by == {0: "both", round(10 * step): "detector", round(20 * step): "teacher"}
    each = {model["name"]: sorted(round(one["start"]) for one in model["instances"]) for model in made["models"]}
    assert each == {"rskp": [0, round(20 * step)], "detector": [0, round(10 * step)]}
    alike = replace(pair, model="rskp")
    assert [one["name"] for one in payload(localizer, footage, sight=alike)["models"]] == ["rskp 1", "rskp 2"]
    alone = next(one for one in made["instances"] if one["found_by"] == "teacher")
    assert len(alone["members"]) == 20
    assert made["settings"]["levels"] == list(Proposer().cut.thresholds)


def test_changed_settings_act_and_idle_ones_are_left_aside():
    made = changed(RECOMMENDED, temperature=0.5, threshold=0.3, evidence=1.0, template="uniform", levels=(0.1, 0.2))
    assert made.cut.thresholds == (0.1, 0.2)
    assert made == replace(
        replace(RECOMMENDED, cut=replace(RECOMMENDED.cut, thresholds=(0.1, 0.2))),
        combine=replace(RECOMMENDED.combine, temperature=0.5, threshold=0.3, evidence=1.0, template="uniform"),
    )
    assert changed(RECOMMENDED, combine="nms", temperature=0.5).combine == RECOMMENDED.by(Nms).combine
    assert isinstance(changed(RECOMMENDED.by(Nms), combine="fusion", temperature=0.5).combine, Fusion)
    assert changed(RECOMMENDED) == RECOMMENDED
