import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wtal.data import Store
from wtal.data.convert import convert
from wtal.data.findings import only_errors
from wtal.data.layouts import LAYOUTS, guess_layout, read_source
from wtal.data.source import Given
from wtal.data.video_record import canonical_splits
from wtal.errors import InputError, MissingExtraError
from wtal.timebase import TimeBase

Make = Callable[..., Any]


def _store(path: Path, layout: str, out: Path, given: Given | None = None, **options: Any) -> Store:
    convert(read_source(path, layout, given), out, **options)
    return Store.open(out)


# ---------------------------------------------------------------- CoLA


def test_cola_tree_becomes_a_store(cola: Path, tmp_path: Path) -> None:
    store = _store(cola, "cola", tmp_path / "s")
    assert guess_layout(cola) == "cola"
    assert store.classes == ("Jump", "Run")
    assert (store.names("train"), store.names("test")) == (("a", "b"), ("c",))
    assert store.tags().tolist() == [[0, 1], [1, 1], [1, 0]]
    rgb = np.load(cola / "features" / "train" / "rgb" / "b.npy")
    np.testing.assert_array_equal(store.features("b", "rgb"), rgb)
    assert store.features("b").shape == (11, 16)
    assert store.truth().videos["b"].instances.class_ids.tolist() == [0, 1]
    assert "segment" not in (store.path / "index.sqlite").read_text(errors="replace")


def test_streams_of_different_length_are_named_and_trimmed_only_when_asked(cola: Path, tmp_path: Path) -> None:
    path = cola / "features" / "train" / "flow" / "b.npy"
    np.save(path, np.load(path)[:9])
    with pytest.raises(InputError, match="b: the streams differ in snippets: rgb has 11, flow has 9"):
        _store(cola, "cola", tmp_path / "s")
    assert not (tmp_path / "s").exists()
    assert _store(cola, "cola", tmp_path / "s", trim=True).length("b") == 9


def test_a_file_cut_in_half_stops_conversion_or_is_skipped_when_asked(cola: Path, tmp_path: Path) -> None:
    path = cola / "features" / "train" / "rgb" / "a.npy"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=r"a\.npy is cut off"):
        _store(cola, "cola", tmp_path / "s")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["cola"]
    store = _store(cola, "cola", tmp_path / "s", skip_bad=True)
    assert store.names() == ("b", "c")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_no_numbers_stop_conversion(cola: Path, tmp_path: Path, bad: float) -> None:
    path = cola / "features" / "test" / "rgb" / "c.npy"
    x = np.load(path)
    x[3, 1] = bad
    np.save(path, x)
    with pytest.raises(InputError, match=r"c: rgb has 1 values that are NaN or infinite, the first in snippet 3"):
        _store(cola, "cola", tmp_path / "s")


def test_missing_videos_are_counted_and_half_missing_ones_refused(cola: Path, tmp_path: Path) -> None:
    for stream in ("rgb", "flow"):
        (cola / "features" / "train" / stream / "a.npy").unlink()
    source = read_source(cola, "cola")
    assert [finding.what for finding in source.findings] == ["1 of 2 train videos have no features: a"]
    (cola / "features" / "test" / "flow" / "c.npy").unlink()
    np.save(cola / "features" / "test" / "flow" / "other.npy", np.ones((2, 8), np.float32))
    np.save(cola / "features" / "test" / "rgb" / "other.npy", np.ones((2, 8), np.float32))
    with pytest.raises(InputError, match="c: no flow file beside rgb"):
        _store(cola, "cola", tmp_path / "s")


def test_an_empty_place_is_told_what_was_wanted(tmp_path: Path, make_gt: Make) -> None:
    with pytest.raises(InputError, match=r"gt\.json is missing"):
        read_source(tmp_path, "cola")
    make_gt(tmp_path / "gt.json", {"a": ("train", ["Run"])})
    with pytest.raises(InputError, match=r"no features found for layout cola .* wanted features/\{train,test\}"):
        read_source(tmp_path, "cola")
    with pytest.raises(InputError, match="does not exist"):
        read_source(tmp_path / "nowhere", "cola")
    with pytest.raises(InputError, match="cannot tell the layout"):
        guess_layout(tmp_path)


def test_tags_beside_a_folder_of_features_say_its_layout(tmp_path: Path) -> None:
    (tmp_path / "features").mkdir()
    np.save(tmp_path / "features" / "a.npy", np.random.default_rng(0).random((5, 4), np.float32))
    (tmp_path / "tags.csv").write_text("video,label\na,Run\n")
    source = read_source(tmp_path / "features", given=Given(tags=tmp_path / "tags.csv"))
    assert (source.layout, source.classes) == ("folder", ("Run",))


