"""The page about runs: all of it is there, and what is missing is named."""

import json
import re
import shutil
from pathlib import Path

import pytest

from small import make_store
from wtal.cli import main
from wtal.data.store import Store
from wtal.errors import InputError
from wtal.figures.table import Measure
from wtal.report.build import build, report
from wtal.report.runs import load


def copied(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder / run.name))


def table(page, name):
    return next(table for table in page.tables() if table.name == name)


def test_the_summary_is_the_runs_evaluation_with_its_spread_over_seeds(runs: list[Path]) -> None:
    page = build(load(runs))
    scores = [json.loads((run / "evaluation.json").read_text())["thumos14"]["average"]["0.1:0.7"] for run in runs]
    tiny, base = table(page, "scores-thumos14").rows
    assert (tiny[0], tiny[1], base[0], base[1]) == ("tiny", "0, 1", "base", "0")
    assert tiny[-1] == Measure((scores[0], scores[1]))
    assert base[-1] == Measure((scores[2],))
    each = table(page, "runs-thumos14")
    assert [row[0] for row in each.rows] == ["tiny-seed0", "tiny-seed1", "base-seed0"]
    assert page.problems == ()


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    main(["report", *map(str, runs), "-o", str(out), "--tables", str(tmp_path / "tables")])
    text = out.read_text()
    for name in ("summary", "training", "classes", "precision", "errors", "labels", "videos", "configuration"):
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
    assert table(alone, "scores-thumos14").rows[0][2:] == ()
    assert "Nothing to show" in (tmp_path / "alone.html").read_text()


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


def test_one_seed_twice_is_said(runs: list[Path], tmp_path: Path) -> None:
    page = build(load([runs[0], copied(runs[0], tmp_path)]))
    assert any("several runs have the seed 0" in problem for problem in page.problems)
    assert table(page, "scores-thumos14").rows[0][-1].spread == 0.0


def test_many_classes_are_the_best_and_the_worst(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wtal.report.breakdown.MANY_CLASSES", 2)
    page = build(load(runs[:1]))
    classes = next(section for section in page.sections if section.name == "classes")
    assert "the best and the worst" in classes.blocks[0].caption
