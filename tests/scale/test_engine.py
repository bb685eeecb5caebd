"""The work of one machine on a Ray cluster: the same bytes, whatever dies on the way.

One cluster of two raylets, as two machines with a processor each, serves all tests.
"""

import os
import socket
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from videos import write_video
from wtal.engine import LOCAL, Engine, EngineOptions, Ray
from wtal.errors import InputError
from wtal.extract import extract
from wtal.video.extractor import ExtractorOptions

ray = pytest.importorskip("ray", reason="the extra ray is not installed")
cluster_utils = pytest.importorskip("ray.cluster_utils", reason="this Ray has no test clusters")
pytestmark = pytest.mark.filterwarnings("default")  # what Ray warns about is Ray's

MODULE = '''
import os
from pathlib import Path

FOLDER = Path({folder!r})

def mean(frames):
    """Dies once, in the middle of the work, if it is asked to."""
    die = FOLDER / "die"
    if die.exists() and frames.mean() > 100:
        die.unlink()
        os._exit(9)
    return [frames.mean(), frames[0].mean(), frames[-1].mean()]

mean.short_side = 16

def slow(items, started):
    import time
    for item in items:
        Path(started, str(item)).touch()
        time.sleep(0.1)
        yield item * item

def failing(items):
    from wtal.errors import InputError
    for item in items:
        if item == 3:
            raise InputError("three.mp4: cannot be read")
        yield item
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the module is that workers import; they get the path with the environment."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "ray_work.py").write_text(MODULE.format(folder=str(folder)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("RAY_health_check_timeout_ms", "60000")
        patch.syspath_prepend(folder)
        yield folder


def _small() -> dict[str, int]:
    """A machine of one processor; its agents' ports are said, as on a busy machine Ray does not wait long for them."""
    ports = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port", "dashboard_agent_listen_port")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("", 0))) for _ in ports]
        free = [one.getsockname()[1] for one in sockets]
    return {"num_cpus": 1, "object_store_memory": 80 * 2**20, **dict(zip(ports, free, strict=True))}


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator["cluster_utils.Cluster"]:
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **_small()})
    cluster.add_node(**_small())
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def engine(cluster: "cluster_utils.Cluster") -> Engine:
    return Ray(cluster.address)


def test_features_are_the_same_bytes_though_a_worker_dies(engine: Engine, folder: Path, tmp_path: Path) -> None:
    for name, brightness in {"a": 40, "b": 160, "c": 80, "d": 200}.items():
        write_video(tmp_path / "videos" / f"{name}.mp4", brightness + np.arange(70) / 2, size=(32, 24))
    options = ExtractorOptions("ray_work:mean")
    extract([tmp_path / "videos"], tmp_path / "here", options)
    (folder / "die").touch()
    heard: list[float] = []
    extract(
        [tmp_path / "videos"],
        tmp_path / "there",
        options,
        engine=engine,
        progress=lambda step, done, total, detail: heard.append(done / total),
    )
    assert not (folder / "die").exists()  # a worker has died
    files = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "there").iterdir())
    for name in files:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    assert heard == sorted(heard)
    assert heard[-1] == 1.0


def test_no_more_is_under_way_than_the_cluster_can_take(engine: Engine, folder: Path, tmp_path: Path) -> None:
    import ray_work

    results = engine.stream(partial(ray_work.slow, started=str(tmp_path)), range(40))
    got = [next(results) for _ in range(5)]
    time.sleep(1.5)  # a consumer that takes its time
    assert len(list(tmp_path.iterdir())) <= 5 + 2 * 2
    got += list(results)
    assert got == [item * item for item in range(40)]


def test_what_is_wrong_with_an_item_arrives_as_it_was_said(engine: Engine, folder: Path) -> None:
    import ray_work

    results = engine.stream(ray_work.failing, range(6), chunk=2)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(InputError, match=r"^three.mp4: cannot be read$"):
        next(results)


def test_a_machine_that_dies_costs_its_tasks_alone(
    cluster: "cluster_utils.Cluster", engine: Engine, folder: Path, tmp_path: Path
) -> None:
    import ray_work

    node = cluster.add_node(**_small())
    cluster.wait_for_nodes()
    results = engine.stream(partial(ray_work.slow, started=str(tmp_path)), range(30))
    got = [next(results) for _ in range(4)]
    cluster.remove_node(node, allow_graceful=False)
    got += list(results)
    assert got == list(LOCAL.stream(partial(ray_work.slow, started=str(tmp_path)), range(30)))


def test_instances_are_the_same_as_here(engine: Engine, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra train is not installed")
    from wtal.card import Card
    from wtal.data import Store
    from wtal.data.convert import convert
    from wtal.data.synthetic import synthetic_source
    from wtal.data.synthetic_annotations import random_annotations
    from wtal.localize import Localizer
    from wtal.models import build

    rng = np.random.default_rng(0)
    made = random_annotations(rng, n_train=6, n_test=20, n_classes=3)
    convert(synthetic_source(made, rng, n_dims=16), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    model = build("stpn", len(store.classes), store.dimensions, streams=store.streams, stream_weights={}).eval()
    localizer = Localizer(model, Card("stpn", store.classes, store.dimensions))
    here, there = localizer.store(store), localizer.store(store, engine=engine)
    assert list(here) == list(there) == list(store.names())
    for name in here:
        for part in ("segments", "scores", "class_ids"):
            np.testing.assert_array_equal(getattr(here[name], part), getattr(there[name], part))


def test_new_labels_are_the_same_as_here(engine: Engine, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the extra train is not installed")
    from wtal.data import Store
    from wtal.data.convert import convert
    from wtal.data.synthetic import synthetic_source
    from wtal.data.synthetic_annotations import random_annotations
    from wtal.models import build
    from wtal.pseudo.delta import Stage
    from wtal.training.config import Recipe, TargetSettings
    from wtal.training.relabel import relabel
    from wtal.training.videos import Videos

    rng = np.random.default_rng(0)
    made = random_annotations(rng, n_train=25, n_test=0, n_classes=3)
    convert(synthetic_source(made, rng, n_dims=16), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    torch.manual_seed(0)
    model = build("stpn", len(store.classes), store.dimensions, streams=store.streams, stream_weights={})
    stage = Stage(1)
    recipe = Recipe("stpn", 2, ((2, 1e-3),), targets=TargetSettings(stages=(stage,)))
    videos, heard = Videos(store, "train", torch.device("cpu")), []
    here = relabel(model, videos, recipe, stage)
    there = relabel(model, videos, recipe, stage, engine=engine, progress=lambda *said: heard.append(said[1:3]))
    assert (here.targets != there.targets).nnz == 0
    assert here.targets.nnz
    assert here.n_programs == there.n_programs
    assert heard[-1] == (25, 25)


def test_an_address_without_ray_is_refused() -> None:
    with pytest.raises(InputError, match="say `engine='ray'` too"):
        EngineOptions(address="auto").open()


def test_here_the_task_gets_all_items_at_once() -> None:
    def counted(items: Sequence[int]) -> Generator[int, None, None]:
        yield from (len(items) for _ in items)

    assert list(LOCAL.stream(counted, [7, 8, 9])) == [3, 3, 3]
