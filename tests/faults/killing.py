"""Kill wtal at many points of its work, run the same command again, and compare with work that nobody disturbed.

    python tests/faults/killing.py --points 20          all commands; a table at the end
    python tests/faults/killing.py train extract        some of them

Each try is a process of its own, forked from one that has everything loaded, in a fresh copy of the same inputs. Every
second one kills itself right before its k-th change of a file or folder (opening for writing, renaming, removing, …,
which Python announces to audit hooks), the others are killed from outside after a random time.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1])]

from small import DETECTOR, RECIPE, make_store  # noqa: E402
from videos import write_video  # noqa: E402

#: labels are renewed at nearly every epoch, so that most of the work is that
RELABEL = """
model: rskp
model_options: {dropout: 0.3, hidden: 8}
epochs: 4
batch_videos: 7
learning_rate: [[4, 1e-3]]
targets: {stages: [{from_epoch: 1, source: raw}, {from_epoch: 2}, {from_epoch: 3}]}
test: {protocols: [thumos14]}
"""
TEACHER = (
    "model: rskp\nepochs: 1\nlearning_rate: [[1, 1e-3]]\nmodel_options: {hidden: 8}\ntest: {protocols: [thumos14]}\n"
)
EXTRACTOR = """
import numpy as np
def waves(frames):
    scaled = frames.mean() / np.array([5, 10, 20, 40])
    return np.concatenate([np.sin(scaled), np.cos(scaled)])
waves.short_side = 16
"""
_TRAIN = ["--data", "store", "--run", "run", "--resume", "--threads", "1", "--checkpoint-every-s", "0"]
_EXTRACT = ["extract", "videos", "-o", "made", "--extractor", "waves_extractor:waves", "--threads", "1"]
#: what is typed, again and again until it is done
COMMANDS: dict[str, list[str]] = {
    "train": ["train", "tiny.yaml", *_TRAIN],
    "relabel": ["train", "relabel.yaml", *_TRAIN],
    "detector": ["train", "detector.yaml", *_TRAIN, "--teacher", "teacher"],
    "extract": _EXTRACT,
    "convert": ["data", "convert", "features", "-o", "made", "--overwrite"],
    "localize": ["localize", "teacher", "--features", "store", "-o", "found.json"],
    "report": ["report", "teacher", "-o", "report.html", "--tables", "tables"],
}
#: the same, changed before it is killed, so that it replaces what is there
FIRST: dict[str, list[str]] = {
    "extract": [*_EXTRACT[:1], "videos/a.mp4", *_EXTRACT[2:]],
    "convert": COMMANDS["convert"],
}
#: what a browser sends to wtal serve --edit, one save after the other; "corrections" is what is typed
SAVES = 12
if find_spec("wtal.corrections") is not None:
    COMMANDS["corrections"] = ["corrections"]
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod"}


@dataclass
class _Fuse:
    """How many more changes this process may make before it dies; None: as many as it likes."""

    left: float | None = None
    made: int = 0


_fuse = _Fuse()


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _fuse.left is None:
        return
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if event not in _CHANGES and not writes:
        return
    if str(arguments[0]).startswith(("/dev", "/proc")) or "__pycache__" in str(arguments[0]):
        return
    if _fuse.made >= _fuse.left:
        os.kill(os.getpid(), signal.SIGKILL)
    _fuse.made += 1


def typed(command: list[str]) -> None:
    """Do what somebody has typed; or save corrections, going on from what is saved."""
    if command != ["corrections"]:
        from wtal.cli import main

        sys.path.insert(0, ".")
        main(command)
        return
    from wtal.corrections import Correction, Corrections, Segment

    there = Corrections(Path("corrections.json"))
    for number in range(SAVES):
        name = f"video{number % 3}"
        newest = there.videos()[name].revision if name in there.videos() else 0
        if newest == number // 3:
            segments = (Segment(number, number + 1.5, "Run"), Segment(50.0, 60.0, "Jump", "moved"))
            there.save(name, Correction(newest, segments, done=bool(number % 2), split="train", duration_s=90.0))


def prepare(root: Path) -> None:
    """Inputs for every command."""
    from wtal.cli import main

    make_store(root / "store", n_train=7, n_test=2)
    for name, text in {"tiny": RECIPE, "relabel": RELABEL, "detector": DETECTOR, "teacher": TEACHER}.items():
        (root / f"{name}.yaml").write_text(text)
    for name in "ab":
        write_video(root / "videos" / f"{name}.mp4", np.arange(ord(name), 250, 4), size=(32, 24))
    (root / "waves_extractor.py").write_text(EXTRACTOR)
    rng = np.random.default_rng(0)
    (root / "features").mkdir()
    (root / "features" / "tags.csv").write_text("video,label,split\na,Run,train\nb,Jump,test\n")
    for name in "ab":
        np.save(root / "features" / f"{name}.npy", rng.random((9, 6), np.float32))
    with contextlib.chdir(root):
        main(["train", "teacher.yaml", "--data", "store", "--run", "teacher", "--threads", "1"])


def content(root: Path) -> dict[str, str]:
    """What is in a folder: every file by a checksum, without the times that work took; nothing may be half written."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if not path.is_file() or "__pycache__" in name:
            continue
        data = path.read_bytes()
        if path.name == "metrics.jsonl":
            lines = [json.loads(line) for line in data.splitlines()]
            data = json.dumps([{**line, "seconds": 0} for line in lines]).encode()
        elif path.name.endswith(".history.jsonl"):  # a save that was cut short is there twice; each line has a time
            data = json.dumps(
                sorted({(line["video"], line["revision"]) for line in map(json.loads, data.splitlines())})
            )
            data = data.encode()
        elif path.name == "environment.json":
            data = data.replace(str(root).encode(), b"")
        elif path.name == "state.json":  # Python's own generator begins anywhere, and nothing here draws from it
            data = json.dumps({**json.loads(data), "random_python": None}).encode()
        found[name] = hashlib.blake2b(data, digest_size=8).hexdigest()
    return found


