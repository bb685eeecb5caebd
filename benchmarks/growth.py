"""How a training epoch grows with the data: time linear in snippets, memory flat since features stay on disk.

Generated sets of one, three and ten times the demo's videos, each trained in a process of its own. Its own memory is
what is counted, not the pages of the memory-mapped features that happen to be resident: the system drops them at need.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from wtal.data import Store
from wtal.data.convert import convert
from wtal.data.synthetic import Difficulty, synthetic_source
from wtal.data.synthetic_annotations import random_annotations

VIDEOS, SIZES, DIMS, EPOCHS = 100, (1, 3, 10), 512, 4

#: trains for some epochs and says how long each took and how much memory was its own at the most
CHILD = """
import json, sys, threading
from pathlib import Path
from wtal.training import Recipe, train

def own_bytes():
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(lines["RssAnon"].split()[0])

peak, done = own_bytes(), threading.Event()
def sample():
    global peak
    while not done.wait(0.01):
        peak = max(peak, own_bytes())
thread = threading.Thread(target=sample)
thread.start()
store, run, epochs = sys.argv[1:]
train(Recipe("rskp", int(epochs), ((int(epochs), 1e-3),), {"warmup_epoch": 0}), store, run)
done.set()
thread.join()
lines = [json.loads(line) for line in (Path(run) / "metrics.jsonl").read_text().splitlines()]
print(json.dumps({"seconds": [line["seconds"] for line in lines], "peak": peak}))
"""


def run(console: Console) -> None:
    """Print time per snippet and memory for each size."""
    table = Table(title=f"one epoch of RSKP, three branches, {DIMS} dimensions")
    for heading in ("videos", "snippets", "features on disk", "seconds", "µs a snippet", "peak of own memory"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"times-{size}"
            rng = np.random.default_rng(0)
            made = random_annotations(rng, n_train=VIDEOS * size, n_test=0)
            quick = Difficulty(feature_noise=0.0)
            convert(synthetic_source(made, rng, n_dims=DIMS, difficulty=quick), path / "store")
            snippets = sum(Store.open(path / "store").index.shards.values())
            command = [sys.executable, "-c", CHILD, path / "store", path / "run", str(EPOCHS)]
            said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            seconds = min(said["seconds"][1:])  # the first epoch has two branches, and reads the features from disk
            table.add_row(
                str(VIDEOS * size),
                str(snippets),
                f"{sum(one.stat().st_size for one in (path / 'store').glob('*.npy')) / 1e6:.0f} MB",
                f"{seconds:.2f}",
                f"{1e6 * seconds / snippets:.1f}",
                f"{said['peak'] / 1e6:.0f} MB",
            )
    console.print(table)
