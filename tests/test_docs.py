"""The how-to pages do what they say: their files are written, their commands are run."""

import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from wtal.cli import main
from wtal.data.synthetic import Difficulty, synthetic_source
from wtal.data.synthetic_annotations import random_annotations
from wtal.data.truth import write_truth
from wtal.data.video_record import VideoRecord
from wtal.data.writer import new_store
from wtal.errors import InputError
from wtal.formats import write_annotations
from wtal.training import Execution, Recipe, train
from wtal.typed import parse

PAGES = Path(__file__).parents[1] / "docs" / "how-to"
EASY = Difficulty(plateau=0.8, context=0.3, scene=0.3, noise=0.6)


def blocks(page, language):
    """The fenced blocks of one language on a page."""
    return re.findall(rf"```{language}\n(.*?)```", (PAGES / page).read_text(encoding="utf-8"), re.DOTALL)


def run_commands(block):
    for line in block.splitlines():
        command, *arguments = shlex.split(line)
        assert command == "wtal"
        main([*arguments, "--threads", "1"] if arguments[0] == "train" else arguments)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_of_ones_own_is_one_file_and_one_recipe(here, monkeypatch, capsys):
    (code,), (recipe,), (commands,) = (blocks("add-a-model.md", kind) for kind in ("python", "yaml", "sh"))
    assert len(code.splitlines()) <= 40
    Path("my_model.py").write_text(code)
    Path("my-recipe.yaml").write_text(recipe)
    monkeypatch.syspath_prepend(str(here))
    try:
        run_commands(commands)
    finally:
        sys.modules.pop("my_model", None)
    assert Path("found.json").read_bytes() == Path("my-run/predictions.json").read_bytes()
    lines = [json.loads(line) for line in Path("my-run/metrics.jsonl").read_text().splitlines()]
    losses = [line["video"] for line in lines if "event" not in line]
    assert losses[-1] < 0.5 * losses[0]
    assert [line["epoch"] for line in lines if line.get("event") == "labels"] == [10, 13]
    assert json.loads(Path("my-run/evaluation.json").read_text())["thumos14"]["average"]["0.1:0.7"] > 10


def write_own_data(folder, *, n_train=40, n_test=10, n_classes=2, background_only=0.15, two_tags=0.2):
    """Features, tags.csv and gt.json as a user has them."""
    rng = np.random.default_rng(0)
    made = random_annotations(
        rng,
        n_train=n_train,
        n_test=n_test,
        n_classes=n_classes,
        duration_s=40.0,
        background_only=background_only,
        two_tags=two_tags,
    )
    source = synthetic_source(made, rng, n_dims=32, difficulty=EASY)
    (folder / "features").mkdir()
    rows = ["video,label,split"]
    for record in source.records:
        streams = source.load(record.name)
        np.save(folder / "features" / f"{record.name}.npy", np.concatenate(list(streams.values()), axis=1))
        rows += [f"{record.name},{tag},{record.split}" for tag in record.tags or ("",)]
    (folder / "tags.csv").write_text("\n".join(rows) + "\n")
    write_truth(folder / "gt.json", made, source.records)
    return source


def test_ones_own_data_from_features_to_scores(here, capsys):
    source = write_own_data(here)
    assert any(len(record.tags) == 2 for record in source.records)
    assert any(not record.tags and record.split == "train" for record in source.records)
    steps, evaluate = blocks("my-own-dataset.md", "sh")
    Path("my-recipe.yaml").write_text(blocks("my-own-dataset.md", "yaml")[0])
    run_commands(steps)
    assert "background only" in capsys.readouterr().out
    run_commands(evaluate)
    assert "thumos14" in capsys.readouterr().out
    run_commands(evaluate.replace("--protocol thumos14", "--json --protocol thumos14"))
    assert json.loads(capsys.readouterr().out)["average"]["0.1:0.7"] > 40


def test_activitynet_from_the_downloads_to_a_score(here, capsys):
    rng = np.random.default_rng(0)
    made = random_annotations(rng, n_train=8, n_test=4, n_classes=3, duration_s=60.0, two_tags=0.0)
    official = {"train": "training", "test": "validation"}
    videos = {name: replace(video, split=official[video.split]) for name, video in made.videos.items()}
    source = synthetic_source(replace(made, videos=videos), rng, n_dims=16, difficulty=EASY)
    write_annotations(here / "activity_net.v1-3.min.json", replace(made, videos=videos))
    (here / "features").mkdir()
    for name in list(videos)[1:]:  # the first has no features
        np.save(here / "features" / f"v_{name}.npy", np.concatenate(list(source.load(name).values()), axis=1))
    (here / "recipes").symlink_to(PAGES.parents[1] / "recipes")
    for block in blocks("activitynet.md", "sh"):
        run_commands(block)
    said = capsys.readouterr().out
    assert "1 of 8 train videos have no features: train_00000" in said
    assert "activitynet13" in said
    for name in ("rskp", "gaufuse"):
        scores = json.loads(Path(f"runs/activitynet13-{name}-seed0/evaluation.json").read_text())["activitynet13"]
        assert scores["n_videos"] == 4
    assert all(json.loads(Path("runs/activitynet13-rskp-seed0/predictions.json").read_text())["results"].values())


def one_class_store(path, *, background_only):
    rng = np.random.default_rng(1)
    made = random_annotations(rng, n_train=40, n_test=16, n_classes=1, duration_s=40.0, background_only=background_only)
    source = synthetic_source(made, rng, n_dims=32, difficulty=EASY)
    with new_store(path, classes=made.classes) as writer:
        for record in source.records:
            writer.add(record, np.concatenate(list(source.load(record.name).values()), axis=1))
        write_truth(writer.folder / "gt.json", made, source.records)
    return path


@pytest.mark.parametrize("background_only", [0.0, 0.3])
@pytest.mark.parametrize("model", ["rskp", "facnet", "bm", "stpn"])
def test_one_class(model, background_only, tmp_path):
    """What the page says of it: fine with two models, little comes of it with two others."""
    given = yaml.safe_load(blocks("my-own-dataset.md", "yaml")[0]) | {"model": model, "model_options": {}}
    store = one_class_store(tmp_path / "store", background_only=background_only)
    run = train(parse(Recipe, given), store, tmp_path / "run", execution=Execution(threads=1))
    average = run.evaluation["thumos14"]["average"]["0.1:0.7"]
    print(f"{model}, {background_only:.0%} of the videos background only: mAP {average:.1f}")
    assert average > 60 if model in ("bm", "stpn") else average < 40


def test_wum_refuses_one_class(tmp_path):
    store = one_class_store(tmp_path / "store", background_only=0.0)
    with pytest.raises(InputError, match="needs two at least; for one class use bm"):
        train(Recipe("wum", 1, ((1, 1e-3),)), store, tmp_path / "run", execution=Execution(threads=1))


def test_videos_without_any_tag_are_refused(tmp_path):
    with new_store(tmp_path / "store", classes=("Run",)) as writer:
        writer.add(VideoRecord("a", "train", ()), np.ones((5, 4), np.float32))
    with pytest.raises(InputError, match=r"none of the 1 training videos .* carries a tag"):
        train(Recipe("rskp", 1, ((1, 1e-3),)), tmp_path / "store", tmp_path / "run", execution=Execution(threads=1))
    assert not (tmp_path / "run").exists()
