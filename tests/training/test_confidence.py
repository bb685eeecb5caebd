"""A run's confidence comes from videos that a model has not learned from, and survives interruption."""

import json
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from small import make_store, outcome
from wtal.card import read_card
from wtal.cli import main
from wtal.data.store import Store
from wtal.errors import DataWarning, InputError, Interrupted
from wtal.evaluate.calibration import judged
from wtal.formats import read_predictions
from wtal.localize import Localizer
from wtal.training import Execution, Recipe, read_recipe, train
from wtal.training.config import TargetSettings

ONE = Execution(threads=1)


@pytest.fixture
def folds(recipe: Path) -> Recipe:
    """Two models besides, on little work."""
    asked = read_recipe(recipe)
    test = replace(asked.test, confidence_folds=2)
    return replace(asked, epochs=3, targets=TargetSettings(), test=test)


@pytest.fixture(scope="module")
def untagged(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The same videos, of which those for test carry no tag."""
    return make_store(tmp_path_factory.mktemp("untagged") / "store", test_tags=False)


def test_tagged_test_videos_are_what_it_is_fitted_to(whole_run: Path, store: Store) -> None:
    fitted = read_card(whole_run).calibration
    assert fitted is not None
    assert fitted.source == "the tags of the test videos"
    evidence = judged(read_predictions(whole_run / "predictions.json", store.classes), store.tag_ids())
    assert sum(fitted.found) == len(evidence)
    assert not (whole_run / "held-out.json").exists()


def test_without_them_models_that_have_not_seen_a_video_look_at_it(
    folds: Recipe, untagged: Store, tmp_path: Path
) -> None:
    heard = []

    def hear(_step: str, _completed: float, _total: float, detail: Mapping[str, object]) -> None:
        heard.append(detail.get("held_out"))

    run = train(folds, untagged, tmp_path / "run", execution=ONE, progress=hear)
    assert list(dict.fromkeys(heard)) == ["1/2", "2/2", None]
    held_out = read_predictions(run.held_out, untagged.classes)
    assert set(held_out) == set(untagged.names("train"))
    fitted = read_card(run.path).calibration
    assert fitted is not None
    assert "trained without it" in fitted.source
    assert not (run.path / "folds").exists()
    # each list is that of the model of its own fold, not of the run's
    own = Localizer.load(run.path).store(untagged, "train")
    assert any(own[name].scores.tolist() != found.scores.tolist() for name, found in held_out.items())
    # the run's own model is what it would be without all this
    plain_run = train(
        replace(folds, test=replace(folds.test, confidence_folds=0)), untagged, tmp_path / "plain", execution=ONE
    )
    assert read_card(plain_run.path).calibration is None
    weights = [(one.path / "model" / "model.safetensors").read_bytes() for one in (run, plain_run)]
    assert weights[0] == weights[1]


def test_interrupted_between_folds_it_resumes_to_the_same(folds: Recipe, untagged: Store, tmp_path: Path) -> None:
    whole = train(folds, untagged, tmp_path / "whole", execution=ONE)

    asked = []

    def stop(step: str, completed: float, _total: float, detail: Mapping[str, object]) -> None:
        if detail.get("held_out") == "2/2" and step == "training" and completed >= 1 and not asked:
            asked.append(True)  # a second Ctrl-C would end it at once
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        train(folds, untagged, tmp_path / "run", execution=ONE, progress=stop)
    assert (tmp_path / "run" / "folds" / "1of2" / "evaluation.json").exists()
    train(folds, untagged, tmp_path / "run", execution=ONE, resume=True)
    assert outcome(tmp_path / "run") == outcome(whole.path)


def test_too_few_videos_are_said_and_wrong_numbers_refused(folds: Recipe, untagged: Store, tmp_path: Path) -> None:
    many = replace(folds, epochs=1, test=replace(folds.test, confidence_folds=7))
    with pytest.warns(DataWarning, match="too few training videos for a confidence"):
        run = train(many, untagged, tmp_path / "run", execution=ONE)
    assert read_card(run.path).calibration is None
    with pytest.raises(InputError, match="confidence_folds must be 0, or 2 or more"):
        replace(folds.test, confidence_folds=1)


def test_a_card_without_confidence_loads_and_calibrate_gives_it_one(
    whole_run: Path, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    run = Path(shutil.copytree(whole_run, tmp_path / "run"))
    card = json.loads((run / "model" / "model.json").read_text())
    fitted = card.pop("calibration")
    (run / "model" / "model.json").write_text(json.dumps(card))  # as an older wtal wrote it
    localizer = Localizer.load(run)
    name = store.names("test")[0]
    before = localizer.decide(store.features(name), store.timebase(name))
    assert before.confidence is None
    with pytest.raises(InputError, match="wtal calibrate"):
        localizer.decide(store.features(name), precision=0.8)

    main(["calibrate", str(run), "--features", str(store.path), "--dry-run"])
    assert read_card(run).calibration is None
    main(["calibrate", str(run), "--features", str(store.path)])
    shown = capsys.readouterr().out
    assert "cross-validated" in shown
    again = json.loads((run / "model" / "model.json").read_text())["calibration"]
    assert {**again, "source": ""} == {**fitted, "source": ""}
    with pytest.raises(SystemExit):
        main(["calibrate", str(run), "--features", str(store.path), "--split", "train"])
    assert "has not learned from" in capsys.readouterr().err

    localizer = Localizer.load(run)
    decision = localizer.decide(store.features(name), store.timebase(name))
    assert decision.confidence is None or (decision.confidence >= 0.5).all()
    other = replace(localizer.card.proposer, cut=replace(localizer.card.proposer.cut, min_length=1.0))
    assert localizer.confidence(other) is None  # it was fitted to other instances


def test_the_localizer_itself_still_gives_the_ranked_list(whole_run: Path, store: Store) -> None:
    localizer, name = Localizer.load(whole_run), store.names("test")[0]
    ranked = localizer(store.features(name), store.timebase(name))
    decision = localizer.decide(store.features(name), store.timebase(name))
    assert len(decision) <= len(ranked)
    segments = {tuple(segment) for segment in ranked.segments.tolist()}
    assert {tuple(segment) for segment in decision.instances.segments.tolist()} <= segments
    assert np.all(decision.instances.scores > 0)
