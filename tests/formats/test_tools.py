"""Files for and from other tools: what goes in comes back, their own files are read, and they read ours."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import instances
from wtal.annotations import Annotations, Video
from wtal.cli import main
from wtal.errors import DataWarning, InputError
from wtal.formats import FORMATS, read, read_predictions, write, write_predictions
from wtal.formats.form import FormatHints
from wtal.instances import Instances

CLASSES = ("<script>alert(1)</script>", "Dive & roll", "Läufer, schnell")
GIVEN = FormatHints(fps=30.0)
#: how far times may move: the formats count milliseconds or frames
STEP_S = {".srt": 1e-3, ".vtt": 1e-3, ".eaf": 1e-3, ".xml": 1 / 30, ".labelstudio.json": 1 / 30}
names = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="/\\\ufffe\uffff"),
    min_size=1,
    max_size=8,
)
names = names.filter(lambda name: name.strip() == name and name not in (".", ".."))


def one_video(found: Instances, name: str = "clip", *, predicted: bool = False) -> Annotations:
    return Annotations(CLASSES, {name: Video("", None, found)}, predicted)


def put(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def rows(content: Annotations, name: str) -> list[tuple[object, ...]]:
    found = content.videos[name].instances
    labels = [content.classes[number] for number in found.class_ids]
    return sorted(zip(found.segments.tolist(), labels, found.scores.tolist(), strict=True))


@pytest.mark.parametrize("suffix", FORMATS)
@settings(max_examples=40)
@given(found=instances(scores=st.floats(0, 1, width=16)), name=names, predicted=st.booleans())
def test_what_is_written_is_read_again(tmp_path_factory, suffix, found, name, predicted):
    path = tmp_path_factory.mktemp("round") / f"found{suffix}"
    content = one_video(found, name, predicted=predicted)
    lost = write(path, content, given=GIVEN)
    back = read(path, CLASSES, given=GIVEN)
    scored = "scores" in FORMATS[suffix].HOLDS
    if suffix == ".csv" and not len(found):  # there is no line for it
        assert (lost, back.videos) == (["1 videos without instances"], {})
        return
    assert lost == ([f"{len(found)} scores"] if predicted and len(found) and not scored else [])
    assert back.predicted is (predicted and scored and (suffix != ".fiftyone.json" or len(found) > 0))
    key = "found" if suffix in (".srt", ".vtt") else name
    assert list(back.videos) == [key]
    again, sent = back.videos[key].instances, found if predicted and scored else found.scored(np.ones(len(found)))
    assert len(again) == len(sent)
    order = [np.lexsort((i.class_ids, i.scores, i.ends, i.starts)) for i in (again, sent)]
    step = STEP_S.get(suffix, 0.0)
    for kind in range(len(CLASSES)):  # rounding may change the order of neighbours
        a, b = (
            np.sort(i[order].of_class(kind).segments, axis=0) for i, order in zip((again, sent), order, strict=True)
        )
        np.testing.assert_allclose(a, b, atol=step + 1e-9)
    np.testing.assert_allclose(np.sort(again.scores), np.sort(sent.scores))
    if suffix != ".csv":
        write(path, replace(content, videos=back.videos), given=GIVEN)
        second = read(path, CLASSES, given=GIVEN)
        np.testing.assert_allclose(
            np.sort(second.videos[key].instances.segments, axis=0), np.sort(again.segments, axis=0)
        )


def test_one_video_a_file_means_a_folder_of_files(tmp_path):
    found = {
        "a": Instances([[1.0, 2.0]]),
        "day 2/b.1": Instances([[3.0, 4.5]], class_ids=[2]),
        "none": Instances.empty(),
    }
    content = Annotations(CLASSES, {name: Video("", None, one) for name, one in found.items()})
    for form in ("srt", "vtt", "eaf", "cvat"):
        folder = tmp_path / form
        write(folder, content, form=form, given=GIVEN)
        back = read(folder, CLASSES, form=form, given=GIVEN)
        if form != "cvat":  # whose tasks know the name of the file only
            assert sorted(back.videos) == sorted(found)
        assert sorted(len(video.instances) for video in back.videos.values()) == [0, 1, 1]
    with pytest.raises(InputError, match=r"found\.srt can hold one video, and there are 3: name a folder"):
        write(tmp_path / "found.srt", content)
    for name in ("../out", "a//b", "/etc/x", "a\\b"):
        with pytest.raises(InputError, match="cannot have a file of its own"):
            write(tmp_path / "folder", one_video(Instances.empty(), name), form="srt")
    assert not (tmp_path / "folder").exists()


def test_frames_need_a_frame_rate(tmp_path):
    content = one_video(Instances([[1.0, 2.0]]))
    for name in ("a.xml", "a.labelstudio.json"):
        with pytest.raises(InputError, match=r"counts in frames.*fps=25"):
            write(tmp_path / name, content)
        write(tmp_path / name, content, given=FormatHints(fps=25))
        with pytest.raises(InputError, match=r"counts in frames.*fps=25"):
            read(tmp_path / name)


# What the tools themselves write, after their documentation.

LABEL_STUDIO = [
    {
        "id": 7,
        "data": {"video": "/data/upload/3/0a1b2c3d-my%20clip.mp4"},
        "annotations": [
            {"id": 1, "was_cancelled": True, "result": []},
            {
                "id": 2,
                "was_cancelled": False,
                "ground_truth": False,
                "result": [
                    {
                        "id": "x1",
                        "type": "timelinelabels",
                        "from_name": "timelineLabels",
                        "to_name": "video",
                        "origin": "manual",
                        "value": {"ranges": [{"start": 1, "end": 50}], "timelinelabels": ["Run"]},
                    },
                    {
                        "id": "x2",
                        "type": "choices",
                        "from_name": "c",
                        "to_name": "video",
                        "value": {"choices": ["Good"]},
                    },
                    {
                        "id": "x3",
                        "type": "labels",
                        "from_name": "tricks",
                        "to_name": "audio",
                        "value": {"start": 3.5, "end": 4.25, "channel": 0, "labels": ["Jump"]},
                    },
                ],
            },
        ],
        "predictions": [{"model_version": "m", "result": []}],
    },
    {"id": 8, "data": {"video": "/data/local-files/?d=clips/other.mp4"}, "annotations": [], "predictions": []},
]

VIA = {
    "project": {"pid": "__VIA_PROJECT_ID__", "rev": "1", "rev_timestamp": "0", "pname": "x", "vid_list": ["1"]},
    "config": {"file": {"loc_prefix": {"1": "", "2": "", "3": "", "4": ""}}},
    "attribute": {
        "1": {
            "aname": "TEMPORAL-SEGMENTS",
            "anchor_id": "FILE1_Z2_XY0",
            "type": 4,
            "options": {"r": "Run", "j": "Jump"},
        },
        "2": {"aname": "box", "anchor_id": "FILE1_Z1_XY1", "type": 1, "options": {}},
    },
    "file": {"1": {"fid": "1", "fname": "my clip.mp4", "type": 4, "loc": 1, "src": ""}},
    "metadata": {
        "1_Ab": {"vid": "1", "flg": 0, "z": [0, 2.0], "xy": [], "av": {"1": "r"}},
        "1_Cd": {"vid": "1", "flg": 0, "z": [3.5, 4.25], "xy": [], "av": {"1": "j"}},
        "1_Ef": {"vid": "1", "flg": 0, "z": [1.0], "xy": [2, 10, 10, 50, 50], "av": {"2": "face"}},
    },
    "view": {"1": {"fid_list": ["1"]}},
}

FIFTYONE = {
    "classes": ["Jump", "Run"],
    "labels": {
        "my clip": [{"label": 1, "support": [1, 50]}, {"label": 0, "timestamps": [3.5, 4.25], "attributes": {}}]
    },
}

EAF = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2022-07-11T10:21:00+10:00" FORMAT="3.0" VERSION="3.0"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">
  <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">
    <MEDIA_DESCRIPTOR MEDIA_URL="file:///D:/clips/my%20clip.mp4" MIME_TYPE="video/mp4"
        RELATIVE_MEDIA_URL="./my%20clip.mp4"/>
    <PROPERTY NAME="lastUsedAnnotationId">3</PROPERTY>
  </HEADER>
  <TIME_ORDER>
    <TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="0"/>
    <TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="2000"/>
    <TIME_SLOT TIME_SLOT_ID="ts3" TIME_VALUE="3500"/>
    <TIME_SLOT TIME_SLOT_ID="ts4" TIME_VALUE="4250"/>
  </TIME_ORDER>
  <TIER LINGUISTIC_TYPE_REF="default-lt" TIER_ID="behaviour">
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
      <ANNOTATION_VALUE>Run</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
  </TIER>
  <TIER LINGUISTIC_TYPE_REF="default-lt" TIER_ID="Jump">
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a2" TIME_SLOT_REF1="ts3" TIME_SLOT_REF2="ts4">
      <ANNOTATION_VALUE></ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
  </TIER>
  <TIER LINGUISTIC_TYPE_REF="note" PARENT_REF="behaviour" TIER_ID="notes">
    <ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a3" ANNOTATION_REF="a1">
      <ANNOTATION_VALUE>fast</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>
  </TIER>
  <LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="default-lt" TIME_ALIGNABLE="true"/>
</ANNOTATION_DOCUMENT>
"""

CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta><task><id>5</id><name>first</name><size>250</size><mode>interpolation</mode>
    <start_frame>0</start_frame><stop_frame>249</stop_frame><frame_filter></frame_filter>
    <labels><label><name>Run</name></label></labels>
    <original_size><width>640</width><height>480</height></original_size><source>my clip.mp4</source></task></meta>
  <track id="0" label="Run" source="manual">
    <box frame="0" outside="0" occluded="0" keyframe="1" xtl="1.0" ytl="1.0" xbr="9.0" ybr="9.0"></box>
    <box frame="1" outside="0" occluded="0" keyframe="0" xtl="1.0" ytl="1.0" xbr="9.0" ybr="9.0"></box>
    <box frame="50" outside="1" occluded="0" keyframe="1" xtl="1.0" ytl="1.0" xbr="9.0" ybr="9.0"></box>
  </track>
  <track id="1" label="Jump" source="manual">
    <polygon frame="88" outside="1" occluded="0" keyframe="1" points="1,1;2,2;3,1"></polygon>
  </track>
  IMAGES
</annotations>
""".replace(
    "IMAGES",
    "".join(f'<image id="{f}" name="frame_{f}"><tag label="Jump" source="manual"/></image>' for f in range(88, 106)),
)

SRT = "\ufeff1\r\n00:00:00,000 --> 00:00:02,000 X1:5 X2:9\r\n{\\an8}<i>Run</i>\r\n\r\n"
SRT += "2\r\n00:00:03.5 --> 00:00:04,250\r\nJump\r\n"
VTT = """WEBVTT - with a title

