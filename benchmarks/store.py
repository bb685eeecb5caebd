"""Opening a store of 100 000 videos and reading from it, against one JSON index that is read whole.

The straightforward version parses the index and notes where each video begins in one memory-mapped array. Both hold the
same videos of a few snippets each, so that the index is what is measured.
"""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from wtal.data import Store, VideoRecord, extend_store, new_store

VIDEOS, CLASSES, DIMS, READS = 100_000, 200, 8, 1_000


def _record(number: int) -> VideoRecord:
    tags = tuple(f"class{n:03d}" for n in {number % CLASSES, number * 7 % CLASSES})
    return VideoRecord(f"video_{number:07d}", "train" if number % 3 else "test", tags, 60 + number % 300 / 7)


def _features(number: int) -> np.ndarray:
    return np.full((1 + number % 5, DIMS), 1 + number % 1000, dtype=np.float16)


class Straightforward:
    """One JSON file and one array."""

    @staticmethod
    def write(folder: Path) -> None:
        folder.mkdir()
        np.save(folder / "features.npy", np.concatenate([_features(number) for number in range(VIDEOS)]))
        videos = [{**asdict(_record(number)), "snippets": 1 + number % 5} for number in range(VIDEOS)]
        for video in videos:
            del video["timebase"]  # the same for all
        (folder / "index.json").write_text(json.dumps({"videos": videos}))

    def __init__(self, folder: Path) -> None:
        self.videos = json.loads((folder / "index.json").read_text())["videos"]
        ends = np.cumsum([video["snippets"] for video in self.videos]).tolist()
        self.rows = {
            video["name"]: slice(end - video["snippets"], end) for video, end in zip(self.videos, ends, strict=True)
        }
        self.matrix = np.load(folder / "features.npy", mmap_mode="r")

    def features(self, name: str) -> np.ndarray:
        return self.matrix[self.rows[name]]

    def tags(self, split: str) -> np.ndarray:
        chosen = [video for video in self.videos if video["split"] == split]
        out = np.zeros((len(chosen), CLASSES), dtype=np.float32)
        for row, video in enumerate(chosen):
            out[row, [int(tag[-3:]) for tag in video["tags"]]] = 1
        return out


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()  # which other work on the machine does not change much
    work()
    return time.process_time() - start


def run(console: Console) -> None:
    """Print what opening and reading take."""
    rng = np.random.default_rng(0)
    wanted = [f"video_{number:07d}" for number in rng.integers(0, VIDEOS, READS)]
    with tempfile.TemporaryDirectory() as temporary:
        plain, now = Path(temporary) / "plain", Path(temporary) / "now"
        Straightforward.write(plain)
        with new_store(now, classes=tuple(f"class{n:03d}" for n in range(CLASSES)), dtype="float16") as writer:
            for number in range(VIDEOS):
                writer.add(_record(number), _features(number))
        one, two = Straightforward(plain), Store.open(now)
        assert all((one.features(name) == two.features(name)).all() for name in wanted)
        assert (one.tags("train") == two.tags("train")).all()
        table = Table(title=f"a store of {VIDEOS:,} videos, milliseconds of the processor, best of 3")
        for heading in ("work", "one JSON index", "wtal", "ratio"):
            table.add_column(heading, justify="left" if heading == "work" else "right")
        for what, work in {
            "open": lambda store: store,
            "open, read one video": lambda store: store.features(wanted[0]).max(),
            f"open, read {READS:,} at random": lambda store: max(store.features(name).max() for name in wanted),
            "open, the tags of a split": lambda store: store.tags("train"),
        }.items():
            old = min(_seconds(lambda work=work: work(Straightforward(plain))) for _ in range(3))
            new = min(_seconds(lambda work=work: work(Store.open(now))) for _ in range(3))
            table.add_row(what, f"{1e3 * old:.0f}", f"{1e3 * new:.1f}", f"{old / new:.1f}×")
        console.print(table)
        sizes = [
            (folder / name).stat().st_size / 1e6 for folder, name in ((plain, "index.json"), (now, "index.sqlite"))
        ]

        def append() -> None:
            with extend_store(now) as writer:
                for number in range(VIDEOS, VIDEOS + 100):
                    writer.add(_record(number), _features(number))

        seconds = _seconds(append)
        console.print(
            f"index: {sizes[0]:.1f} MB as JSON, {sizes[1]:.1f} MB; 100 more videos appended in {seconds:.2f} s"
        )