def test_real_thumos14_videos_convert(thumos14: Path, tmp_path: Path) -> None:
    pack = np.load(next(iter(sorted((thumos14 / "train").glob("*.npz")))))
    start, names = 0, []
    for name, length in zip(pack["names"][:3].tolist(), pack["lengths"][:3].tolist(), strict=True):
        x = (pack["q"][start : start + length] * pack["scale"]).astype(np.float32)
        for stream, half in (("rgb", x[:, :1024]), ("flow", x[:, 1024:])):
            folder = tmp_path / "t" / "features" / "train" / stream
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{name}.npy", half)
        start += length
        names.append(name)
    (tmp_path / "t" / "split_train.txt").write_text("\n".join(names))
    (tmp_path / "t" / "split_test.txt").write_text("")
    (tmp_path / "t" / "gt.json").write_text((thumos14 / "gt.json").read_text())
    store = _store(tmp_path / "t", "cola", tmp_path / "s", dtype="float16")
    assert store.names("train") == tuple(names)
    assert len(store.classes) == 20
    assert store.dimensions == 2048
    truth = store.truth()
    for name in names:
        tagged = {store.classes[i] for i in truth.videos[name].instances.class_ids}
        assert tagged == set(store.records[name].tags)
        assert truth.videos[name].instances.ends.max() < store.duration_s(name) * 1.05


# ---------------------------------------------------------------- W-TALC


def _objects(items: list[Any]) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


@pytest.fixture
def wtalc(tmp_path: Path, make_features: Make) -> Path:
    root = tmp_path / "w"
    notes = root / "Thumos14reduced-Annotations"
    notes.mkdir(parents=True)
    columns = {
        "videoname": np.array([b"a", b"b", b"c"]),
        "subset": np.array([b"validation", b"validation", b"test"]),
        "classlist": np.array([b"Run", b"Jump"]),
        "labels_all": _objects([["Run"], ["Jump", "Run"], ["Jump"]]),
        "labels": _objects([["Run"], ["Jump", "Run", "Run"], []]),
        "segments": _objects([[[0.5, 2.0]], [[0.0, 1.0], [1.0, 2.0], [3.0, 3.0]], []]),
        "extracted_fps": np.full(3, 10.0),
    }
    for name, column in columns.items():
        np.save(notes / f"{name}.npy", column, allow_pickle=True)
    parts = _objects([make_features(5 + i, 6) for i in range(3)])
    np.save(root / "Thumos14reduced-I3D-JOINTFeatures.npy", parts, allow_pickle=True)
    return root


def test_wtalc_arrays_become_a_store(wtalc: Path, tmp_path: Path) -> None:
    assert guess_layout(wtalc) == "wtalc"
    store = _store(wtalc, "wtalc", tmp_path / "s")
    assert store.classes == ("Run", "Jump")  # in the order of classlist.npy
    assert store.names("train") == ("a", "b")  # THUMOS14 trains on what it calls validation
    assert store.tags().tolist() == [[1, 0], [1, 1], [0, 1]]
    assert store.streams == {"rgb": 3, "flow": 3}
    assert store.timebase("a") == TimeBase(fps=25.0)  # whatever extracted_fps.npy says
    truth = store.truth()
    assert truth.videos["b"].instances.segments.tolist() == [[0.0, 1.0], [1.0, 2.0]]  # the empty one is left out
    assert truth.videos["b"].instances.class_ids.tolist() == [1, 0]


