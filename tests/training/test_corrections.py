"""What people correct is learned from: as targets of snippets, as tags, as a detector's boxes; and is on record."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import log_softmax

from small import DETECTOR, RECIPE, outcome
from wtal.annotations import Annotations, Video
from wtal.cli import main
from wtal.corrections import Correction, Corrections, Segment
from wtal.data.store import Store
from wtal.errors import DataWarning, InputError, Interrupted
from wtal.formats import read_predictions, write_annotations
from wtal.forward import packed
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.training import Execution, read_recipe, train
from wtal.training.corrections import snippet_shares

ONE = Execution(threads=1)
Rows = Mapping[str, list[tuple[float, float, str]]]


def saved(path: Path, store: Store, segments: Rows, *, done: bool = True) -> Path:
    """A file of corrections as the server saves it."""
    corrections = Corrections(path)
    for name, given in segments.items():
        parts = tuple(Segment(*one) for one in given)
        corrections.save(name, Correction(0, parts, done, store.records[name].split, store.duration_s(name)))
    return path


@pytest.fixture(scope="module")
def corrected(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All training videos: of the first, its first four seconds are an action; in the second is none; then truth."""
    first, second, *others = store.names("train")
    truth = store.truth().videos
    rows = {
        name: [(*ends, store.classes[c]) for ends, c in zip(one.segments.tolist(), one.class_ids, strict=True)]
        for name in others
        for one in [truth[name].instances]
    }
    path = tmp_path_factory.mktemp("corrections") / "corrections.json"
    return saved(path, store, {first: [(0.0, 4.0, store.classes[1])], second: [], **rows})


