"""The page about runs: all of it is there, and what is missing is named."""

import json
import re
import shutil
from pathlib import Path

import pytest

from small import DETECTOR, make_store
from wtal.card import read_card
from wtal.cli import main
from wtal.data.store import Store
from wtal.decide import decide
from wtal.errors import InputError
from wtal.figures.table import Measure
from wtal.figures.timeline import timeline
from wtal.formats import read_predictions, write_predictions
from wtal.report.build import build, report
from wtal.report.runs import load
from wtal.report.summary import _difference
from wtal.report.videos import evenly
from wtal.training import Execution, train


def copied(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder / run.name))


def table(page, name):
    return next(table for table in page.tables() if table.name == name)


def test_the_summary_is_the_runs_evaluation_with_its_spread_over_seeds(runs: list[Path]) -> None:
    page = build(load(runs))
    scores = [json.loads((run / "evaluation.json").read_text())["thumos14"]["average"]["0.1:0.7"] for run in runs]
    tiny, base = table(page, "scores-thumos14").rows
    assert (tiny[0], tiny[1], base[0], base[1]) == ("tiny", "0, 1", "base", "0")
    assert tiny[-2] == Measure((scores[0], scores[1]))
    assert base[-2] == Measure((scores[2],))
    # the difference to the first recipe, whose spread nobody knows from one seed
    assert tiny[-1] is None
    assert base[-1] == f"{scores[2] - (scores[0] + scores[1]) / 2:+.1f} ?"
    each = table(page, "runs-thumos14")
    assert [row[0] for row in each.rows] == ["tiny-seed0", "tiny-seed1", "base-seed0"]
    assert page.problems == ()


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    main(["report", *map(str, runs), "-o", str(out), "--tables", str(tmp_path / "tables")])
    text = out.read_text()
    for name in (
        *("summary", "videos", "found", "confidence", "training"),
        *("classes", "precision", "errors", "labels", "configuration"),
    ):
        assert f'<section id="{name}">' in text
    for name in ("map-over-tiou", "map-over-epochs", "losses", "classes", "precision-recall", "errors", "labels"):
        assert f'id="figure-{name}"' in text
    assert "<script" not in text
    addresses = set(re.findall(r'(?:src|href)="([^"#]+)', text)) | set(re.findall(r"url\(([^#)][^)]*)\)", text))
    assert {address.partition(":")[0] for address in addresses} == {"data"}
    identities = re.findall(r' id="([^"]+)"', text)
    assert len(identities) == len(set(identities))
    assert (tmp_path / "tables" / "scores-thumos14.tex").exists()