def in_child(
    work: Callable[[], None], folder: Path, *, changes: float | None = None, seconds: float | None = None
) -> int:
    """How a forked process ended that did the work in that folder: killed as asked for, or by itself."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.chdir(folder)
            log = os.open(f"{folder}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            _fuse.left = changes if changes is not None else float("inf")
            work()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            _fuse.left = None
            Path(f"{folder}.changes").write_text(str(_fuse.made))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    if seconds is not None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
            time.sleep(0.002)
        os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@dataclass(frozen=True)
class Outcome:
    """How often a command was killed, and all that was wrong afterwards."""

    command: str
    changes: int
    killed: int
    tried: int
    wrong: tuple[str, ...]


def kill(command: str, inputs: Path, scratch: Path, points: int, rng: random.Random) -> Outcome:
    """Kill the command at so many points, each time in a fresh folder, and run it again until it is done."""

    def again() -> None:
        typed(COMMANDS[command])

    def first() -> None:
        typed(FIRST[command])

    def fresh(name: str) -> Path:
        folder = scratch / name
        shutil.copytree(inputs, folder)
        if command in FIRST and in_child(first, folder):
            raise SystemExit(Path(f"{folder}.log").read_text())
        return folder

    whole = fresh(f"{command}-whole")
    begun = time.monotonic()
    if in_child(again, whole):
        raise SystemExit(f"{command} fails undisturbed:\n" + Path(f"{whole}.log").read_text())
    took = time.monotonic() - begun
    changes, wanted = int(Path(f"{whole}.changes").read_text()), content(whole)
    killed, wrong = 0, []
    for number in range(points):
        folder = fresh(f"{command}-{number}")
        at: dict[str, float] = {"seconds": rng.uniform(0, took)} if number % 2 else {"changes": rng.randrange(changes)}
        ended = in_child(again, folder, **at)
        killed += ended == -signal.SIGKILL
        code = in_child(again, folder)
        if code:
            said = Path(f"{folder}.log").read_text().splitlines()
            wrong.append(f"{at}: the same command again ended with {code}: {' | '.join(said[-3:])}")
            continue
        now = content(folder)
        differ = sorted(name for name in {*wanted, *now} if wanted.get(name) != now.get(name))
        if differ:
            wrong.append(f"{at}: differs in {', '.join(differ[:5])}")
        else:
            shutil.rmtree(folder)
    return Outcome(command, changes, killed, points, tuple(wrong))


def run(commands: Sequence[str], points: int, scratch: Path, seed: int = 0) -> list[Outcome]:
    """Kill each of the commands at so many points."""
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.addaudithook(_hear)
    scratch = scratch.resolve()
    inputs = scratch / "inputs"
    inputs.mkdir(parents=True)
    prepare(inputs)
    return [kill(command, inputs, scratch, points, random.Random(f"{seed}-{command}")) for command in commands]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", choices=[*COMMANDS, []])
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scratch", type=Path)
    asked = parser.parse_args()
    where = asked.scratch or Path(tempfile.mkdtemp(prefix="killing-"))
    outcomes = run(asked.commands or list(COMMANDS), asked.points, where, asked.seed)
    print("| command | changes of files | killed | of | wrong afterwards |\n|---|---:|---:|---:|---:|")
    for one in outcomes:
        print(f"| {one.command} | {one.changes} | {one.killed} | {one.tried} | {len(one.wrong)} |")
    for one in outcomes:
        for line in one.wrong:
            print(f"{one.command}: {line}")
    sys.exit(any(one.wrong for one in outcomes))
