"""`wtal localize` as a person with a folder of videos meets it: decisions, broken files, Ctrl-C, and the next day."""

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from videos import write_video
from wtal.cli import main
from wtal.decide import overlaps_little
from wtal.formats import read_predictions
from wtal.localize import Localizer

OWN = """
import numpy as np
calls = []

def waves(frames):
    calls.append(frames.mean())
    scaled = frames.mean() / np.array([5, 10, 20, 40])
    return np.concatenate([np.sin(scaled), np.cos(scaled)])

waves.short_side = 16
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    """Three videos, and a run that was trained on two of them."""
    folder = tmp_path_factory.mktemp("localize")
    (folder / "modules").mkdir()
    (folder / "modules" / "wave_extractor.py").write_text(OWN)
    sys.path.insert(0, str(folder / "modules"))
    videos = folder / "videos"
    for number, name in enumerate("abc"):
        write_video(videos / f"{name}.mp4", np.random.default_rng(number).uniform(0, 250, 90).repeat(2), size=(32, 24))
    (folder / "tags.csv").write_text("video,label,split\nb,Rise,train\nc,Fall,train\na,Rise,test\n")
    (folder / "tiny.yaml").write_text(
        "model: rskp\nepochs: 2\nlearning_rate: [[2, 1e-3]]\nmodel_options: {hidden: 8}\n"
        "test: {proposer: {cut: {class_threshold: 0.0, thresholds: [0.0001, 0.2, 0.3, 0.4], min_length: 1.0}}}\n"
    )
    command = ["train", str(folder / "tiny.yaml"), "--videos", str(videos), "--tags", str(folder / "tags.csv")]
    main([*command, "--extractor", "wave_extractor:waves", "--run", str(folder / "run"), "--threads", "1"])
    yield folder
    sys.path.remove(str(folder / "modules"))
    sys.modules.pop("wave_extractor", None)


@pytest.fixture
def calls(made: Path) -> list[float]:
    """Grows by one for each snippet that is looked at."""
    import wave_extractor

    wave_extractor.calls.clear()
    return wave_extractor.calls


@pytest.fixture
def videos(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "videos", tmp_path / "videos"))


def ended(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main(["localize", *map(str, arguments)])
    return end.value.code


def test_a_decision_by_default_and_the_ranked_list_on_request(made: Path, videos: Path, tmp_path: Path, capsys) -> None:
    run, few, everything = made / "run", tmp_path / "few.json", tmp_path / "all.json"
    main(["localize", str(run), str(videos), "-o", str(few)])
    shown = capsys.readouterr()
    assert "confidence" in shown.out
    assert " %" in shown.out
    assert "not of the times" in shown.err
    main(["localize", str(run), str(videos), "-o", str(everything), "--all"])
    classes = Localizer.load(run).classes
    decided, ranked = (read_predictions(path, classes) for path in (few, everything))
    assert all(overlaps_little(found) for found in decided.values())
    assert sum(map(len, decided.values())) < sum(map(len, ranked.values()))
    assert all(0 <= score <= 1 for found in decided.values() for score in found.scores)
    written = json.loads((run / "predictions.json").read_text())["results"]["a"]
    assert json.loads(everything.read_text())["results"]["a"] == written


def test_the_same_command_does_only_what_is_missing(made: Path, videos: Path, tmp_path: Path, capsys, calls) -> None:
    command = ["localize", str(made / "run"), str(videos), "-o", str(tmp_path / "found.csv")]
    (videos / "c.mp4").rename(tmp_path / "c.mp4")
    main(command)
    first, before = (tmp_path / "found.csv").read_text(), len(calls)
    main(command)
    assert len(calls) == before
    assert (tmp_path / "found.csv").read_text() == first
    (tmp_path / "c.mp4").rename(videos / "c.mp4")
    main([*command, "--precision", "0.3"])  # another decision needs no second look
    assert 0 < len(calls) - before < before
    capsys.readouterr()
    again = len(calls)
    main([*command, "--cut.min-length", "2"])
    assert "other settings" in capsys.readouterr().err
    assert len(calls) - again == len(calls[:again])
    shutil.copy(videos / "a.mp4", videos / "c.mp4")  # another video under an old name
    again = len(calls)
    main([*command, "--cut.min-length", "2"])
    assert 0 < len(calls) - again < again


def test_ctrl_c_and_a_kill_lose_nothing(made: Path, videos: Path, tmp_path: Path, capsys, calls, monkeypatch) -> None:
    out = tmp_path / "found.json"
    whole = ["localize", str(made / "run"), str(videos), "-o", str(tmp_path / "whole.json")]
    main(whole)
    per_video = len(calls) // 3
    seen = Localizer.__call__

    def stop_at_third(self, *arguments, **more):
        if len(calls) > 5 * per_video:
            raise KeyboardInterrupt
        return seen(self, *arguments, **more)

    monkeypatch.setattr(Localizer, "__call__", stop_at_third)
    assert ended(made / "run", videos, "-o", out) == 130
    assert "2 of 3 videos are done; the same command goes on" in capsys.readouterr().err
    assert set(json.loads(out.read_text())["results"]) == {"a", "b"}
    monkeypatch.undo()
    journal = tmp_path / ".found.json.done"
    journal.write_text(journal.read_text() + '{"name": "c", "segm')  # killed in the middle of a line
    before = len(calls)
    main(["localize", str(made / "run"), str(videos), "-o", str(out)])
    assert len(calls) - before == per_video
    assert out.read_bytes() == (tmp_path / "whole.json").read_bytes()


def test_a_broken_file_stops_it_or_is_left_out_and_named(made: Path, videos: Path, tmp_path: Path, capsys) -> None:
    (videos / "b.mp4").write_bytes(b"no video")
    content = (videos / "c.mp4").read_bytes()
    out = tmp_path / "found.vtt.json"
    assert ended(made / "run", videos, "-o", out) == 2
    said = capsys.readouterr().err
    assert "b.mp4" in said
    assert "--skip-bad" in said
    assert ended(made / "run", videos, "-o", out, "--skip-bad") == 1
    said = capsys.readouterr().err
    assert "1 of 3 files cannot be read" in said
    assert set(json.loads(out.read_text())["results"]) == {"a", "c"}
    (videos / "b.mp4").write_bytes(content)  # repaired
    main(["localize", str(made / "run"), str(videos), "-o", str(out), "--skip-bad"])
    assert set(json.loads(out.read_text())["results"]) == {"a", "b", "c"}


def test_the_ending_is_the_form_and_an_unknown_one_is_refused_before_any_work(
    made: Path, videos: Path, tmp_path: Path, capsys, calls
) -> None:
    run = made / "run"
    for arguments, message in (
        (["-o", tmp_path / "found.txt"], "does not end with .json"),
        (["-o", tmp_path / "found"], "--form names one"),
        (["-o", tmp_path / "found.srt"], "can hold one video, and there are 3: -o FOLDER --form srt"),
        (["--form", "srt"], "name it with -o"),
        (["--precision", "0.9", "--all"], "leave one of them out"),
        (["--threads", "0"], "--threads must be 1 or more"),
    ):
        assert ended(run, videos, *arguments) == 2
        assert message in capsys.readouterr().err.replace("\n", " ")
    assert not calls
    main(["localize", str(run), str(videos), "-o", str(tmp_path / "subtitles"), "--form", "srt", "--threads", "1"])
    assert sorted(path.name for path in (tmp_path / "subtitles").iterdir()) == ["a.srt", "b.srt", "c.srt"]
    main(["localize", str(run), str(videos / "a.mp4"), "-o", str(tmp_path / "found.vtt")])
    assert (tmp_path / "found.vtt").read_text().startswith("WEBVTT")
    main(["localize", str(run), str(videos / "a.mp4"), "-o", str(tmp_path / "found.html")])
    assert '"least":0.5' in (tmp_path / "found.html").read_text()


def test_help_says_whose_settings_it_shows(made: Path, capsys) -> None:
    for arguments, said in ((["--help"], "the preset recommended"), ([made / "run", "--help"], f"the run {made}")):
        assert ended(*arguments) == 0
        assert said in " ".join(capsys.readouterr().out.split())


def test_a_page_of_video_files_has_what_the_model_finds_and_the_truth(made: Path, tmp_path: Path, capsys) -> None:
    file, page = made / "videos" / "a.mp4", tmp_path / "pages" / "view.html"
    truth = {"a": {"subset": "test", "annotations": [{"label": "Fall", "segment": [1.0, 2.0]}]}}
    (tmp_path / "gt.json").write_text(json.dumps({"database": truth}))
    main(["view", str(made / "run"), str(file), "--truth", str(tmp_path / "gt.json"), "-o", str(page)])
    (one,) = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), flags=re.DOTALL)[1])["payloads"]
    found = Localizer.load(made / "run").video(file)
    assert len(found)
    np.testing.assert_allclose([[i["start"], i["end"]] for i in one["instances"]], found.segments, atol=1e-3)
    assert one["truth"] == [{"start": 1.0, "end": 2.0, "label": "Fall"}]
    assert (page.parent / one["video"]["url"]).resolve() == file
    assert one["video"]["type"] == "video/mp4"
    assert "open it in a browser" in capsys.readouterr().err