def test_the_same_runs_give_the_same_page(runs: list[Path], tmp_path: Path) -> None:
    report(runs[:1], tmp_path / "a.html")
    report(runs[:1], tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_what_is_not_a_run_is_refused(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    broken = copied(runs[0], tmp_path)
    (broken / "environment.json").write_text('{"data": ')
    for folder, message in (
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path / "empty", "is not a run: it has no config.yaml"),
        (broken, "environment.json"),
    ):
        with pytest.raises(SystemExit):
            main(["report", str(runs[0]), str(folder), "-o", str(tmp_path / "r.html")])
        said = capsys.readouterr().err
        assert str(folder) in said
        assert message in said
        assert not (tmp_path / "r.html").exists()


def test_runs_over_different_data_are_refused(runs: list[Path], tmp_path: Path) -> None:
    other = copied(runs[0], tmp_path)
    about = json.loads((other / "environment.json").read_text())
    about["data"]["fingerprint"] = "0" * 32
    (other / "environment.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="over different data"):
        load([runs[0], other])


def test_a_run_that_has_not_ended_is_named_and_the_rest_is_shown(runs: list[Path], tmp_path: Path) -> None:
    begun = copied(runs[1], tmp_path)
    shutil.rmtree(begun / "model")
    for name in ("predictions.json", "evaluation.json"):
        (begun / name).unlink()
    lines = (begun / "metrics.jsonl").read_text().splitlines()
    (begun / "metrics.jsonl").write_text("\n".join([*lines[:3], '{"epoch": 3, "lo']))
    page = report([runs[0], begun], tmp_path / "r.html")
    assert table(page, "scores-thumos14").rows[0][1] == "0"
    said = " ".join(page.problems)
    assert "tiny-seed1: has not ended: " in said
    assert "line 4 of metrics.jsonl cannot be read" in said
    text = (tmp_path / "r.html").read_text()
    assert "has not ended" in text
    alone = report([begun], tmp_path / "alone.html")
    assert "scores-thumos14" not in [table.name for table in alone.tables()]
    assert [section.name for section in alone.sections] == ["training", "labels", "configuration"]


def test_missing_labels_model_and_evaluation_are_named(runs: list[Path], tmp_path: Path) -> None:
    run = copied(runs[0], tmp_path)
    (run / "targets" / "epoch-0004.npz").unlink()
    (run / "evaluation.json").unlink()
    (run / "model" / "model.safetensors").write_bytes(b"no weights")
    page = report([run], tmp_path / "r.html")
    said = " ".join(page.problems)
    assert "labels of epoch 4 are missing" in said
    assert "has no evaluation.json" in said
    assert "no activation curves, since its model cannot be used" in (tmp_path / "r.html").read_text()


def test_scores_that_are_not_those_of_the_predictions_are_named(runs: list[Path], tmp_path: Path) -> None:
    run = copied(runs[0], tmp_path)
    scores = json.loads((run / "evaluation.json").read_text())
    scores["thumos14"]["map"][0] += 20
    (run / "evaluation.json").write_text(json.dumps(scores))
    assert any("is not the score of predictions.json" in problem for problem in build(load([run])).problems)


def test_a_data_set_that_has_moved_is_named_or_given(runs: list[Path], store: Store, tmp_path: Path) -> None:
    run = copied(runs[0], tmp_path)
    about = json.loads((run / "environment.json").read_text())
    about["data"]["path"] = str(tmp_path / "gone")
    (run / "environment.json").write_text(json.dumps(about))
    page = build(load([run]))
    assert any("gone is not there" in problem and "--data" in problem for problem in page.problems)
    assert "errors" not in [table.name for table in page.tables()]
    given = build(load([run], data=store.path))
    assert "errors" in [table.name for table in given.tables()]
    other = make_store(tmp_path / "other", seed=5)
    with pytest.raises(InputError, match=f"{other.path} is not the data set of {run.name}"):
        load([run], data=other.path)


@pytest.fixture
def without_truth(runs: list[Path], store: Store, tmp_path: Path) -> tuple[Path, Path]:
    """A run of somebody who has tags and no times, and its data set."""
    data = Path(shutil.copytree(store.path, tmp_path / "store"))
    (data / "gt.json").unlink()
    run = copied(runs[0], tmp_path)
    (run / "evaluation.json").write_text("{}")
    return run, data


def test_without_truth_the_page_is_about_what_was_found_and_tags(
    without_truth: tuple[Path, Path], store: Store, tmp_path: Path
) -> None:
    run, data = without_truth
    page = report([run], tmp_path / "r.html", data=data)
    names = [section.name for section in page.sections]
    assert names == ["summary", "videos", "found", "confidence", "training", "configuration"]
    assert page.problems == ()
    assert all(section.blocks for section in page.sections)
    (choice,) = page.choices()
    assert {title for title, _ in choice.options} == set(store.names("test"))

    # the table is what the decisions and the tags say, counted another way
    found = read_predictions(run / "predictions.json", store.classes)
    confidence = read_card(run).calibration
    tags = store.tag_ids()
    pairs = {(v, c) for v, one in found.items() for c in decide(one, confidence).instances.class_ids.tolist()}
    carried = {(v, c) for v in found for c in tags[v]}
    everything = table(page, "found-classes").rows[0]
    assert [cell.mean for cell in everything[1:3]] == [len(carried), len(pairs)]
    right = len(pairs & carried)
    assert everything[3].mean == pytest.approx(100 * right / len(pairs))
    assert everything[4].mean == pytest.approx(100 * right / len(carried))
    assert len(table(page, "doubtful").rows) == len(found)
    assert "not of the times" in (tmp_path / "r.html").read_text()


def test_without_test_videos_it_is_about_held_out_training_videos(
    without_truth: tuple[Path, Path], store: Store
) -> None:
    run, data = without_truth
    ranked = read_predictions(run / "predictions.json", store.classes)
    name = store.names("train")[0]
    (run / "predictions.json").unlink()
    write_predictions(run / "held-out.json", {name: next(iter(ranked.values()))}, store.classes)
    page = build(load([run], data=data))
    found = next(section for section in page.sections if section.name == "found")
    assert "by a model that was trained without it" in found.blocks[0].text
    assert [row[0] for row in table(page, "doubtful").rows] == [name]


def test_a_difference_within_the_spread_of_seeds_is_marked() -> None:
    near, far = Measure((45.0, 47.0)), Measure((55.0, 55.5))
    assert _difference(near, Measure((45.0, 46.0))) == "+0.5 ≈"
    assert _difference(far, near) == "+9.2"
    assert _difference(None, near) is None


def test_many_videos_are_taken_evenly_from_the_worst_to_the_best() -> None:
    names = [f"v{number:03d}" for number in range(99)]
    chosen = evenly(names, 24)
    assert (chosen[0], chosen[-1], len(chosen)) == ("v000", "v098", 24)
    assert evenly(names[:5], 24) == names[:5]


def test_who_of_a_pair_found_what_is_shown(
    runs: list[Path], store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taught.yaml").write_text(DETECTOR)
    pair = train(tmp_path / "taught.yaml", store, tmp_path / "taught", teacher=runs[0], execution=Execution(threads=1))
    drawn = []
    monkeypatch.setattr(
        "wtal.report.videos.timeline", lambda rows, **how: drawn.append(list(rows)) or timeline(rows, **how)
    )
    page = build(load([pair.path]))
    assert drawn
    assert all(rows[-2:] == ["rskp alone", "detector alone"] for rows in drawn)
    assert "what each would choose alone" in page.sections[1].blocks[0].text
    data = Path(shutil.copytree(store.path, tmp_path / "store"))
    (data / "gt.json").unlink()
    (pair.path / "evaluation.json").write_text("{}")
    drawn.clear()
    build(load([pair.path], data=data))
    assert drawn
    assert all([row.partition("\n")[2] for row in rows[-2:]] == ["rskp alone", "detector alone"] for rows in drawn)


def test_one_seed_twice_is_said(runs: list[Path], tmp_path: Path) -> None:
    page = build(load([runs[0], copied(runs[0], tmp_path)]))
    assert any("several runs have the seed 0" in problem for problem in page.problems)
    assert table(page, "scores-thumos14").rows[0][-1].spread == 0.0  # one recipe alone has no Δ


def test_many_classes_are_the_best_and_the_worst(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wtal.report.breakdown.MANY_CLASSES", 2)
    page = build(load(runs[:1]))
    classes = next(section for section in page.sections if section.name == "classes")
    assert "the best and the worst" in classes.blocks[0].caption
