"""Every model learns from tags on generated videos, with pseudo labels too, and resumes to the same bits."""

import json
import shutil
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from wtal.data.store import Store
from wtal.errors import InputError, Interrupted
from wtal.localize import Localizer
from wtal.training import Execution, Recipe, train
from wtal.typed import parse

LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
RECIPES = {
    "rskp": """
        model: rskp
        model_options: {dropout: 0.2, warmup_epoch: 3}
        learning_rate: [[14, 5e-3]]
    """,
    "rskp in bfloat16": """
        model: rskp
        model_options: {dropout: 0.2, warmup_epoch: 3, precision: bfloat16}
        learning_rate: [[14, 5e-3]]
    """,
    "facnet": """
        model: facnet
        model_options: {dropout: 0.2}
        stream_weights: {rgb: 0.5, flow: 1.0}
        learning_rate: [[14, 5e-3]]
        test: {proposer: {pool_threshold: 0.9}}
    """,
    "wum": """
        model: wum
        model_options: {hidden: 32, margin: 10.0, dropout: 0.3, class_reduction: sum}
        sampling: {segments: 60}
        reduction: mean
        learning_rate: [[14, 5e-3]]
        test: {segments: 60, proposer: {cut: {attention_thresholds: [0.3, 0.5], upsample: 4}}}
    """,
    "stpn": """
        model: stpn
        model_options: {hidden: 32, dropout: 0.2, class_reduction: sum}
        sampling: {segments: 30, repeat: false}
        learning_rate: [[14, 5e-3]]
    """,
    "bm": """
        model: bm
        model_options: {background_weight: 0.1, cluster_weight: 0.1, floor: 0.2}
        stream_weights: {rgb: 1.0, flow: 1.0}
        learning_rate: [[14, 1e-2]]
    """,
}


def recipe(name: str, *, epochs: int = 14, labels: tuple[int, ...] = (), rate: float | None = None) -> Recipe:
    """The model's recipe, with pseudo labels that are renewed at these epochs."""
    given = yaml.safe_load(RECIPES[name])
    common = {"relative": True, "thresholds": LEVELS, "class_threshold": 0.2, "keep_best_class": True}
    own = given.setdefault("test", {}).get("proposer", {})
    cut = common | own.get("cut", {})
    given["test"] |= {"proposer": own | {"cut": cut}, "protocols": ["thumos14"]}
    if labels:
        given["targets"] = {"stages": [{"from_epoch": e} for e in labels], "proposer": {"cut": cut}}
    if rate is not None:
        given["learning_rate"] = [[epochs, rate]]
    return parse(Recipe, {"epochs": epochs, "batch_videos": 6, **given})


def metrics(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines() if "event" not in line]


def average(run: Path) -> float:
    return float(json.loads((run / "evaluation.json").read_text())["thumos14"]["average"]["0.1:0.7"])


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_model_learns_to_localize_from_tags(name: str, larger_store: Store, tmp_path: Path) -> None:
    learned = train(recipe(name), larger_store, tmp_path / "run", execution=Execution(threads=1)).path
    nothing = train(
        recipe(name, epochs=1, rate=0.0), larger_store, tmp_path / "nothing", execution=Execution(threads=1)
    ).path
    assert metrics(learned)[-1]["loss"] < 0.7 * metrics(learned)[0]["loss"]
    assert average(learned) > 25
    assert average(learned) > average(nothing) + 20


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_model_takes_pseudo_labels_and_resumes_to_the_same_bits(name: str, store: Store, tmp_path: Path) -> None:
    asked = recipe(name, epochs=5, labels=(2, 4))
    whole = train(asked, store, tmp_path / "whole", execution=Execution(threads=1)).path

    def stop(step: str, _completed: float, _total: float, at: Mapping[str, Any]) -> None:
        if step == "training" and (at["epoch"], at["step"]) == (3, 2):
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        train(asked, store, tmp_path / "parts", progress=stop, execution=Execution(threads=1))
    parts = train(asked, store, tmp_path / "parts", resume=True).path
    for file in ("model/model.safetensors", "model/model.json", "predictions.json", "evaluation.json"):
        assert (parts / file).read_bytes() == (whole / file).read_bytes(), file
    assert ["pseudo" in line for line in metrics(whole)] == [False, False, True, True, True]
    assert all(line["pseudo"] != 0 for line in metrics(whole)[2:])
    video = store.names("test")[0]
    localizer = Localizer.load(whole)
    maps = localizer.maps(video, store.features(video))
    assert [one.weight for one in maps] == (list(asked.stream_weights.values()) or [1.0])
    if asked.stream_weights:
        uneven = replace(store, streams={"rgb": store.dimensions - 1, "flow": 1})
        with pytest.raises(InputError, match="wants features of the streams"):
            localizer.store(uneven, "test")
    assert all(one.tcam.shape == (store.length(video), 3) for one in maps)


def test_a_run_keeps_the_precision_that_auto_meant_where_it_began(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = recipe("rskp", epochs=2)
    asked = replace(asked, model_options={**asked.model_options, "precision": "auto"})
    found = {}
    for there in (True, False):
        monkeypatch.setattr("wtal.models.precision.has_bfloat16", lambda _, there=there: there)
        run = train(asked, store, tmp_path / f"{there}", execution=Execution(threads=1))
        found[there] = run.recipe.model_options["precision"], Localizer.load(run.path).card.model_options["precision"]
    assert found == {True: ("bfloat16", "bfloat16"), False: ("float32", "float32")}
    # on a machine that has none, a run that began in bfloat16 goes on in it
    begun = tmp_path / "True"
    whole = (begun / "model" / "model.safetensors").read_bytes()
    for name in ("model", "evaluation.json", "predictions.json"):
        path = begun / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    train(asked, store, begun, resume=True)
    assert (begun / "model" / "model.safetensors").read_bytes() == whole
    other = replace(asked, model_options={**asked.model_options, "precision": "float32"})
    with pytest.raises(InputError, match="precision"):
        train(other, store, begun, resume=True)
