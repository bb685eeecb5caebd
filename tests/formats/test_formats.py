import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import instances
from wtal.annotations import Annotations, Video
from wtal.errors import DataWarning, InputError
from wtal.formats import read_annotations, read_predictions, write_annotations, write_predictions
from wtal.instances import Instances

CLASSES = ("Dive", "Jump", "Läufer, schnell")
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(str.strip)


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def same(a, b):
    a, b = a.sorted(), b.sorted()
    np.testing.assert_array_equal(a.segments, b.segments)
    np.testing.assert_array_equal(a.scores, b.scores)
    np.testing.assert_array_equal(a.class_ids, b.class_ids)


@pytest.mark.parametrize("suffix", ["json", "csv"])
@given(found=st.dictionaries(names, instances(), max_size=3))
def test_predictions_come_back_as_they_went(tmp_path_factory, suffix, found):
    path = tmp_path_factory.mktemp("predictions") / f"pred.{suffix}"
    write_predictions(path, found, CLASSES)
    back = read_predictions(path, CLASSES)
    assert suffix == "csv" or list(back) == sorted(found)
    for name, each in found.items():
        same(each, back.get(name, Instances.empty()))


def test_the_order_of_instances_does_not_show_in_the_file(tmp_path):
    found = Instances([[1.0, 2.0], [1.0, 3.0], [0.0, 1.0]], scores=[0.5, 0.5, 0.9], class_ids=[0, 1, 2])
    for suffix in ("json", "csv"):
        write_predictions(tmp_path / f"a.{suffix}", {"v": found, "u": found}, CLASSES)
        write_predictions(tmp_path / f"b.{suffix}", {"u": found[::-1], "v": found[[1, 2, 0]]}, CLASSES)
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_annotations_come_back_as_they_went(tmp_path):
    truth = Annotations(
        CLASSES,
        {
            "b": Video("test", 12.5, Instances([[3.0, 4.0], [1.0, 2.0]], class_ids=[0, 2])),
            "a": Video("train", None, Instances([[0.1, 0.2]], class_ids=[1])),
            "c": Video("test", 3.0, Instances.empty()),
        },
    )
    write_annotations(tmp_path / "gt.json", truth)
    back = read_annotations(tmp_path / "gt.json")
    assert back.classes == CLASSES
    for name, video in truth.videos.items():
        assert (back.videos[name].split, back.videos[name].duration_s) == (video.split, video.duration_s)
        same(back.videos[name].instances, video.instances)


def test_the_reader_is_tolerant(tmp_path):
    content = {
        "version": "x",
        "taxonomy": [{"nodeId": 1}],
        "database": {
            "a": {
                "subset": "test",
                "duration": "9.5",
                "fps": 25,
                "annotations": [{"label": "Run", "segment": ["1", " 2.5 "], "id": 3}],
            },
            "b": {"subset": "test", "duration": None, "annotations": []},
            "c": {"subset": "test"},
            "d": {"subset": "train", "duration": -1, "annotations": [{"label": "Jump", "segment": [0, 99]}]},
        },
    }
    read = read_annotations(write(tmp_path / "gt.json", content))
    assert read.classes == ("Jump", "Run")
    assert read.videos["a"].instances.segments.tolist() == [[1.0, 2.5]]
    assert [video.duration_s for video in read.videos.values()] == [9.5, None, None, None]


def test_segments_that_are_none_are_counted_in_one_warning(tmp_path):
    segments = [[1, 2], [3, 3], [5, 4], [0, "nan"], [7, "inf"]]
    content = {"database": {"a": {"subset": "t", "annotations": [{"label": "Run", "segment": s} for s in segments]}}}
    with pytest.warns(DataWarning) as caught:
        read = read_annotations(write(tmp_path / "gt.json", content))
    assert len(caught) == 1
    expected = "left out 4 segment(s) without start < end, the first is annotation 1 of video a: [3.0, 3.0]"
    assert expected in str(caught[0].message)
    assert "gt.json" in str(caught[0].message)
    assert len(read.videos["a"].instances) == 1


BAD_ANNOTATIONS = {
    "cut in half": ('{"database": {"a": {"subset": "te', "not whole JSON.*line 1"),
    "empty file": ("", "not whole JSON"),
    "a list": ([], "wanted an object with the key 'database', got a list"),
    "predictions": ({"results": {}}, r"no key 'database'; the file has \['results'\]"),
    "a list of videos": ({"database": []}, "must map video names"),
    "a video that is a list": ({"database": {"v7": []}}, "video v7 must have an object, got a list"),
    "no subset": ({"database": {"v7": {"annotations": []}}}, "video v7 has no subset"),
    "annotations that are none": (
        {"database": {"v7": {"subset": "t", "annotations": {"label": "Run"}}}},
        "annotations of video v7 must be a list, got a object",
    ),
    "no label": (
        {"database": {"v7": {"subset": "t", "annotations": [{"segment": [0, 1]}]}}},
        "annotation 0 of video v7 has no label",
    ),
    "no segment": (
        {"database": {"v7": {"subset": "t", "annotations": [{"label": "Run"}]}}},
        "annotation 0 of video v7 needs a segment",
    ),
    "three bounds": (
        {"database": {"v7": {"subset": "t", "annotations": [{"label": "Run", "segment": [1, 2, 3]}]}}},
        "annotation 0 of video v7 needs a segment",
    ),
    "words": (
        {"database": {"v7": {"subset": "t", "annotations": [{"label": "Run", "segment": [1, "two"]}]}}},
        "the end of annotation 0 of video v7 is 'two', not a number",
    ),
}


