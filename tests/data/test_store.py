import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wtal.data import Store, VideoRecord, new_store
from wtal.data.check import check_store
from wtal.data.convert import convert
from wtal.data.index import INDEX
from wtal.data.store import is_store
from wtal.data.synthetic import synthetic_source
from wtal.data.synthetic_annotations import random_annotations
from wtal.data.writer import extend_store
from wtal.errors import InputError
from wtal.timebase import TimeBase


def _record(name: str = "a", split: str = "train", tags: tuple[str, ...] = ("Run",), **more: object) -> VideoRecord:
    return VideoRecord(name, split, tags, **more)  # type: ignore[arg-type]


def _store(path: Path, lengths: list[int], d: int = 4, **options: object) -> Store:
    rng = np.random.default_rng(0)
    with new_store(path, classes=("Jump", "Run"), **options) as writer:  # type: ignore[arg-type]
        for i, t in enumerate(lengths):
            writer.add(_record(f"v{i}"), rng.standard_normal((t, d)))
    return Store.open(path)


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8), d=st.integers(1, 5), half=st.booleans())
@settings(max_examples=25, deadline=None)
def test_every_video_comes_back_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], d: int, half: bool
) -> None:
    dtype = "float16" if half else "float32"
    store = _store(tmp_path_factory.mktemp("s") / "store", lengths, d, dtype=dtype)
    rng = np.random.default_rng(0)
    for i, t in enumerate(lengths):
        np.testing.assert_array_equal(store.features(f"v{i}"), rng.standard_normal((t, d)).astype(dtype))
        assert store.length(f"v{i}") == t
    assert len(store) == len(lengths)
    assert store.dimensions == d


