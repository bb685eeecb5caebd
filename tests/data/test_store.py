import errno
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wtal.data import Store, VideoRecord, new_store
from wtal.data.check import check_store
from wtal.data.convert import convert
from wtal.data.store import is_store
from wtal.data.synthetic import synthetic_source
from wtal.data.synthetic_annotations import random_annotations
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
    assert part.base is not None  # a view of the map, not a copy
    assert np.shares_memory(part, store.matrix)


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
    assert json.loads((tmp_path / "s" / "index.json").read_text())["classes"] == ["Jump", "Run"]


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


def test_a_misspelt_tag_in_an_edited_index_is_named(tmp_path: Path) -> None:
    index = _store(tmp_path / "s", [3]).path / "index.json"
    index.write_text(index.read_text().replace('"tags": ["Run"]', '"tags": ["Rum"]'))
    with pytest.raises(InputError, match=r"tag 'Rum' of v0 is not in the class list \(did you mean Run\?\)"):
        Store.open(tmp_path / "s").tags()


def test_fingerprint_tells_data_sets_apart_but_not_places(tmp_path: Path) -> None:
    one = _store(tmp_path / "one", [3, 4])
    assert one.fingerprint == _store(tmp_path / "two", [3, 4]).fingerprint
    assert one.fingerprint == _store(tmp_path / "three", [3, 4], layout="cola").fingerprint
    assert one.fingerprint != _store(tmp_path / "four", [4, 3]).fingerprint
    assert one.fingerprint != _store(tmp_path / "five", [3, 4], dtype="float16").fingerprint
    index = tmp_path / "two" / "index.json"
    index.write_text(index.read_text().replace('"tags": ["Run"]', '"tags": ["Jump"]', 1))
    assert one.fingerprint != Store.open(tmp_path / "two").fingerprint


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
    data = (store.path / "features.npy").read_bytes()
    (store.path / "features.npy").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"features.npy is missing, cut off or damaged"):
        Store.open(store.path)
    with pytest.raises(InputError, match="is not a store"):
        Store.open(tmp_path)
    index = store.path / "index.json"
    text = index.read_text()
    for old, new, said in [
        ('"version": 1', '"version": 99', "has version 99, this wtal reads 1"),
        ('"wtal-store"', '"other"', "is not the index of a store"),
        ('"snippets": 30, ', "", "lacks or misspells 'snippets'"),
        ('"videos"', "videos", "is not whole JSON"),
    ]:
        index.write_text(text.replace(old, new))
        with pytest.raises(InputError, match=said):
            Store.open(store.path)


@pytest.mark.parametrize(
    ("kind", "shape"), [("float16", (30, 4)), ("float64", (30, 4)), (">f4", (30, 4)), ("float32", (29, 4))]
)
def test_features_of_another_type_or_number_than_the_index_says_are_refused(
    tmp_path: Path, kind: str, shape: tuple[int, int]
) -> None:
    store = _store(tmp_path / "s", [30])
    assert (store.matrix.dtype, store.matrix.shape) == (np.float32, (30, 4))
    np.save(store.path / "features.npy", np.zeros(shape, kind))
    with pytest.raises(InputError, match=r"features\.npy holds .*, its index says float32 \(30, 4\); convert again"):
        Store.open(store.path)


def test_the_doctor_notices_a_flipped_bit(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", [30])
    assert is_store(store.path)
    assert not [finding for finding in check_store(store) if "features.npy" in finding.what]
    data = bytearray((store.path / "features.npy").read_bytes())
    data[-2] ^= 1
    (store.path / "features.npy").write_bytes(data)
    said = [str(finding) for finding in check_store(Store.open(store.path)) if finding.severity == "error"]
    assert any("is not what was written" in text for text in said)


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
