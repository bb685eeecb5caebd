"""Adding to a store while others read it, mending it, and what 100 000 videos must not cost."""

import json
import multiprocessing
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from wtal.cli import main
from wtal.data import Store, VideoRecord, extend_store, new_store, shards
from wtal.data.check import check_store
from wtal.data.findings import only_errors
from wtal.data.index import INDEX
from wtal.data.repair import repair
from wtal.errors import InputError


def _features(number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal((3 + number % 5, 4)).astype(np.float32)


def _record(number: int) -> VideoRecord:
    return VideoRecord(f"v{number}", "train" if number % 3 else "test", ("Run",) if number % 2 else ("Jump", "Run"))


def _add(writer: object, numbers: range) -> None:
    for number in numbers:
        writer.add(_record(number), _features(number))  # type: ignore[attr-defined]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten videos in several shards."""
    monkeypatch.setattr(shards, "SHARD_BYTES", 200)
    with new_store(tmp_path / "s", classes=("Jump", "Run")) as writer:
        _add(writer, range(10))
    assert len(list((tmp_path / "s").glob("features-*.npy"))) > 2
    return tmp_path / "s"


def _intact(path: Path, numbers: object) -> None:
    store = Store.open(path)
    assert set(store.names()) == {f"v{number}" for number in numbers}  # type: ignore[attr-defined]
    for number in numbers:  # type: ignore[attr-defined]
        np.testing.assert_array_equal(store.features(f"v{number}"), _features(number))
        assert store.records[f"v{number}"] == _record(number)
    assert not [finding for finding in check_store(store) if "written" in finding.what]


def test_readers_keep_their_snapshot_while_videos_are_added(store: Path) -> None:
    before = Store.open(store)
    with extend_store(store) as writer:
        _add(writer, range(10, 15))
        assert len(Store.open(store)) == 10  # nothing is seen before all is there
    assert len(before) == 10
    assert before.names("test") == tuple(f"v{number}" for number in range(0, 10, 3))
    with pytest.raises(InputError, match="no video v12"):
        before.features("v12")
    _intact(store, range(15))


def test_readers_never_fail_or_see_half_an_append(store: Path) -> None:
    """A second process appends as fast as it can; every store that is opened meanwhile is whole."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_extend import _add
from wtal.data import extend_store
for start in range(10, 30, 4):
    with extend_store(Path({str(store)!r})) as writer:
        _add(writer, range(start, start + 4))
"""
    appender = subprocess.Popen([sys.executable, "-c", code])
    seen = set()
    while appender.poll() is None:
        opened = Store.open(store)
        seen.add(len(opened))
        assert (len(opened) - 10) % 4 == 0
        assert len(opened.names()) == len(opened)
        last = f"v{len(opened) - 1}"
        np.testing.assert_array_equal(opened.features(last), _features(len(opened) - 1))
    assert appender.returncode == 0
    assert len(seen) > 1
    _intact(store, range(30))


def test_a_store_that_grew_is_the_store_written_at_once(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with extend_store(store) as writer:
        _add(writer, range(10, 20))
    monkeypatch.setattr(shards, "SHARD_BYTES", 10_000)
    with new_store(tmp_path / "once", classes=("Jump", "Run")) as writer:
        _add(writer, range(20))
    one, two = Store.open(store), Store.open(tmp_path / "once")
    assert one.fingerprint == two.fingerprint
    assert one.fold(1, 4).fingerprint == two.fold(1, 4).fingerprint != one.fingerprint
    assert (tmp_path / "once" / INDEX).read_bytes() != (store / INDEX).read_bytes()  # other shards


def test_the_same_videos_make_the_same_bytes(store: Path, tmp_path: Path) -> None:
    with new_store(tmp_path / "again", classes=("Jump", "Run")) as writer:
        _add(writer, range(10))
    for file in store.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_a_failed_append_leaves_the_store_as_it_was(store: Path) -> None:
    before = {file.name: file.read_bytes() for file in store.iterdir()}

    def append() -> None:
        with extend_store(store) as writer:
            _add(writer, range(10, 20))
            writer.add(_record(3), _features(3))

    with pytest.raises(InputError, match="v3: the data set names this video twice"):
        append()
    assert {file.name: file.read_bytes() for file in store.iterdir()} == before


def test_a_store_goes_to_other_processes_and_threads(store: Path) -> None:
    opened = Store.open(store).fold(1, 2)
    assert opened.features("v2").shape == (5, 4)
    copy = pickle.loads(pickle.dumps(opened))
    assert (copy.fingerprint, copy.names("test")) == (opened.fingerprint, opened.names("test"))
    np.testing.assert_array_equal(copy.features("v2"), opened.features("v2"))
    fresh, got = Store.open(store), []
    threads = [threading.Thread(target=lambda n=n: got.append(fresh.length(f"v{n}"))) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(3 + n % 5 for n in range(10))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(fresh.length, ("v4",)) == 7
    packed = pickle.dumps(opened)
    with extend_store(store) as writer:
        _add(writer, range(10, 11))
    with pytest.raises(InputError, match="has been changed since it was opened"):
        pickle.loads(packed)


def test_a_lost_index_is_made_again_from_the_shards(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = Store.open(store).fingerprint
    for damage in (lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:5000])):
        damage(store / INDEX)
        with pytest.raises(InputError, match=r"wtal data repair"):
            Store.open(store).features("v7")
        main(["data", "repair", str(store)])
        assert "made again from the lines beside the shards" in capsys.readouterr().out
        assert Store.open(store).fingerprint == known
        _intact(store, range(10))
    assert repair(store) == []


def test_a_torn_append_is_taken_in(store: Path, tmp_path: Path) -> None:
    index = (store / INDEX).read_bytes()
    with extend_store(store) as writer:
        _add(writer, range(10, 20))
    known = Store.open(store).fingerprint
    (store / INDEX).write_bytes(index)  # killed before the index was in its place
    torn = shutil.copytree(store, tmp_path / "torn")
    _intact(store, range(10))  # readers do not mind
    said = " ".join(str(finding) for finding in repair(store))
    assert "append that was never finished are taken in" in said
    assert Store.open(store).fingerprint == known
    with extend_store(torn) as writer:  # nor does the next append
        _add(writer, range(10, 20))
    assert Store.open(torn).fingerprint == known


def test_what_is_lost_is_listed_and_the_rest_is_usable(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = Store.open(store)
    where = {name: opened.entry(name).shard for name in opened.names()}
    files = sorted(store.glob("features-*.npy"))
    data = bytearray(files[0].read_bytes())
    data[-3] ^= 4  # in the last video of the first shard
    files[0].write_bytes(data)
    files[1].write_bytes(files[1].read_bytes()[:-20])  # the last video of the second
    files[2].unlink()
    flipped, cut = ([name for name in where if where[name] == shard][-1] for shard in (0, 1))
    gone = {name for name in where if where[name] == 2}
    with pytest.raises(SystemExit) as ended:
        main(["data", "repair", str(store)])
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert f"the features of {2 + len(gone)} videos are lost" in said
    assert f"{files[1].name} was cut off" in said
    _intact(store, sorted({int(name[1:]) for name in where} - {int(name[1:]) for name in {flipped, cut} | gone}))
    assert not only_errors(repair(store))


def test_tags_change_without_a_copy_of_the_features(store: Path) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in store.glob("*.npy")}
    with extend_store(store, anew=True, classes=("Fly",)) as writer:
        for number in (7, 2):
            writer.keep(VideoRecord(f"v{number}", "train", ("Fly",)))
    opened = Store.open(store)
    assert opened.names() == ("v7", "v2")
    assert opened.tags().tolist() == [[1], [1]]
    np.testing.assert_array_equal(opened.features("v7"), _features(7))
    assert {file.name: file.stat().st_mtime_ns for file in store.glob("*.npy")} == before
    assert "shards that no video needs" in str(repair(store)[0])
    assert len(list(store.glob("*.npy"))) == len({opened.entry(name).shard for name in ("v7", "v2")})
    assert len(Store.open(store)) == 2


def test_stores_of_the_first_form_are_read_with_the_fingerprint_of_then(tmp_path: Path) -> None:
    video = {"name": "a", "split": "train", "snippets": 3, "tags": ["Run"], "duration_s": 2.0}
    other = {"name": "b", "split": "train", "snippets": 2, "tags": [], "timebase": {"fps": 30.0}}
    index = {
        "format": "wtal-store",
        "version": 1,
        "source": {"layout": "own"},
        "classes": ["Jump", "Run"],
        "features": {"dtype": "float32", "snippets": 5, "streams": {"features": 4}, "digest": "x"},
        "timebase": {"fps": 25.0, "stride_frames": 16.0, "offset_snippets": 0.0},
        "videos": [video, other],
    }
    rows = np.arange(20, dtype=np.float32).reshape(5, 4)
    np.save(tmp_path / "features.npy", rows)
    (tmp_path / "index.json").write_text(json.dumps(index))
    store = Store.open(tmp_path)
    np.testing.assert_array_equal(store.features("b"), rows[3:])
    assert store.timebase("b").fps == 30.0
    assert store.duration_s("a") == 2.0
    assert store.tags().tolist() == [[0, 1], [0, 0]]
    assert store.fingerprint == "939e731ab7710114f3dae6d3d0372960"
    assert store.fold(1, 2).fingerprint == "fa6732d52a88d512cb25262424db11dc"
    assert "features.npy is not what was written" in " ".join(map(str, check_store(store)))
    with pytest.raises(InputError, match="first form"), extend_store(tmp_path):
        pass
    with pytest.raises(InputError, match="first form"):
        repair(tmp_path)
    (tmp_path / "index.json").write_text(json.dumps({**index, "version": 99}))
    with pytest.raises(InputError, match="has version 99"):
        Store.open(tmp_path)


def test_one_video_is_found_without_reading_the_others(tmp_path: Path) -> None:
    with new_store(tmp_path / "s", classes=("Run",)) as writer:
        for number in range(2000):
            writer.add(VideoRecord(f"video{number:04d}", "train", ("Run",)), np.full((1, 1), number + 1.0))
    store = Store.open(tmp_path / "s")
    assert store.features("video1234")[0, 0] == 1235
    assert "entries" not in store.__dict__  # nothing else was read
