"""Files as people have them: what is unambiguous is read, and the rest says what to do."""

import numpy as np
import pytest

from wtal.annotations import Annotations, Video
from wtal.cli import main
from wtal.data.check import check_features
from wtal.data.source import Given
from wtal.data.tags import read_tagged, tags_from_csv
from wtal.data.truth import matched
from wtal.errors import DataWarning, InputError
from wtal.formats import write_annotations
from wtal.instances import Instances
from wtal.timebase import TimeBase


def tags(path, content):
    path.write_bytes(content)
    return {name: (record.split, record.tags) for name, record in tags_from_csv(path, TimeBase()).items()}


@pytest.mark.parametrize(
    "content",
    [
        b"video;label;split\na;Run;train\nb;Jump;test\n",
        b"Video\tLabel\tSplit\r\na\tRun\ttrain\r\nb\tJump\ttest\r\n",
        b"\xef\xbb\xbfvideo,label,split\na,Run,train\nb,Jump,test\n,,\n",
        "video;label;split\na;Run;train\nb;Jump;test\n".encode("utf-16"),
    ],
)
def test_spreadsheets_are_read(tmp_path, content):
    assert tags(tmp_path / "t.csv", content) == {"a": ("train", ("Run",)), "b": ("test", ("Jump",))}


def test_a_decimal_comma_is_read_where_columns_are_apart_by_semicolons(tmp_path):
    (tmp_path / "t.csv").write_text("video;label;duration_s\na;Run;12,5\n")
    assert tags_from_csv(tmp_path / "t.csv", TimeBase())["a"].duration_s == 12.5


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("video,label\na,Prüfung\n".encode("latin-1"), "Windows-1252"),
        (b"video,label,notes\na,Run,nice\n", "no use for column.s. notes"),
        (b"video,label\na,serve\nb,Serve\n", "'Serve' and 'serve' are 2 classes"),
    ],
)
def test_what_may_be_meant_otherwise_is_a_warning(tmp_path, content, said):
    with pytest.warns(DataWarning, match=said):
        assert "a" in tags(tmp_path / "t.csv", content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"video,label,spilt\na,Run,test\n", "unknown column spilt .did you mean split"),
        ("video,label\na,Run\n".encode("utf-16-le"), "save it as CSV UTF-8"),
        (b"video,label\na,Run, fast\n", "wanted 2 values .video,label., got 3"),
        (b"video,label,label\na,Run,Jump\n", "more than one column label"),
    ],
)
def test_the_rest_says_what_to_do(tmp_path, content, said):
    with pytest.raises(InputError, match=said):
        tags(tmp_path / "t.csv", content)


def test_a_still_clip_is_a_warning_and_broken_features_are_errors():
    still = {"rgb": np.ones((5, 3)), "motion": np.zeros((5, 3))}
    assert {(one.severity, "still picture" in one.fix) for one in check_features("a", still)} == {("warning", True)}
    broken = {"rgb": np.zeros((5, 3)), "motion": np.zeros((5, 3))}
    assert "error" in {one.severity for one in check_features("a", broken)}


def test_truth_is_matched_without_endings_and_what_fits_nothing_is_said():
    video = Video("test", 9.0, Instances.empty())
    truth, said = matched(Annotations(("Run",), {"a.mp4": video}), ["a", "b"])
    assert list(truth.videos) == ["a"]
    assert not said
    _, said = matched(Annotations(("Run",), {"x": video}), ["a"])
    assert "there will be no score" in str(said[0])


@pytest.mark.parametrize(
    ("recipe", "content", "said"),
    [
        ("recipes/my-video.yaml", "video,label\na,Run\n", "did you mean my-videos"),
        ("my-videos", "video,label,split\na,Run,test\n", "trains on the videos of split train"),
        ("my-videos", "video,label\na,\n", "nothing to learn from"),
        ("my-videos", "video;name\n", "must start with a line"),
        ("demo-detector", "video,label\na,Run\n", "needs a trained run to learn from: --teacher RUN"),
    ],
)
def test_training_on_videos_is_checked_before_extraction(tmp_path, capsys, monkeypatch, recipe, content, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wtal.cli.extract.extract", lambda *_, **__: pytest.fail("extraction has begun"))
    (tmp_path / "tags.csv").write_text(content)
    with pytest.raises(SystemExit) as ended:
        main(["train", recipe, "--videos", "videos", "--tags", "tags.csv"])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_folder_that_holds_a_run_is_refused_before_extraction(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wtal.cli.extract.extract", lambda *_, **__: pytest.fail("extraction has begun"))
    (tmp_path / "tags.csv").write_text("video,label\na,Run\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("")
    given = ["--videos", "v", "--tags", str(tmp_path / "tags.csv"), "--run", str(tmp_path / "run")]
    with pytest.raises(SystemExit):
        main(["train", "my-videos", *given])
    assert "holds a run already" in capsys.readouterr().err


def test_the_check_before_extraction_leaves_warnings_to_it(tmp_path, capsys, monkeypatch):
    def begun(*_, **__):
        raise InputError("extraction has begun")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wtal.cli.extract.extract", begun)
    (tmp_path / "tags.csv").write_text("video,label,notes\na,Run,nice\n")
    with pytest.raises(SystemExit):
        main(["train", "my-videos", "--videos", "videos", "--tags", "tags.csv"])
    said = capsys.readouterr().err
    assert "extraction has begun" in said
    assert "notes" not in said


def test_annotations_may_name_the_files_that_are_to_be_tagged_by_them(tmp_path):
    video = Video("training", 9.0, Instances([[1.0, 2.0]], class_ids=[0]))
    write_annotations(tmp_path / "gt.json", Annotations(("Run",), {"a.mp4": video, "b": video}))
    tagged = read_tagged(Given(gt=tmp_path / "gt.json"), ["a", "b"])
    assert list(tagged.videos) == ["a", "b"]
    assert tagged.truth is not None
    assert list(tagged.truth.videos) == ["a", "b"]
