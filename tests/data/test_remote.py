"""Stores at URLs: read as those on disk are, fetched once, within bounds."""

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from wtal.cli import main
from wtal.data import Store, VideoRecord, extend_store, shards
from wtal.data.convert import convert
from wtal.data.store import is_store
from wtal.data.synthetic import synthetic_source
from wtal.data.synthetic_annotations import random_annotations
from wtal.errors import InputError

fsspec = pytest.importorskip("fsspec", reason="the extra remote is not installed")


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of several shards, with true instances; the cache is a folder of the test's own."""
    monkeypatch.setattr(shards, "SHARD_BYTES", 20_000)
    monkeypatch.setenv("WTAL_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    made = random_annotations(rng, n_train=8, n_test=4, n_classes=3)
    convert(synthetic_source(made, rng, n_dims=16), tmp_path / "local")
    assert len(list((tmp_path / "local").glob("*.npy"))) > 3
    return tmp_path / "local"


@pytest.fixture
def memory(local: Path) -> Iterator[str]:
    filesystem = fsspec.filesystem("memory")
    filesystem.put(f"{local}/", "/bucket/store/", recursive=True)
    yield "memory://bucket/store"
    filesystem.rm("/bucket", recursive=True)


def _same(remote: Store, local: Store) -> None:
    assert remote.names() == local.names()
    assert remote.fingerprint == local.fingerprint
    assert remote.fold(1, 2).names("test") == local.fold(1, 2).names("test")
    for name in local.names():
        np.testing.assert_array_equal(remote.features(name), local.features(name))
    assert remote.truth().videos.keys() == local.truth().videos.keys()


def test_a_store_at_a_url_is_the_store(local: Path, memory: str) -> None:
    _same(Store.open(memory), Store.open(local))
    _same(Store.open(Path(memory)), Store.open(local))  # as the command line hands it over
    _same(Store.open(local.as_uri()), Store.open(local))
    assert is_store(Path(memory))
    assert not is_store(Path("memory://bucket/nothing"))
    with pytest.raises(InputError, match=r"memory://bucket/nothing is not a store"):
        Store.open("memory://bucket/nothing")
    with pytest.raises(InputError, match="gopher"):
        Store.open("gopher://bucket/store")


def test_one_video_fetches_its_shard_alone_and_once(local: Path, memory: str, tmp_path: Path) -> None:
    store = Store.open(memory)
    assert len(list((tmp_path / "cache").iterdir())) == 1  # the index
    store.features(store.names()[-1])
    fetched = sorted((tmp_path / "cache").iterdir())
    assert [path.name.split("-", 1)[1] for path in fetched if path.suffix == ".npy"] == [
        f"features-{store.entry(store.names()[-1]).shard:05d}.npy"
    ]
    written = [path.stat().st_ino for path in fetched]
    Store.open(memory).features(store.names()[-1])
    assert [path.stat().st_ino for path in sorted((tmp_path / "cache").iterdir())] == written


def test_what_is_added_there_is_seen_when_it_is_opened_again(local: Path, memory: str) -> None:
    before = Store.open(memory)
    packed = pickle.dumps(before.fold(1, 2))
    assert pickle.loads(packed).names("test") == before.fold(1, 2).names("test")
    with extend_store(local) as writer:
        writer.add(VideoRecord("new", "train", ()), np.ones((3, 16)))
    fsspec.filesystem("memory").put(f"{local}/", "/bucket/store/", recursive=True)
    assert "new" not in before.names()
    np.testing.assert_array_equal(Store.open(memory).features("new"), np.ones((3, 16)))
    with pytest.raises(InputError, match="changed since it was opened"):
        pickle.loads(packed)


def test_the_cache_stays_within_its_bounds(
    local: Path, memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = max(path.stat().st_size for path in local.iterdir())
    bound = 3 * largest
    monkeypatch.setenv("WTAL_CACHE_GB", str(bound / 1e9))
    store = Store.open(memory)
    for name in (*store.names(), *store.names()):
        np.testing.assert_array_equal(store.features(name), Store.open(local).features(name))
        assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= bound
    monkeypatch.setenv("WTAL_CACHE_GB", "much")
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(InputError, match="WTAL_CACHE_GB must be a number"):
        Store.open(memory)


def test_a_fetch_that_breaks_off_leaves_nothing_that_could_be_taken_for_the_file(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(memory)

    def torn(source: object, target: object, size: int) -> None:
        target.write(source.read(1000))  # type: ignore[attr-defined]
        raise ConnectionResetError(104, "Connection reset by peer")

    with monkeypatch.context() as patched:
        patched.setattr("wtal.data.remote.shutil.copyfileobj", torn)
        with pytest.raises(InputError, match="Connection reset"):
            store.features(store.names()[0])
    assert [path.name for path in (tmp_path / "cache").iterdir() if "features" in path.name] == []
    assert len(store.features(store.names()[0]))


@pytest.fixture
def s3(local: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The store in a bucket of a real S3 server on this machine."""
    pytest.importorskip("s3fs", reason="the extra remote is not installed")
    server_module = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for key, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(key, value)
    fsspec.config.conf.pop("s3", None)
    filesystem = fsspec.filesystem("s3", skip_instance_cache=True)
    filesystem.mkdir("bucket")
    for path in local.iterdir():
        filesystem.pipe_file(f"bucket/sets/store/{path.name}", path.read_bytes())
    yield "s3://bucket/sets/store"
    type(filesystem).clear_instance_cache()
    server.stop()


RECIPE = """
model: rskp
epochs: 1
learning_rate: [[1, 0.001]]
model_options: {hidden: 8}
batch_videos: 4
"""


@pytest.mark.filterwarnings("default")  # what the S3 client and the server warn about is theirs
def test_training_from_s3_is_training_from_disk(s3: str, local: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra train is not installed")
    _same(Store.open(s3), Store.open(local))
    (tmp_path / "r.yaml").write_text(RECIPE)
    weights = []
    for name, data in (("far", s3), ("near", str(local))):
        main(["train", str(tmp_path / "r.yaml"), "--data", data, "--run", str(tmp_path / name)])
        weights.append((tmp_path / name / "model" / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]
    assert s3 in (tmp_path / "far" / "environment.json").read_text()
    main(
        [
            "localize",
            str(tmp_path / "far"),
            "--features",
            s3,
            "--split",
            "test",
            "--all",
            "-o",
            str(tmp_path / "far.json"),
        ]
    )
    assert (tmp_path / "far.json").read_bytes() == (tmp_path / "far" / "predictions.json").read_bytes()
    main(["data", "check", s3])  # it would end with 1 if a byte were another