@pytest.mark.parametrize("kind", BAD_ANNOTATIONS)
def test_bad_annotations_name_the_file_and_the_culprit(tmp_path, kind):
    content, message = BAD_ANNOTATIONS[kind]
    with pytest.raises(InputError, match=message) as caught:
        read_annotations(write(tmp_path / "truth.json", content))
    assert "truth.json" in str(caught.value)


def one(**changes):
    entry = {"label": "Dive", "score": 0.5, "segment": [1, 2]} | changes
    return {"results": {"v7": [{name: value for name, value in entry.items() if value is not ...}]}}


BAD_PREDICTIONS = {
    "cut in half": (json.dumps(one())[:40], "not whole JSON"),
    "a number": ("5", "got a number"),
    "a video without a list": ({"results": {"v7": {}}}, "video v7 must have a list, got a object"),
    "an entry that is none": ({"results": {"v7": [[1, 2, 0.5]]}}, "prediction 0 of video v7 must be an object"),
    "no score": (one(score=...), "prediction 0 of video v7 has no score"),
    "no segment": (one(segment=...), "prediction 0 of video v7 needs a segment"),
    "no label": (one(label=...), "prediction 0 of video v7 has no label"),
    "a label in another case": (one(label="dive"), r"has label 'dive', .* 3 classes \(did you mean Dive"),
    "an unknown label": (one(label="Xyzzy"), "prediction 0 of video v7 has label 'Xyzzy'"),
    "a label number": (one(label=3), "wanted a class name, got 3"),
    "a score that is nan": (one(score=float("nan")), "score of prediction 0 of video v7 is nan"),
    "a score that is a word": (one(score="high"), "score of prediction 0 of video v7 is 'high'"),
}


@pytest.mark.parametrize("kind", BAD_PREDICTIONS)
def test_bad_predictions_name_the_file_and_the_culprit(tmp_path, kind):
    content, message = BAD_PREDICTIONS[kind]
    with pytest.raises(InputError, match=message) as caught:
        read_predictions(write(tmp_path / "found.json", content), CLASSES)
    assert "found.json" in str(caught.value)


def test_an_unknown_suffix_is_refused_before_anything_is_written(tmp_path):
    for name, got in (("found.pkl", "ends with .pkl"), ("found", "has no ending")):
        with pytest.raises(InputError, match=f"{got}; files of instances end with .json, .csv"):
            write_predictions(tmp_path / name, {}, CLASSES)
        with pytest.raises(InputError, match=got):
            read_predictions(tmp_path / name, CLASSES)
    assert not list(tmp_path.iterdir())


BAD_CSV = {
    "no header": ("a,Dive,1,2,0.5\n", "no column video"),
    "no score": ("video,label,start,end\na,Dive,1,2\n", "holds annotations, which have no score"),
    "empty": ("", "no column video, label"),
    "a short line": ("video,label,start,end,score\na,Dive,1,2,0.5\na,Dive,1,2\n", "line 3 is not whole"),
    "a word": ("video,label,start,end,score\na,Dive,one,2,0.5\n", "the start of line 2 is 'one'"),
    "an unknown label": ("video,label,start,end,score\na,Xyzzy,1,2,0.5\n", "line 2 has label 'Xyzzy'"),
}


@pytest.mark.parametrize("kind", BAD_CSV)
def test_bad_csv_names_the_file_and_the_line(tmp_path, kind):
    content, message = BAD_CSV[kind]
    with pytest.raises(InputError, match=message) as caught:
        read_predictions(write(tmp_path / "found.csv", content), CLASSES)
    assert "found.csv" in str(caught.value)


def test_csv_takes_columns_in_any_order(tmp_path):
    path = write(tmp_path / "found.csv", "score,end,start,note,label,video\n0.5,2,1,x,Dive,a\n0.4,1,1,x,Dive,a\n")
    with pytest.warns(DataWarning, match=r"left out 1 segment.*line 3"):
        found = read_predictions(path, CLASSES)
    assert found["a"].segments.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_files_that_are_not_there_or_not_text(tmp_path, suffix):
    with pytest.raises(InputError, match=r"cannot read .*nothing"):
        read_predictions(tmp_path / f"nothing.{suffix}", CLASSES)
    binary = tmp_path / f"binary.{suffix}"
    binary.write_bytes(b"\xff\xfe\x00\x80" * 50)
    with pytest.raises(InputError, match=r"binary\..* is not a text file"):
        read_predictions(binary, CLASSES)


@pytest.mark.parametrize("suffix", ["json", "csv"])
@pytest.mark.parametrize(
    ("found", "classes", "message"),
    [
        ({"v7": Instances([[1.0, 2.0]], class_ids=[3])}, CLASSES, "video v7 .* class number 3, but .* 3 classes"),
        ({"": Instances([[1.0, 2.0]])}, CLASSES, "a video needs a name"),
        ({"a": Instances([[1.0, 2.0]])}, ("Run", "Run"), "must differ"),
    ],
)
def test_the_writer_is_strict_and_leaves_no_file_behind(tmp_path, suffix, found, classes, message):
    with pytest.raises(InputError, match=message):
        write_predictions(tmp_path / f"found.{suffix}", found, classes)
    assert list(tmp_path.iterdir()) == []
