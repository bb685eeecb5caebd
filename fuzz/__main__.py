"""Give every reader damaged files for some minutes, and say how many there were and what went wrong.

    python -m fuzz --minutes 60
    python -m fuzz --minutes 5 --readers recipe wtalc
    python -m fuzz --minutes 5 --readers recipe --guided     Atheris: inputs grow towards code not reached before

Readers and damage are those of tests/doors/test_damaged.py. Each reader works in a process of its own, so that one
which dies, hangs for minutes or eats all memory is a case like any other. What went wrong lies in --keep as
READER/CASE/FILE: copied to tests/doors/found/, it is tried by the tests from then on.
"""

import argparse
import importlib.util
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
MEMORY_BYTES = 24 * 2**30
HANG_S = 300  # of a process that other work may keep waiting


def harness() -> Any:
    """The module that holds readers and damage."""
    sys.path.insert(0, str(TESTS))
    spec = importlib.util.spec_from_file_location("test_damaged", TESTS / "doors" / "test_damaged.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["test_damaged"] = module
    spec.loader.exec_module(module)
    return module


def work(damage: Any, reader: str, root: Path, seed: str, seconds: float, keep: Path, said: Any) -> None:
    """Try damaged files for so long; what is being tried is said first, in case that it is the last thing said."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    rng, tally, end = random.Random(seed), damage.Tally(), time.monotonic() + seconds
    while time.monotonic() < end:
        signal.alarm(HANG_S)
        said.value = tally.tried
        damage.try_damaged(reader, root, rng, tally, keep)
    signal.alarm(0)
    (root.parent / f"{reader}.json").write_text(json.dumps([tally.tried, tally.refused, tally.wrong]))


def turn(damage: Any, reader: str, world: Path, seed: str, seconds: float, keep: Path) -> Any:
    """One reader's turn, in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{reader}-"))
    root = damage.copied(world, folder / "world")
    whole = {path: path.read_bytes() for path in damage.files_of(reader, root)}
    said = multiprocessing.Value("q", 0)
    process = multiprocessing.get_context("fork").Process(
        target=work, args=(damage, reader, root, seed, seconds, keep, said)
    )
    process.start()
    process.join()
    tally = damage.Tally(tried=said.value)
    report = folder / f"{reader}.json"
    if report.exists():
        tally = damage.Tally(*json.loads(report.read_text()))
    if process.exitcode:
        for path, content in whole.items():
            if path.read_bytes() != content:
                case = keep / reader / f"died-{seed}-{said.value}" / path.relative_to(root)
                case.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, case)
        tally.wrong.append(f"died with {process.exitcode} after {said.value} (seed {seed})")
    shutil.rmtree(folder)
    return tally


def followed() -> AbstractContextManager[Any]:
    """Let Atheris see which lines of our modules run, of those that are loaded inside; those of torch are too many."""
    import atheris

    os.environ["NUMBA_DISABLE_JIT"] = "1"  # it cannot compile what is followed
    following: AbstractContextManager[Any] = atheris.instrument_imports(include=["wtal", "yaml"])
    return following


def guided(damage: Any, reader: str, world: Path, seconds: float, keep: Path) -> None:
    """Let Atheris make the inputs of one reader, of the first of its files; never returns."""
    import atheris

    root = damage.copied(world, Path(tempfile.mkdtemp(prefix="fuzz-")) / "world")
    path = damage.files_of(reader, root)[0]
    corpus = root.parent / "corpus"
    corpus.mkdir()
    shutil.copy(path, corpus)

    def one(content: bytes) -> None:
        path.write_bytes(content)
        wrong = damage.complaint(reader, root, damage.Tally())
        if wrong is not None:
            case = keep / reader / f"guided-{time.time_ns()}" / path.relative_to(root)
            case.parent.mkdir(parents=True, exist_ok=True)
            case.write_bytes(content)
            print(f"{reader}: {wrong} -> {case}", flush=True)

    atheris.Setup([sys.argv[0], str(corpus), f"-max_total_time={seconds:.0f}", "-rss_limit_mb=8000"], one)
    atheris.Fuzz()


def main() -> None:
    """Go round the readers until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--readers", nargs="+", metavar="READER")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--turn", type=float, default=20, help="seconds of a reader's turn")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="where cases go that went wrong")
    parser.add_argument("--guided", action="store_true", help="let Atheris guide the inputs of one reader")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    begun = time.monotonic()
    with followed() if asked.guided else nullcontext():
        damage = harness()
        world = damage.make_world(Path(tempfile.mkdtemp(prefix="fuzz-world-")))
    readers = asked.readers or list(damage.READERS)
    end = time.monotonic() + 60 * asked.minutes
    if asked.guided:
        (reader,) = readers
        guided(damage, reader, world, 60 * asked.minutes, asked.keep)
    tallies = {reader: damage.Tally() for reader in readers}
    number = 0
    while time.monotonic() < end:
        for reader in readers:
            seconds = min(asked.turn, end - time.monotonic())
            if seconds <= 0:
                break
            got, sum_ = (
                turn(damage, reader, world, f"{asked.seed}-{number}-{reader}", seconds, asked.keep),
                tallies[reader],
            )
            sum_.tried, sum_.refused, sum_.wrong = (
                sum_.tried + got.tried,
                sum_.refused + got.refused,
                sum_.wrong + got.wrong,
            )
        number += 1
        done = sum(tally.tried for tally in tallies.values())
        wrong = sum(len(tally.wrong) for tally in tallies.values())
        print(f"round {number}: {done:,} inputs, {wrong} wrong, {(time.monotonic() - begun) / 60:.0f} min", flush=True)
    print("| reader | inputs | refused | wrong |\n|---|---:|---:|---:|")
    for reader, tally in tallies.items():
        print(f"| {reader} | {tally.tried:,} | {tally.refused:,} | {len(tally.wrong)} |")
    for reader, tally in tallies.items():
        for line in sorted(set(tally.wrong)):
            print(f"{reader}: {line}")
    shutil.rmtree(world)
    sys.exit(any(tally.wrong for tally in tallies.values()))


if __name__ == "__main__":
    main()