def test_wtalc_pickle_that_imports_something_is_refused(wtalc: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return print, ("gotcha",)

    np.save(wtalc / "Thumos14reduced-I3D-JOINTFeatures.npy", _objects([Evil()] * 3), allow_pickle=True)
    with pytest.raises(InputError, match=r"JOINTFeatures.npy is refused: it wants to import builtins.print"):
        read_source(wtalc, "wtalc")


def test_wtalc_arrays_of_different_length_are_refused(wtalc: Path) -> None:
    np.save(wtalc / "Thumos14reduced-Annotations" / "subset.npy", np.array([b"test"]))
    with pytest.raises(InputError, match=r"subset.npy has 1 entries for 3 videos"):
        read_source(wtalc, "wtalc")


# ---------------------------------------------------------------- ActivityNet


@pytest.mark.parametrize("prefix", ["", "v_"])
@pytest.mark.parametrize(("train", "test"), [("training", "validation"), ("train", "val"), ("train", "test")])
def test_activitynet_with_and_without_prefix_and_by_every_subset_name(
    tmp_path: Path, make_gt: Make, make_features: Make, prefix: str, train: str, test: str
) -> None:
    gt = {"v_UmAH95xls": (train, ["Tango"]), "x2": (test, ["Rafting"]), "gone": (train, ["Tango"])}
    root = tmp_path / "anet"
    root.mkdir()
    make_gt(root / "activity_net.v1-3.min.json", gt, {"v_UmAH95xls": 3.2})
    for name in ("v_UmAH95xls", "x2"):
        np.save(root / f"{prefix}{name}.npy", make_features(5, 8))
    assert guess_layout(root) == "activitynet"
    source = read_source(root, "activitynet")
    assert [finding.what for finding in source.findings] == ["1 of 2 train videos have no features: gone"]
    store = _store(root, "activitynet", tmp_path / "s")
    assert (store.names("train"), store.names("test")) == (("v_UmAH95xls",), ("x2",))
    assert list(store.streams) == ["rgb", "flow"]
    assert store.duration_s("v_UmAH95xls") == 3.2


def test_activitynet_test_videos_with_withheld_annotations_are_left_out(
    tmp_path: Path, make_gt: Make, make_features: Make
) -> None:
    gt = make_gt(tmp_path / "gt.json", {"a": ("training", ["T"]), "b": ("validation", ["T"]), "c": ("testing", [])})
    for name in "abc":
        np.save(tmp_path / f"{name}.npy", make_features(4))
    source = read_source(tmp_path, "activitynet", Given(gt=gt))
    assert {record.name: record.split for record in source.records} == {"a": "train", "b": "test"}


def test_a_bad_segment_still_tags_its_video(tmp_path: Path, make_features: Make) -> None:
    note = {"label": "Tango", "segment": [5.0, 5.0]}
    database = {"a": {"subset": "training", "duration": 9.0, "annotations": [note]}}
    (tmp_path / "gt.json").write_text(json.dumps({"database": database}))
    np.save(tmp_path / "a.npy", make_features(4))
    source = read_source(tmp_path, "activitynet")
    assert source.records[0].tags == ("Tango",)
    assert "left out 1 segment" in source.findings[0].what


def test_stretched_features_fill_the_duration(tmp_path: Path, make_gt: Make, make_features: Make) -> None:
    gt = make_gt(tmp_path / "gt.json", {"a": ("train", ["T"])}, {"a": 200.0})
    np.save(tmp_path / "a.npy", make_features(100))
    store = _store(tmp_path, "activitynet", tmp_path / "s", Given(gt=gt), stretch=True)
    assert store.timebase("a").snippet_s == pytest.approx(2.0)


def test_the_real_activitynet_file_is_listed(activitynet13: Path, tmp_path: Path, make_features: Make) -> None:
    np.save(tmp_path / "v_Mmdcsw_SEzc.npy", make_features(64))
    source = read_source(tmp_path, "activitynet", Given(gt=activitynet13 / "gt.json"))
    assert len(source.classes) == 200
    assert [record.name for record in source.records] == ["Mmdcsw_SEzc"]
    said = " ".join(finding.what for finding in source.findings)
    assert "9663 of 9664 train videos have no features" in said
    assert "4926 of 4926 test videos have no features" in said


# ---------------------------------------------------------------- own data


def test_a_folder_and_a_csv_are_enough(folder: Make, tmp_path: Path) -> None:
    root = folder("video,label,split\na.mp4,Run,train\na.mp4,Jump,train\nb,Jump,train\nc,,test\n")
    assert guess_layout(root) == "folder"
    store = _store(root, "folder", tmp_path / "s")
    assert store.records["a"].tags == ("Jump", "Run")
    assert store.names("test") == ("c",)
    assert store.tags("test").sum() == 0
    assert list(store.streams) == ["features"]
    assert not store.has_truth


def test_without_a_split_everything_is_for_training_and_clocks_may_differ(folder: Make, tmp_path: Path) -> None:
    root = folder("video,label,duration_s,fps\na,Run,4,50\nb,Run,,\nc,Run,,\n")
    store = _store(root, "folder", tmp_path / "s", Given(timebase=TimeBase(30.0, 16.0)))
    assert store.names("train") == ("a", "b", "c")
    assert store.timebase("a") == TimeBase(50.0, 16.0)
    assert store.timebase("b") == TimeBase(30.0, 16.0)
    assert store.duration_s("a") == 4.0


@pytest.mark.parametrize("place", ["{stream}/{name}.npy", "{name}_{stream}.npy", "{name}-{stream}.npy"])
def test_rgb_and_flow_apart_are_joined_rgb_first(tmp_path: Path, make_features: Make, place: str) -> None:
    root = tmp_path / "own"
    parts = {stream: make_features(4, 3) for stream in ("flow", "rgb")}
    for stream, x in parts.items():
        path = root / place.format(stream=stream, name="a")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, x)
    (root / "t.csv").write_text("video,label\na,Run\n")
    store = _store(root, "folder", tmp_path / "s")
    np.testing.assert_array_equal(store.features("a"), np.hstack([parts["rgb"], parts["flow"]]))


