"""Training beside other programs: OpenMP's threads that spin while they wait, and threads that sleep.

One epoch of RSKP on two threads, alone and beside three processes that keep the processors busy.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from wtal.data.convert import convert
from wtal.data.synthetic import synthetic_source
from wtal.data.synthetic_annotations import random_annotations

BUSY = 3
CHILD = """
import sys
from wtal.training import Execution, Recipe, train
run = train(Recipe("rskp", 3, ((3, 1e-3),), {"warmup_epoch": 9}), *sys.argv[1:], execution=Execution(threads=2))
print(min(line["seconds"] for line in run.metrics().epochs))
"""


@contextmanager
def busy(n: int) -> Iterator[None]:
    """So many processes that compute all the while."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


#: what the threads are told, by what they do
WAYS = {
    "spin": {"OMP_WAIT_POLICY": "ACTIVE"},
    "sleep at once": {"OMP_WAIT_POLICY": "PASSIVE"},
    "sleep after microseconds, as wtal has it": {},
}


def epoch_s(store: Path, told: dict[str, str], run: Path) -> float:
    """Seconds of the quickest of three epochs."""
    bare = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    environment = {**bare, **told, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", CHILD, str(store), str(run)]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def run(console: Console) -> None:
    """Print an epoch's seconds by policy, alone and beside others."""
    table = Table(title=f"one epoch of RSKP on two threads, alone and beside {BUSY} busy processes")
    for heading in ("waiting threads", "alone", "beside others", "ratio"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), np.random.default_rng(0)
        made = random_annotations(rng, n_train=30, n_test=0)
        convert(synthetic_source(made, rng, n_dims=256), folder / "store")
        for said, told in WAYS.items():
            alone = epoch_s(folder / "store", told, folder / f"{said}-alone")
            with busy(BUSY):
                beside = epoch_s(folder / "store", told, folder / f"{said}-beside")
            table.add_row(said, f"{alone:.2f} s", f"{beside:.2f} s", f"{beside / alone:.1f}")
    console.print(table)