@pytest.fixture(scope="module")
def run(store: Store, corrected: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corrected")
    (folder / "tiny.yaml").write_text(RECIPE + "corrections: {weight: 5.0}\n")
    return train(folder / "tiny.yaml", store, folder / "run", corrections=corrected, execution=ONE).path


def test_the_corrected_snippets_are_learned(store: Store, run: Path, whole_run: Path) -> None:
    """The model tells actions and background apart, snippet by snippet, as people have: better than from tags alone."""
    truth = store.truth()

    def surprise(path: Path) -> float:
        model, total = Localizer.load(path).model, 0.0
        for name in store.names("train")[2:]:
            with torch.no_grad():
                output = model(packed([store.features(name)], torch.device("cpu")))
            found = store.timebase(name).instances_to_snippets(truth.videos[name].instances)
            shares = snippet_shares(found, store.length(name), len(store.classes))
            total -= float((shares * log_softmax(output.supervised[0].logits, dim=1).numpy()).sum(axis=1).mean())
        return total

    assert surprise(run) < 0.8 * surprise(whole_run)


def test_the_run_says_what_it_has_learned_from(store: Store, run: Path, corrected: Path) -> None:
    about = json.loads((run / "environment.json").read_text())["corrections"]
    assert about["path"] == str(corrected.resolve())
    kept = json.loads((run / "corrections.json").read_text())["database"]
    first, second = store.names("train")[:2]
    assert kept[first]["annotations"] == [{"label": store.classes[1], "segment": [0.0, 4.0]}]
    assert kept[second]["annotations"] == []


def test_interrupted_it_resumes_to_the_same_bits_without_the_file(
    store: Store, run: Path, corrected: Path, tmp_path: Path
) -> None:
    recipe = run.parent / "tiny.yaml"

    def stop(step: str, _completed: float, _total: float, at: Mapping[str, Any]) -> None:
        if step == "training" and (at["epoch"], at["step"]) == (3, 2):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        train(recipe, store, tmp_path / "run", corrections=corrected, execution=ONE, progress=stop)
    other = saved(tmp_path / "other.json", store, {store.names("train")[0]: []})
    with pytest.raises(InputError, match="begun with other corrections"):
        train(recipe, store, tmp_path / "run", resume=True, corrections=other, execution=ONE)
    train(recipe, store, tmp_path / "run", resume=True, execution=ONE)
    assert outcome(tmp_path / "run") == outcome(run)


def test_a_run_without_corrections_takes_none_later(store: Store, whole_run: Path, corrected: Path) -> None:
    with pytest.raises(InputError, match="begun without corrections"):
        train(whole_run.parent / "tiny.yaml", store, whole_run, resume=True, corrections=corrected, execution=ONE)


def test_a_detector_is_taught_the_segments_in_place_of_its_teachers_boxes(
    store: Store, whole_run: Path, corrected: Path, tmp_path: Path
) -> None:
    (tmp_path / "detector.yaml").write_text(DETECTOR)
    arguments = ["train", tmp_path / "detector.yaml", "--data", store.path, "--teacher", whole_run, "--threads", 1]
    main([*map(str, arguments), "--run", str(tmp_path / "run"), "--corrections", str(corrected)])
    boxes = read_predictions(tmp_path / "run" / "boxes.json", store.classes)
    first, second, third = store.names("train")[:3]
    assert boxes[first].segments.round(6).tolist() == [[0.0, 4.0]]
    assert (boxes[first].scores.tolist(), boxes[first].class_ids.tolist()) == ([1.0], [1])
    assert len(boxes[second]) == 0
    truth = store.truth().videos[third].instances
    np.testing.assert_allclose(np.sort(boxes[third].segments, axis=0), np.sort(truth.segments, axis=0), atol=1e-6)


@pytest.mark.parametrize("name", ["my-videos", "thumos14-gaufuse", "thumos14-detector"])
def test_shipped_recipes_say_how_corrections_count(name: str) -> None:
    assert read_recipe(name).corrections.weight == 1.0


def test_a_detectors_recipe_has_no_weight_of_corrections(tmp_path: Path) -> None:
    (tmp_path / "detector.yaml").write_text(DETECTOR + "corrections: {weight: 2.0}\n")
    with pytest.raises(InputError, match="corrections does nothing in a detector's recipe"):
        read_recipe(tmp_path / "detector.yaml")


@pytest.mark.parametrize(
    ("video", "label", "said"),
    [
        ("test_00000", "action 0", "corrects test_00000, a video of the split test"),
        ("train_00099", "action 0", "corrects the video train_00099, which .* does not have"),
        ("train_00000", "jump", "has the class 'jump'"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_by_name(
    store: Store, recipe: Path, tmp_path: Path, video: str, label: str, said: str
) -> None:
    made = Annotations((label,), {video: Video("train", 20.0, Instances([[1.0, 2.0]]))})
    write_annotations(tmp_path / "c.json", made)
    with pytest.raises(InputError, match=said):
        train(recipe, store, tmp_path / "run", corrections=tmp_path / "c.json", execution=ONE)
    assert not (tmp_path / "run").exists()


def test_videos_that_are_not_done_are_left_out(store: Store, recipe: Path, tmp_path: Path) -> None:
    path = saved(tmp_path / "c.json", store, {store.names("train")[0]: [(1.0, 2.0, store.classes[0])]}, done=False)
    with pytest.warns(DataWarning, match="not marked as done"), pytest.raises(InputError, match="nothing to learn"):
        train(recipe, store, tmp_path / "run", corrections=path, execution=ONE)


def test_shares_of_snippets_are_what_segments_cover() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        starts = rng.uniform(0, 8, 3)
        found = Instances(np.stack([starts, starts + rng.uniform(0.2, 4, 3)], 1), class_ids=[0, 0, 1], unit="snippets")
        shares = snippet_shares(found, 10, 2)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        fine = (np.arange(10_000) + 0.5) / 1000
        none = ~((fine[:, None] > found.starts) & (fine[:, None] < found.ends)).any(axis=1)
        none = none.reshape(10, 1000).mean(axis=1)
        assert ((shares[:, 2] > 1e-9) <= (none > 0)).all()
        assert (shares[none > 0.9999, 2] > 0.999).all()