STYLE
::cue { color: red }

NOTE what follows has no hours

first
00:00.000 --> 00:02.000 align:start
<v Ann>Run</v>

00:00:03.500 --> 00:00:04.250
<c.yellow>Jump</c>
"""

DOCUMENTED = {
    "a.labelstudio.json": LABEL_STUDIO,
    "a.via.json": VIA,
    "a.fiftyone.json": FIFTYONE,
    "my clip.eaf": EAF,
    "a.xml": CVAT,
    "my clip.srt": SRT,
    "my clip.vtt": VTT,
}
SAID = {
    "a.labelstudio.json": "left out 1 of 2 task",
    "a.via.json": "left out 1 annotation",
    "my clip.eaf": "left out 1 annotation",
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_files_as_the_tools_document_them_are_read(tmp_path, name, recwarn):
    path = put(tmp_path / name, DOCUMENTED[name])
    found = read(path, given=FormatHints(fps=25))
    assert list(found.videos) == ["my clip"]
    expected = [([0.0, 2.0], "Run", 1.0), ([3.52, 4.24] if name == "a.xml" else [3.5, 4.25], "Jump", 1.0)]
    assert rows(found, "my clip") == expected
    assert found.predicted is False
    assert [SAID[name] in str(one.message) for one in recwarn] == ([True] if name in SAID else [])


@pytest.mark.parametrize("name", ["a.labelstudio.json", "a.via.json", "a.fiftyone.json"])
@pytest.mark.filterwarnings("ignore::wtal.errors.DataWarning")
def test_whose_json_it_is_says_what_is_in_it(tmp_path, name):
    """Exports have names such as labels.json."""
    known = read(put(tmp_path / name, DOCUMENTED[name]), given=FormatHints(fps=25))
    guessed = read(put(tmp_path / "export.json", DOCUMENTED[name]), given=FormatHints(fps=25))
    assert rows(known, "my clip") == rows(guessed, "my clip")


def test_predictions_of_label_studio_are_read_where_nobody_has_annotated(tmp_path):
    region = {
        "type": "timelinelabels",
        "value": {"ranges": [{"start": 1, "end": 25}], "timelinelabels": ["Run"]},
        "score": 0.5,
    }
    tasks = [{"data": {"video": "https://host/a.mp4?x=1"}, "predictions": [{"result": [region]}]}]
    found = read(put(tmp_path / "x.json", tasks), given=FormatHints(fps=25))
    assert found.predicted
    assert rows(found, "a") == [([0.0, 1.0], "Run", 0.5)]


def test_a_video_that_is_there_twice_is_said(tmp_path):
    for name, second in (("one.eaf", EAF), ("two.eaf", EAF.replace("my%20clip", "other"))):
        put(tmp_path / name, second.replace("REF_ANNOTATION>", "X>").replace("<REF_ANNOTATION ", "<X "))
    assert sorted(read(tmp_path).videos) == ["my clip", "other"]
    put(tmp_path / "two.eaf", (tmp_path / "one.eaf").read_text())
    with pytest.warns(DataWarning, match="my clip is there more than once"):
        assert len(read(tmp_path).videos["my clip"].instances) == 4


def test_tasks_of_a_cvat_project_are_videos(tmp_path):
    meta = "".join(f"<task><id>{i}</id><name>t</name><source>{name}.mp4</source></task>" for i, name in enumerate("ab"))
    track = '<track id="0" label="Run" task_id="1"><box frame="5" outside="0"/><box frame="10" outside="1"/></track>'
    text = f"<annotations><meta><project><tasks>{meta}</tasks></project></meta>{track}</annotations>"
    found = read(put(tmp_path / "x.xml", text), given=FormatHints(fps=5))
    assert rows(found, "b") == [([1.0, 2.0], "Run", 1.0)]
    assert len(found.videos["a"].instances) == 0


def test_a_cvat_track_that_lasts_to_the_end_stays_within_the_frames(tmp_path):
    video = Video("", 4.0, Instances([[3.0, 4.0]]))
    write(tmp_path / "x.xml", Annotations(CLASSES, {"a": video}), given=FormatHints(fps=10))
    assert 'frame="40"' not in (tmp_path / "x.xml").read_text()
    back = read(tmp_path / "x.xml", given=FormatHints(fps=10)).videos["a"]
    assert (back.instances.segments.tolist(), back.duration_s) == ([[3.0, 4.0]], 4.0)


BAD = {
    "x.eaf": ("<a/>", "is not an ELAN file"),
    "cut.eaf": (EAF[:900], "is not a readable XML file"),
    "times.eaf": (EAF.replace('"2000"', '"two"'), "is at 'two'"),
    "y.xml": ("<a/>", "is not a CVAT file"),
    "frames.xml": (CVAT.replace('frame="0"', 'frame="x"'), "is not a whole CVAT file"),
    "x.srt": ("1\n00:00 --> soon\nRun\n", "cue 1 has the time line"),
    "x.vtt": ("00:00.000 --> 00:02.000\nRun\n", "begins with WEBVTT"),
    "x.via.json": ({**VIA, "view": {"1": {}}}, "is not a whole VIA 3 project 'fid_list'"),
    "x.labelstudio.json": ([{"id": 1}], "is not a whole list of Label Studio's tasks 'data'"),
    "y.labelstudio.json": ([{"data": {"text": "x"}, "predictions": []}], "a task has no video"),
    "x.fiftyone.json": (
        {"labels": {"a": [{"label": 3, "timestamps": [0, 1]}], "b": 5}, "classes": ["x"]},
        "not a whole",
    ),
    "bomb.eaf": ('<!DOCTYPE a [<!ENTITY b "c">]><ANNOTATION_DOCUMENT>&b;</ANNOTATION_DOCUMENT>', "has a document type"),
    "file.xml": (
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><annotations>&b;</annotations>',
        "document type",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_by_name(tmp_path, name):
    content, message = BAD[name]
    with pytest.raises(InputError, match=message) as caught:
        read(put(tmp_path / name, content), given=FormatHints(fps=25))
    assert name in str(caught.value)


def test_entities_are_refused_in_any_encoding(tmp_path):
    text = '<!DOCTYPE a [<!ENTITY b "c">]><annotations>&b;</annotations>'
    (tmp_path / "x.xml").write_bytes(f'<?xml version="1.0" encoding="UTF-16"?>{text}'.encode("utf-16"))
    with pytest.raises(InputError, match=r"x\.xml is not a text file"):
        read(tmp_path / "x.xml", given=GIVEN)
    (tmp_path / "y.xml").write_bytes(b'<?xml version="1.0" encoding="UTF-7"?>' + text.encode("utf-7"))
    with pytest.raises(InputError, match=r"y\.xml"):
        read(tmp_path / "y.xml", given=GIVEN)


def test_what_xml_cannot_hold_is_replaced_and_said(tmp_path):
    content = Annotations(("a\x00b\x1b",), {"clip": Video("", None, Instances([[1.0, 2.0]]))})
    with pytest.warns(DataWarning, match="cannot be written in XML"):
        write(tmp_path / "x.eaf", content)
    assert read(tmp_path / "x.eaf").classes == ("a�b�",)


# The tools' own readers.


def found() -> Annotations:
    return one_video(Instances([[1.0, 2.5], [2.0, 3.0], [0.25, 4.0]], [0.5, 0.25, 0.75], [0, 0, 1]), predicted=True)


EXPECTED = sorted([(0.25, 4.0, CLASSES[1]), (1.0, 2.5, CLASSES[0]), (2.0, 3.0, CLASSES[0])])


def test_pympi_reads_our_eaf(tmp_path):
    elan = pytest.importorskip("pympi.Elan", reason="pympi-ling is not installed")
    write(tmp_path / "x.eaf", found())
    read_by_it = elan.Eaf(str(tmp_path / "x.eaf"))
    tiers = read_by_it.get_tier_names()
    assert sorted(tiers) == sorted([CLASSES[0], f"{CLASSES[0]} 2", CLASSES[1]])
    told = [row for tier in tiers for row in read_by_it.get_annotation_data_for_tier(tier)]
    assert sorted((start / 1000, end / 1000, label) for start, end, label, *_ in told) == EXPECTED
    read_by_it.to_file(str(tmp_path / "y.eaf"))  # and what it writes is read again
    assert rows(read(tmp_path / "y.eaf"), "clip") == [([start, end], label, 1.0) for start, end, label in EXPECTED]


def test_srt_reads_our_srt(tmp_path):
    import html

    srt = pytest.importorskip("srt", reason="srt is not installed")
    write(tmp_path / "x.srt", found())
    cues = list(srt.parse((tmp_path / "x.srt").read_text(encoding="utf-8"), ignore_errors=False))
    told = [(cue.start.total_seconds(), cue.end.total_seconds(), html.unescape(cue.content)) for cue in cues]
    assert told == EXPECTED
    assert [cue.index for cue in cues] == [1, 2, 3]


def test_webvtt_reads_our_vtt(tmp_path):
    webvtt = pytest.importorskip("webvtt", reason="webvtt-py is not installed")
    write(tmp_path / "x.vtt", found())
    cues = webvtt.read(str(tmp_path / "x.vtt"))
    told = [(cue.start_in_seconds + cue.start_time.milliseconds / 1000, cue.raw_text) for cue in cues]
    assert [text for _, text in told] == ["Dive &amp; roll", *["&lt;script&gt;alert(1)&lt;/script&gt;"] * 2]
    assert [cue.start for cue in cues] == ["00:00:00.250", "00:00:01.000", "00:00:02.000"]
    assert [cue.end for cue in cues] == ["00:00:04.000", "00:00:02.500", "00:00:03.000"]


def test_label_studio_accepts_our_tasks(tmp_path):
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    from xml.sax.saxutils import quoteattr

    labels = "".join(f"<Label value={quoteattr(name)}/>" for name in CLASSES)
    config = (
        '<View><Video name="video" value="$video"/>'
        f'<TimelineLabels name="timelineLabels" toName="video">{labels}</TimelineLabels></View>'
    )
    checked = interface.LabelInterface(config)
    write(tmp_path / "x.labelstudio.json", found(), given=GIVEN)
    (task,) = json.loads((tmp_path / "x.labelstudio.json").read_text(encoding="utf-8"))
    assert checked.validate_task({"data": task["data"]})
    assert checked.validate_prediction(task["predictions"][0])
    task["predictions"][0]["result"][0]["value"]["timelinelabels"] = ["Unheard of"]
    assert not checked.validate_prediction(task["predictions"][0])


def test_fiftyone_reads_our_labels(tmp_path):
    pytest.importorskip("fiftyone", reason="fiftyone is not installed")
    from fiftyone.core.metadata import VideoMetadata
    from fiftyone.utils.data.parsers import FiftyOneTemporalDetectionSampleParser

    write(tmp_path / "labels.fiftyone.json", found())
    content = json.loads((tmp_path / "labels.fiftyone.json").read_text(encoding="utf-8"))
    parser = FiftyOneTemporalDetectionSampleParser()
    parser.classes = content["classes"]
    parser.with_sample(
        ("clip.mp4", content["labels"]["clip"]), metadata=VideoMetadata(duration=5.0, total_frame_count=501)
    )
    told = [(one.support, one.label, one.confidence) for one in parser.get_label().detections]
    assert told == [([26, 401], CLASSES[1], 0.75), ([101, 251], CLASSES[0], 0.5), ([201, 301], CLASSES[0], 0.25)]


# The command.


def run(*arguments: object) -> None:
    main(["formats", *map(str, arguments)])


def test_the_command_lists_and_converts(tmp_path, capsys):
    run()
    listed = capsys.readouterr().out
    assert all(suffix in listed for suffix in FORMATS)
    write_predictions(tmp_path / "found.json", {"a": Instances([[1.0, 2.0]], [0.5])}, ["Run"])
    run("convert", tmp_path / "found.json", tmp_path / "a.eaf")
    said = capsys.readouterr().err
    assert "1 predictions of 1 classes in 1 videos" in said
    assert "cannot hold it: 1 scores\n" in said
    run("convert", tmp_path / "a.eaf", tmp_path / "back.json", "--to", "activitynet", "--split", "val")
    assert json.loads((tmp_path / "back.json").read_text())["database"]["a"] == {
        "subset": "val",
        "annotations": [{"label": "Run", "segment": [1.0, 2.0]}],
    }
    run(
        "convert",
        tmp_path / "found.json",
        tmp_path / "x.labelstudio.json",
        "--fps",
        "25",
        "--media",
        "s3://b/{name}.mkv",
    )
    assert json.loads((tmp_path / "x.labelstudio.json").read_text())[0]["data"]["video"] == "s3://b/a.mkv"
    assert read_predictions(tmp_path / "found.json", ["Run"])["a"].scores.tolist() == [0.5]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["found.json", "out.json"], "several formats end with .json: say which, --to"),
        (["found.json", "out.xyz"], "ends with .xyz; files of instances end with"),
        (["found.json", "out.xml"], "counts in frames"),
        (["found.json", "out.xml", "--fps", "0"], "--fps must be above 0"),
        (["nothing.csv", "out.eaf"], "cannot read nothing.csv"),
        (["empty", "out.csv"], "is a folder without files"),
    ],
)
def test_what_the_command_refuses(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    write_predictions(tmp_path / "found.json", {"a": Instances([[1.0, 2.0]], [0.5])}, ["Run"])
    with pytest.raises(SystemExit):
        run("convert", *arguments)
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))