@pytest.mark.parametrize(
    ("csv", "said"),
    [
        ("name,label\na,Run\n", "must start with a line video,label"),
        ("video label\na Run\n", "separated by commas, semicolons or tabs; got video label"),
        ("video,label\n", "has no rows"),
        ("video,label\na\n", "line 2: wanted 2 values"),
        ("video,label\n,Run\n", "line 2: no video name"),
        ("video,label,split\na,Run,train\na,Jump,test\n", "line 3: a is"),
        ("video,label\na,\na,Run\n", "line 3: a has a row without a label and others"),
        ("video,label,split\na,Run,dev\n", r"split names must be .* got \['dev'\]"),
        ("video,label,fps\na,Run,fast\n", "a has 'fast' where a positive number is wanted"),
        ("video,label\na,Run\na.mp4,Run\n", "a is named twice"),
        ("video,label\nz,Run\n", "no features found for layout folder"),
    ],
)
def test_a_bad_csv_is_refused_with_its_line(folder: Make, csv: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_source(folder(csv), "folder")


def test_labels_that_the_class_list_lacks_are_refused_with_a_hint(folder: Make, tmp_path: Path) -> None:
    source = read_source(folder("video,label\na,Divng\n"), "folder", Given(classes=("Diving", "Run")))
    with pytest.raises(InputError, match=r"label 'Divng' of a is not in the class list \(did you mean Diving\?\)"):
        convert(source, tmp_path / "s")
    with pytest.raises(InputError, match=r"names \['Run'\] more than once"):
        read_source(tmp_path / "own", "folder", Given(classes=("Run", "Run")))


def test_pickled_or_misshapen_features_are_refused_by_file(folder: Make, tmp_path: Path) -> None:
    root = folder("video,label\na,Run\n")
    for bad, said in [
        (np.ones((2, 3, 4)), r"a\.npy: features must be floats of shape \(snippets, dimensions\), got float64"),
        (np.ones((2, 3), int), "got int64"),
        (np.array([None]), "holds pickled Python objects"),
    ]:
        np.save(root / "a.npy", bad, allow_pickle=True)
        with pytest.raises(InputError, match=said):
            convert(read_source(root, "folder"), tmp_path / "s")


def test_two_files_for_one_video_are_refused(folder: Make) -> None:
    root = folder("video,label\na,Run\n")
    (root / "more").mkdir()
    np.save(root / "more" / "a.npy", np.ones((2, 2)))
    with pytest.raises(InputError, match="two files for the features of video a"):
        read_source(root, "folder")


# ---------------------------------------------------------------- h5


def test_h5_without_h5py_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "x.h5").write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"pip install 'wtal\[h5\]'"):
        read_source(tmp_path / "x.h5", "h5")


class _Group(dict[str, Any]):
    def __enter__(self) -> "_Group":
        return self

    def __exit__(self, *_: object) -> None: ...


def test_h5_layout_reads_datasets_or_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_features: Make
) -> None:
    x = make_features(4, 3)
    content = _Group(a=_Group(rgb=x, flow=2 * x), b=_Group(rgb=x, flow=x), extra=x)
    fake = types.SimpleNamespace(File=lambda path, mode: content)
    monkeypatch.setitem(sys.modules, "h5py", fake)
    (tmp_path / "x.h5").write_bytes(b"")
    (tmp_path / "t.csv").write_text("video,label\na,Run\nb,Run\nc,Run\n")
    with pytest.raises(InputError, match="say where the tags are"):
        read_source(tmp_path / "x.h5", "h5")
    given = Given(tags=tmp_path / "t.csv")
    said = [finding.what for finding in read_source(tmp_path / "x.h5", "h5", given).findings]
    assert said == ["1 of 3 train videos have no features: c", "1 feature files belong to no listed video: extra"]
    store = _store(tmp_path / "x.h5", "h5", tmp_path / "s", given)
    np.testing.assert_array_equal(store.features("a"), np.hstack([x, 2 * x]))


def test_a_real_h5_file_is_read(tmp_path: Path, make_features: Make) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is an extra that is not installed")
    x = make_features(4, 3)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = x
    (tmp_path / "t.csv").write_text("video,label\na,Run\n")
    store = _store(tmp_path / "x.h5", "h5", tmp_path / "s", Given(tags=tmp_path / "t.csv"))
    np.testing.assert_array_equal(store.features("a"), x)


# ---------------------------------------------------------------- all


def test_an_unknown_layout_is_told_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"no layout 'kola'; there are {', '.join(LAYOUTS)}"):
        read_source(tmp_path, "kola")


def test_every_mix_of_split_names_has_one_meaning() -> None:
    assert canonical_splits(["Training", "Validation", "Testing"]) == {
        "Testing": "test",
        "Training": "train",
        "Validation": "val",
    }
    assert canonical_splits(["val"]) == {"val": "test"}
    assert only_errors([]) == []