def test_features_are_read_from_the_file_and_cannot_be_changed(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", [3, 5])
    part = store.features("v1")
    assert not part.flags.writeable
    assert np.shares_memory(part, store.features("v1"))  # a view of the map, not a copy


def test_index_keeps_what_is_known_about_each_video(tmp_path: Path) -> None:
    own = TimeBase(fps=30.0, stride_frames=8.0, offset_snippets=-0.5)
    with new_store(tmp_path / "s", classes=("Jump", "Run"), layout="own", timebase=TimeBase(25.0)) as writer:
        x = np.ones((5, 6), np.float32)
        writer.add(_record("a", tags=("Run", "Jump"), duration_s=3.5), x, {"rgb": 2, "flow": 4})
        writer.add(_record("b", "test", (), timebase=own), x * 2, {"rgb": 2, "flow": 4})
    store = Store.open(tmp_path / "s")
    assert store.names() == ("a", "b")
    assert store.names("test") == ("b",)
    assert store.tags().tolist() == [[1, 1], [0, 0]]
    assert store.tags("train").dtype == np.float32
    assert store.timebase("a") == TimeBase()
    assert store.timebase("b") == own
    assert store.duration_s("a") == 3.5
    assert store.duration_s("b") == pytest.approx(5 * 8 / 30)
    assert store.features("b", "flow").shape == (5, 4)
    assert store.classes == ("Jump", "Run")


def test_unknown_names_are_refused_with_a_hint(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", [3])
    with pytest.raises(InputError, match=r"no video v00 \(did you mean v0\?\)"):
        store.features("v00")
    with pytest.raises(InputError, match="no stream audio; it has features"):
        store.features("v0", "audio")
    with pytest.raises(InputError, match=r"no video of split test; it has \['train'\]"):
        store.names("test")
    with pytest.raises(InputError, match="no true instances"):
        store.truth()


def _edit(store: Path, statement: str) -> None:
    with closing(sqlite3.connect(store / INDEX)) as database, database:
        database.execute(statement)


def test_a_misspelt_tag_in_an_edited_index_is_named(tmp_path: Path) -> None:
    _edit(_store(tmp_path / "s", [3]).path, """UPDATE videos SET tags = '["Rum"]'""")
    with pytest.raises(InputError, match=r"tag 'Rum' of v0 is not in the class list \(did you mean Run\?\)"):
        Store.open(tmp_path / "s").tags()


def test_fingerprint_tells_data_sets_apart_but_not_places(tmp_path: Path) -> None:
    one = _store(tmp_path / "one", [3, 4])
    assert one.fingerprint == _store(tmp_path / "two", [3, 4]).fingerprint
    assert one.fingerprint == _store(tmp_path / "three", [3, 4], layout="cola").fingerprint
    assert one.fingerprint != _store(tmp_path / "four", [4, 3]).fingerprint
    assert one.fingerprint != _store(tmp_path / "five", [3, 4], dtype="float16").fingerprint
    with extend_store(tmp_path / "two", anew=True) as writer:
        writer.keep(_record("v0", tags=("Jump",)))
        writer.keep(_record("v1"))
    assert one.fingerprint != Store.open(tmp_path / "two").fingerprint
    with extend_store(tmp_path / "two", anew=True) as writer:
        writer.keep(_record("v0"))
        writer.keep(_record("v1"))
    assert one.fingerprint == Store.open(tmp_path / "two").fingerprint


def test_the_doctor_notices_an_index_that_was_changed_by_hand(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", [3])
    assert not [finding for finding in check_store(store) if "changed after" in finding.what]
    _edit(store.path, """UPDATE videos SET tags = '["Jump"]'""")
    assert [finding for finding in check_store(Store.open(store.path)) if "changed after" in finding.what]


@pytest.mark.parametrize(
    ("record", "shape", "said"),
    [
        (_record("v"), (0, 4), "v: has no snippets"),
        (_record("v"), (3, 5), "v: has 5 dimensions"),
        (_record("first"), (3, 4), "names this video twice"),
        (_record("v", tags=("Fly",)), (3, 4), "tag Fly is not in the class list"),
    ],
)
def test_a_bad_video_leaves_nothing_behind(
    tmp_path: Path, record: VideoRecord, shape: tuple[int, int], said: str
) -> None:
    def write() -> None:
        with new_store(tmp_path / "s", classes=("Run",)) as writer:
            writer.add(_record("first"), np.ones((2, 4)))
            writer.add(record, np.ones(shape))

    with pytest.raises(InputError, match=said):
        write()
    assert list(tmp_path.iterdir()) == []


def test_values_that_float16_cannot_hold_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="v: features are not finite, or too large, as float16"),
        new_store(tmp_path / "s", classes=("Run",), dtype="float16") as writer,
    ):
        writer.add(_record("v"), np.full((2, 4), 1e6))


def test_a_full_disk_is_a_clear_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    def write() -> None:
        with new_store(tmp_path / "s", classes=("Run",)) as writer:
            writer.add(_record("v"), np.ones((2, 4)))
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(InputError, match=r"cannot write .*s: the disk is full"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_replaced_only_when_asked_and_only_if_it_is_one(tmp_path: Path) -> None:
    _store(tmp_path / "s", [3])
    with pytest.raises(InputError, match="exists; choose another place or say `overwrite=True`"):
        _store(tmp_path / "s", [4])
    assert _store(tmp_path / "s", [4], overwrite=True).length("v0") == 4
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter1.txt").write_text("years of work")
    with pytest.raises(InputError, match="is not a store, so it is not overwritten"):
        _store(other, [3], overwrite=True)
    assert (other / "chapter1.txt").exists()


def test_a_failed_overwrite_keeps_the_old_store(tmp_path: Path) -> None:
    old = _store(tmp_path / "s", [3]).fingerprint
    with pytest.raises(InputError, match="at least one video"):
        _store(tmp_path / "s", [], overwrite=True)
    assert Store.open(tmp_path / "s").fingerprint == old


def test_damaged_stores_are_refused_by_name(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", [30])
    shard = store.path / "features-00000.npy"
    data = shard.read_bytes()
    shard.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"features-00000.npy is missing, cut off or damaged"):
        Store.open(store.path)
    shard.write_bytes(data)
    with pytest.raises(InputError, match="is not a store"):
        Store.open(tmp_path)
    whole = (store.path / INDEX).read_bytes()
    for change, said in [
        (
            "UPDATE head SET json = replace(json, '\"version\": 2', '\"version\": 99')",
            "has version 99, this wtal reads 2",
        ),
        ("UPDATE videos SET snippets = 31", "video 'v0' of split 'train' has 31 snippets"),
        ("UPDATE videos SET tags = '[1]'", "the tags of video v0 must be names"),
        ("DROP TABLE shards", "is not the index of a store"),
    ]:
        _edit(store.path, change)
        with pytest.raises(InputError, match=said):
            Store.open(store.path).features("v0")
        (store.path / INDEX).write_bytes(whole)
    (store.path / INDEX).write_bytes(b"SQLite format 3" + bytes(100))
    with pytest.raises(InputError, match="is damaged"):
        Store.open(store.path)


@pytest.mark.parametrize(
    ("kind", "shape"), [("float16", (30, 4)), ("float64", (30, 4)), (">f4", (30, 4)), ("float32", (29, 4))]
)
def test_features_of_another_type_or_number_than_the_index_says_are_refused(
    tmp_path: Path, kind: str, shape: tuple[int, int]
) -> None:
    store = _store(tmp_path / "s", [30])
    assert (store.dtype, store.features("v0").shape) == ("float32", (30, 4))
    np.save(store.path / "features-00000.npy", np.zeros(shape, kind))
    said = r"features-00000\.npy (is missing, cut off or damaged|holds >f4 .*, its index says float32 \(30, 4\))"
    with pytest.raises(InputError, match=said):
        Store.open(store.path).features("v0")


def test_the_doctor_notices_a_flipped_bit(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", [30])
    assert is_store(store.path)
    assert not [finding for finding in check_store(store) if "what was written" in finding.what]
    shard = store.path / "features-00000.npy"
    data = bytearray(shard.read_bytes())
    data[-2] ^= 1
    shard.write_bytes(data)
    said = [finding for finding in check_store(Store.open(store.path)) if finding.severity == "error"]
    assert [finding.video for finding in said if "not what was written" in finding.what] == ["v0"]


def test_folds_divide_the_training_videos_and_hide_the_test_videos(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = random_annotations(rng, n_train=12, n_test=3, n_classes=3, two_tags=0.0)
    convert(synthetic_source(made, rng, n_dims=4), tmp_path / "s")
    store = Store.open(tmp_path / "s")
    folds = [store.fold(number, 4) for number in (1, 2, 3, 4)]
    held_out = [set(fold.names("test")) for fold in folds]
    assert set.union(*held_out) == set(store.names("train"))
    assert sum(map(len, held_out)) == 12
    for fold, tested in zip(folds, held_out, strict=True):
        assert set(fold.names("train")) == set(store.names("train")) - tested
        assert fold.names("unused") == store.names("test")
        assert sorted(tag for name in tested for tag in fold.records[name].tags) == list(store.classes)
        truth = fold.truth()
        assert {name for name, video in truth.videos.items() if video.split == "test"} == tested
        assert (fold.features("train_00003") == store.features("train_00003")).all()
    assert len({fold.fingerprint for fold in (store, *folds)}) == 5
    for number, of in ((0, 4), (5, 4), (1, 1)):
        with pytest.raises(InputError, match="such as 1/4"):
            store.fold(number, of)
    with pytest.raises(InputError, match="too few for 99 parts"):
        store.fold(50, 99)
