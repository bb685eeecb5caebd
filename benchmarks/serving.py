"""The server of a run of 5 000 videos under 50 connections: the list and the page beside static files of their size.

All are answered by one server in one run, turn by turn. The load generator is wrk (Debian: apt-get install wrk).
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import numpy as np
from rich.console import Console
from rich.table import Table

from wtal.annotations import Annotations, Video
from wtal.data.store import Store
from wtal.data.video_record import VideoRecord
from wtal.data.writer import new_store
from wtal.formats import write_annotations, write_predictions
from wtal.instances import Instances
from wtal.training import Execution, Recipe, train

VIDEOS, SNIPPETS, DIMENSIONS, CLASSES = 5000, 24, 8, 20
CONNECTIONS, SECONDS, ROUNDS = 50, 5, 3
TARGETS = {
    "list": "/api/videos?limit=50",
    "list, searched": "/api/videos?limit=50&q=class+07&sort=errors",
    "page": "/",
    "one video": "/api/video?run=run&name=video_00042",
}


def run(console: Console) -> None:
    """Print the median latencies and their ratios."""
    if shutil.which("wrk") is None:
        console.print("wrk is not installed, which makes the load: apt-get install wrk")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_run(folder)
        (folder / "static").mkdir()
        with serving(folder) as address:
            for target, path in TARGETS.items():
                with urlopen(address + path) as answer:
                    (folder / "static" / f"{target}.bin".replace(" ", "")).write_bytes(answer.read())
            rounds = [measured(folder, address) for _ in range(ROUNDS)]
    table = Table(title=f"{VIDEOS} videos, {CONNECTIONS} connections, median of {ROUNDS} rounds of {SECONDS} s")
    for heading in ("", "kB", "median ms", "static file ms", "ratio", "answers/s", "errors"):
        table.add_column(heading, justify="left" if not heading else "right")
    for target in TARGETS:
        own, static = ([one[target][which] for one in rounds] for which in (0, 1))
        mine, other = (median(one.latency_ms for one in part) for part in (own, static))
        per_s = median(one.per_second for one in own)
        errors = sum(one.errors for one in (*own, *static))
        size = f"{own[0].size / 1000:.1f}"
        table.add_row(target, size, f"{mine:.1f}", f"{other:.1f}", f"{mine / other:.2f}", f"{per_s:.0f}", str(errors))
    console.print(table)


class Load:
    """What wrk says about one address."""

    def __init__(self, address: str, size: int) -> None:
        command = ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--timeout", "20s", "--latency", address]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        value, unit = re.findall(r"50%\s+([\d.]+)(us|ms|s)\b", said)[0]
        self.latency_ms = float(value) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]
        self.per_second = float(re.findall(r"Requests/sec:\s+([\d.]+)", said)[0])
        failed = re.findall(r"(?:connect|read|write|timeout) (\d+)|Non-2xx or 3xx responses: (\d+)", said)
        self.errors = sum(int(a or b) for a, b in failed)
        self.size = size


def measured(folder: Path, address: str) -> dict[str, tuple[Load, Load]]:
    """Each target and the static file of its size, one after the other."""
    loads = {}
    for target, path in TARGETS.items():
        file = folder / "static" / f"{target}.bin".replace(" ", "")
        size = file.stat().st_size
        loads[target] = Load(address + path, size), Load(f"{address}/bench/{file.name}", size)
    return loads


def make_run(folder: Path) -> None:
    """A small trained model, a store of many short videos, and predictions and truth of all of them."""
    rng = np.random.default_rng(0)
    classes = tuple(f"class {number:02d}" for number in range(CLASSES))
    for name, count, split in (("small", 2 * CLASSES, "train"), ("large", VIDEOS, "test")):
        with new_store(folder / name, classes=classes) as writer:
            for number in range(count):
                record = VideoRecord(f"video_{number:05d}", split, (classes[number % CLASSES],))
                writer.add(record, rng.normal(size=(SNIPPETS, DIMENSIONS)).astype(np.float32))
    execution = Execution(threads=1)
    recipe = Recipe("rskp", 1, ((1, 1e-3),), model_options={"hidden": 8})
    made = train(recipe, folder / "small", folder / "run", execution=execution)
    store = Store.open(folder / "large")
    found, truth = {}, {}
    for number, name in enumerate(store.names()):
        starts = rng.uniform(0, 12, 20)
        ends = starts + rng.uniform(0.5, 3, 20)
        found[name] = Instances(np.stack([starts, ends], 1), rng.random(20), rng.integers(CLASSES, size=20))
        own = np.full(3, number % CLASSES)
        truth[name] = Video("test", store.duration_s(name), Instances(found[name].segments[:3], class_ids=own))
    write_predictions(made.path / "predictions.json", found, classes)
    write_annotations(folder / "large" / "gt.json", Annotations(classes, truth))


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server in a process of its own."""
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.serving", str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        yield child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait()


def serve(folder: Path) -> None:
    """Serve the run, and a folder of static files behind the same guard."""
    import socket

    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    from wtal.serve.app import application
    from wtal.serve.guard import Guard
    from wtal.serve.served import Served

    app = application([Served.open(folder / "run", "run", folder / "large")])
    static = Guard(Starlette(routes=[Mount("/bench", StaticFiles(directory=folder / "static"))]))

    async def both(scope, receive, send) -> None:
        await (static if scope["path"].startswith("/bench/") else app)(scope, receive, send)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(both, log_level="warning", access_log=False, lifespan="off")).run([listener])


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
