import json

import pytest

from wtal.annotations import Annotations, Video
from wtal.cli.evaluate import evaluate
from wtal.errors import InputError
from wtal.formats import write_annotations, write_predictions
from wtal.instances import Instances


@pytest.fixture
def files(tmp_path):
    classes = ("Jump", "Run")
    truth = Instances([[3.0, 8.0], [20.0, 60.0]], class_ids=[0, 1])
    write_annotations(tmp_path / "gt.json", Annotations(classes, {"a": Video("test", 90.0, truth)}))
    found = Instances([[3.0, 8.0], [70.0, 80.0]], scores=[0.9, 0.4], class_ids=[0, 1])
    write_predictions(tmp_path / "pred.json", {"a": found}, classes)
    write_predictions(tmp_path / "pred.csv", {"a": found}, classes)
    (tmp_path / "unsure.txt").write_text("a  69.0 75.0\n")
    return tmp_path


def test_json_is_one_object_in_percent(files, capsys):
    evaluate(files / "pred.json", files / "gt.json", as_json=True)
    out, err = capsys.readouterr()
    content = json.loads(out)
    assert err == ""
    assert out.count("\n") == 1
    assert content["protocol"] == "thumos14"
    assert content["tiou"] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert content["map"] == [50.0] * 7
    assert content["average"] == {"0.1:0.5": 50.0, "0.3:0.7": 50.0, "0.1:0.7": 50.0}
    assert content["ambiguous"] == {"used": False, "dropped": 0}
    assert (content["n_videos"], content["n_truth"], content["n_predictions"]) == (1, 2, 2)


def test_csv_scores_the_same(files, capsys):
    evaluate(files / "pred.json", files / "gt.json", as_json=True)
    as_json = capsys.readouterr().out
    evaluate(files / "pred.csv", files / "gt.json", as_json=True)
    assert capsys.readouterr().out == as_json


def test_everything_at_once_in_json(files, capsys):
    evaluate(
        files / "pred.json",
        files / "gt.json",
        ambiguous=files / "unsure.txt",
        as_json=True,
        per_class=True,
        diagnose=True,
    )
    content = json.loads(capsys.readouterr().out)
    assert content["ambiguous"] == {"used": True, "dropped": 1}
    assert content["per_class"] == {"Jump": [100.0] * 7, "Run": [0.0] * 7}
    assert content["diagnosis"]["counts"]["true_positive"] == 1
    assert content["diagnosis"]["n_missed"] == 1
    assert content["diagnosis"]["average_recall"]["100"] == 50.0


@pytest.mark.parametrize("unsure", [False, True])
def test_the_table_says_whether_the_ambiguity_list_was_on(files, capsys, unsure):
    path = files / "unsure.txt" if unsure else None
    evaluate(files / "pred.json", files / "gt.json", ambiguous=path, per_class=True, diagnose=True)
    out = capsys.readouterr().out
    assert "thumos14: mAP in percent" in out
    assert "average 0.1:0.7: 50.00" in out
    assert ("ambiguity list on, 1 predictions dropped" in out) is unsure
    assert ("ambiguity list off" in out) is not unsure
    assert "Jump" in out
    assert "bad boundary" in out


def test_what_is_odd_goes_to_stderr(files, capsys):
    predictions = json.loads((files / "pred.json").read_text())
    predictions["results"]["nobody"] = [{"label": "Run", "score": 1.0, "segment": [4, 4]}]
    (files / "odd.json").write_text(json.dumps(predictions))
    evaluate(files / "odd.json", files / "gt.json", as_json=True)
    out, err = capsys.readouterr()
    assert json.loads(out)["map"] == [50.0] * 7
    lines = err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("warning: ") for line in lines)
    assert "prediction 0 of video nobody: [4.0, 4.0]" in lines[0]
    assert "the first is nobody" in lines[1]


def test_decisions_are_noticed_beside_the_table(files, capsys):
    starts = [4.0 * number for number in range(12)]
    apart = Instances([[start, start + 3.0] for start in starts])
    ranked = Instances.concat([apart, Instances([[start, start + 2.0] for start in starts])])
    for name, found, said in (("decided", apart, True), ("ranked", ranked, False)):
        write_predictions(files / f"{name}.json", {"a": found}, ("Jump", "Run"))
        evaluate(files / f"{name}.json", files / "gt.json")
        assert ("wtal localize --all" in capsys.readouterr().err) == said
        evaluate(files / f"{name}.json", files / "gt.json", as_json=True)
        assert capsys.readouterr().err == ""


def test_a_cut_file_is_an_input_error(files):
    text = (files / "pred.json").read_text()
    (files / "half.json").write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match=r"half\.json is not whole JSON"):
        evaluate(files / "half.json", files / "gt.json")


@pytest.mark.parametrize("protocol", ["thumos14-wtalc", "thumos14-paper"])
def test_golden_files_through_the_command(golden, thumos14, capsys, protocol):
    evaluate(
        golden / "fused_released_a.json",
        thumos14 / "gt.json",
        protocol=protocol,
        ambiguous=None if protocol == "thumos14-paper" else thumos14 / "Ambiguous_test.txt",
        unit="snippets",
        as_json=True,
    )
    content = json.loads(capsys.readouterr().out)
    reference = json.loads((golden / "thumos14_scores_a.json").read_text())["fusion_without_ambiguous"]
    assert content["map"] == pytest.approx(reference["wtalc"], abs=0.01)
    assert content["average"]["0.1:0.7"] == pytest.approx(reference["wtalc_avg"], abs=0.01)
    assert content["ambiguous"] == {"used": True, "dropped": 85}
