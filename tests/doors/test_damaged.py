"""Thousands of damaged files at every reader: each is read, or refused in one sentence that names a file.

WTAL_DAMAGED=10 tries ten times as many; `python -m fuzz --minutes 60` goes on for an hour. Cases that once went wrong
are kept in found/READER/CASE/, as the files that were damaged, and tried every time.
"""

import io
import json
import os
import random
import re
import shutil
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from small import RECIPE, make_store
from videos import write_video
from wtal.cli.tune import _read_grid
from wtal.data.layouts import read_source
from wtal.data.source import Given
from wtal.data.store import Store
from wtal.data.unfinished import UnfinishedFeatures
from wtal.errors import InputError
from wtal.evaluate import read_ambiguous
from wtal.formats import read_annotations, read_predictions, write_predictions
from wtal.formats.maps import read_maps, write_maps
from wtal.formats.targets import read_targets
from wtal.localize import Localizer
from wtal.maps import ActivationMap
from wtal.training import Execution, Run, read_recipe, train
from wtal.training import checkpoint as checkpoints
from wtal.training.session import _fresh_state
from wtal.video.decode import probe, read_pictures
from wtal.video.weights import read_state

TIMES = int(os.environ.get("WTAL_DAMAGED", "1"))
FOUND = sorted(Path(__file__).parent.glob("found/*/*"))

_NUMBERS = (b"-1", b"0", b"1e999", b"9" * 400, b"NaN", b"null", b"true", b'"x"', b"[]", b"{}", b"4294967296", b"1.5")
_TEXTS = (b'"\\ud800"', b'""', b"7", b"null", b"[" * 3000, b'{"a": 1}', b'"../x"', b"*a", b"!!binary x")
_WORDS = (b"<f8", b"|O", b"<M8[s]", b"|V8", b"<c16", b">i4", b"|b1", b"|S9999999", b"(((", b"b'", b"()", b"-" * 900)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with one to three faults, of the kinds that disks, networks and people make."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice((_flipped, _cut, _inserted, _removed, _extreme, _number, _number, _text, _word))(
            content, rng
        )
    return content


def _place(content: bytes, rng: random.Random) -> int:
    # headers are short and decide much
    return rng.randrange(min(len(content), rng.choice((100, 400, len(content)))) or 1)


def _flipped(content: bytes, rng: random.Random) -> bytes:
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 4, 16))):
        if out:
            out[_place(content, rng)] ^= 1 << rng.randrange(8)
    return bytes(out)


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _inserted(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + rng.randbytes(rng.choice((1, 4, 50))) + content[at:]


def _removed(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at + rng.choice((1, 4, 50)) :]


def _extreme(content: bytes, rng: random.Random) -> bytes:
    at, width = _place(content, rng), rng.choice((1, 2, 4, 8))
    value = rng.choice((b"\xff" * width, b"\0" * width, b"\xff" * (width - 1) + b"\x7f", b"\0" * (width - 1) + b"\x80"))
    return content[:at] + value + content[at + width :]


def _swapped(content: bytes, rng: random.Random, pattern: bytes, others: tuple[bytes, ...]) -> bytes:
    found = list(re.finditer(pattern, content[:20_000]))
    if not found:
        return _flipped(content, rng)
    one = rng.choice(found)
    return content[: one.start()] + rng.choice(others) + content[one.end() :]


def _number(content: bytes, rng: random.Random) -> bytes:
    return _swapped(content, rng, rb"-?\d+(\.\d+)?", _NUMBERS)


def _text(content: bytes, rng: random.Random) -> bytes:
    return _swapped(content, rng, rb'"[^"\n]*"|\[[^\[\]]*\]|\b[a-z_]+\b', _TEXTS)


def _word(content: bytes, rng: random.Random) -> bytes:
    return _swapped(content, rng, rb"[<|>=][a-zA-Z?]\d*|\([^()]*\)|'[a-z_]+'", _WORDS)


def inside(content: bytes, rng: random.Random) -> bytes:
    """An archive with one damaged member and checksums that are right, as if somebody had meant it."""
    if rng.random() < 0.2:
        return damaged(content, rng)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            new.writestr(name, damaged(old.read(name), rng) if name == chosen else old.read(name))
    return out.getvalue()


def _objects(*items: object) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("world"))


def make_world(root: Path) -> Path:
    """Whole files of every kind."""
    rng = np.random.default_rng(0)
    store = make_store(root / "store", n_train=6)
    (root / "tiny.yaml").write_text(RECIPE)
    train(root / "tiny.yaml", store, root / "run", execution=Execution(threads=1, evaluate_every=2))
    write_maps(root / "maps.npz", ["Run"], {"a": [ActivationMap("a", rng.random((4, 1)), np.ones(1), rng.random(4))]})
    write_predictions(root / "found.csv", Run(root / "run").predictions(store.classes) or {}, store.classes)
    (root / "grid.yaml").write_text("combine.temperature: [0.03, 0.1]\nthresholds: [[0.1, 0.2]]\n")
    (root / "list.txt").write_text("video_test_0000278  0.0 1.4\nvideo_test_0000278  95.7 97.2\n")
    torch.save({"module.a.weight": torch.ones(3, 2), "b": torch.zeros(2)}, root / "weights.pt")
    write_video(root / "clip.mp4", range(0, 60, 4))
    (root / "unfinished").mkdir()
    (root / "unfinished" / "a.json").write_text('{"file": "a.mp4", "streams": {"rgb": 2}, "duration_s": 1.5}')
    features = root / "features"
    features.mkdir()
    (features / "tags.csv").write_text("video;label;split;duration_s\na;Run;train;2,5\nb;Jump, high;test;3\n")
    (root / "tags.csv").write_text("video,label\na,Run\nb,Jump\n")
    for name in "ab":
        np.save(features / f"{name}.npy", rng.random((4, 6), np.float32))
    notes = root / "wtalc" / "Thumos14reduced-Annotations"
    notes.mkdir(parents=True)
    for name, column in {
        "videoname": np.array([b"a", b"b"]),
        "subset": np.array([b"validation", b"test"]),
        "classlist": _objects("Run", "Jump"),
        "labels_all": _objects(["Run"], [b"Jump", "Run"]),
        "labels": _objects(["Run"], ["Jump", "Run"]),
        "segments": _objects([[0.5, 2.0]], [(0.0, 1.0), (1.0, 2.0)]),
        "duration": np.array([3.0, 4.0]),
    }.items():
        np.save(notes / f"{name}.npy", column, allow_pickle=True)
    parts = _objects(rng.random((3, 6), np.float32), np.asfortranarray(rng.random((4, 6))))
    np.save(root / "wtalc" / "I3D-JOINTFeatures.npy", parts, allow_pickle=True)
    try:
        import h5py
    except ImportError:
        return root
    with h5py.File(root / "all.h5", "w") as file:
        file["a"] = rng.random((3, 4), np.float32)
        file.create_group("b")["rgb"] = rng.random((3, 4))
    return root


def _store(root: Path) -> None:
    store = Store.open(root / "store")
    _ = store.fingerprint, store.extraction, store.clock, store.tags()
    for name in store.names():
        _ = store.features(name).sum(), store.duration_s(name)
    store.truth()


def _source(layout: str, path: str, tags: str | None = None) -> Callable[[Path], None]:
    def read(root: Path) -> None:
        given = Given(tags=root / tags if tags else None)
        source = read_source(root / path, layout, given)
        for record in source.records:
            json.dumps(record.name, ensure_ascii=False).encode()
            source.load(record.name)

    return read


def _targets(root: Path) -> None:
    made = read_targets(root / "run" / "targets" / "epoch-0002.npz")
    for labels in made.targets.values():
        labels.sum()


def _checkpoint(root: Path) -> None:
    store = Store.open(root / "store")
    recipe = read_recipe(root / "tiny.yaml")
    random_state = torch.get_rng_state()
    state = _fresh_state(recipe, store, torch.device("cpu"))
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        checkpoints.load(root / "run" / "checkpoints" / "epoch-0005-step-0000", state)
        for parameter in state.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        state.optimizer.step()
        _ = np.random.random(), random.random(), torch.rand(1)  # noqa: NPY002
        for labels in (state.generations.now, state.generations.before):
            if labels is not None:
                labels.toarray()
    finally:
        torch.set_rng_state(random_state)
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _report(root: Path) -> None:
    from wtal.report.measures import measure_all
    from wtal.report.progress import training
    from wtal.report.runs import load
    from wtal.report.summary import summary

    measures, _ = measure_all(load([root / "run"]))
    training(measures)
    summary(measures)


def _unfinished(root: Path) -> None:
    (root / "unfinished" / "a.rows").write_bytes(np.ones((3, 2), "<f4").tobytes())
    work = UnfinishedFeatures(root / "unfinished")
    work.resume("a", "a.mp4", 2)
    work.load("a")


def _video(root: Path) -> None:
    probe(root / "clip.mp4")
    for picture in read_pictures(root / "clip.mp4", fps=5.0):
        _ = picture.pixels


#: reader: the files that it reads, how each is damaged, and how often
READERS: dict[str, tuple[Callable[[Path], object], tuple[str, ...], int]] = {
    "store": (_store, ("store/index.sqlite", "store/features-*.npy", "store/gt.json"), 300),
    "maps": (lambda root: read_maps(root / "maps.npz"), ("maps.npz",), 300),
    "targets": (_targets, ("run/targets/epoch-0002.npz",), 300),
    "wtalc": (_source("wtalc", "wtalc"), ("wtalc/*.npy", "wtalc/*/*.npy"), 400),
    "h5": (_source("h5", "all.h5", "tags.csv"), ("all.h5",), 200),
    "features": (_source("folder", "features"), ("features/a.npy", "features/tags.csv"), 300),
    "annotations": (lambda root: read_annotations(root / "store" / "gt.json"), ("store/gt.json",), 200),
    "predictions": (
        lambda root: (
            read_predictions(root / "run" / "predictions.json", Store.open(root / "store").classes),
            read_predictions(root / "found.csv", Store.open(root / "store").classes),
        ),
        ("run/predictions.json", "found.csv"),
        200,
    ),
    "recipe": (lambda root: read_recipe(root / "tiny.yaml"), ("tiny.yaml",), 200),
    "grid": (lambda root: _read_grid(root / "grid.yaml"), ("grid.yaml",), 100),
    "list": (lambda root: read_ambiguous(root / "list.txt"), ("list.txt",), 100),
    "weights": (lambda root: read_state(root / "weights.pt"), ("weights.pt",), 200),
    "model": (lambda root: Localizer.load(root / "run"), ("run/model/model.json", "run/model/model.safetensors"), 100),
    "checkpoint": (_checkpoint, ("run/checkpoints/epoch-0005-step-0000/*",), 100),
    "report": (
        _report,
        ("run/*.json", "run/metrics.jsonl", "run/config.yaml", "run/targets/*.npz", "store/index.sqlite"),
        40,
    ),
    "video": (_video, ("clip.mp4",), 100),
    "unfinished": (_unfinished, ("unfinished/a.json",), 100),
}


@dataclass
class Tally:
    """How many damaged files a reader was given and refused, and what it did wrong."""

    tried: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


def files_of(reader: str, root: Path) -> list[Path]:
    """The files that a reader reads."""
    return sorted(path for pattern in READERS[reader][1] for path in root.glob(pattern) if path.is_file())


def try_damaged(reader: str, root: Path, rng: random.Random, tally: Tally, keep: Path) -> None:
    """Give a reader one of its files damaged. What goes wrong is added to the tally and the file is kept."""
    path = rng.choice(files_of(reader, root))
    whole = path.read_bytes()
    content = (inside if path.suffix in (".npz", ".pt") else damaged)(whole, rng)
    case = keep / reader / f"{zlib.crc32(content):08x}" / path.relative_to(root)
    path.write_bytes(content)
    wrong = complaint(reader, root, tally)
    tally.tried += 1
    if wrong is not None:
        tally.wrong.append(f"{case.parts[-2]}, {path.name}: {wrong}")
        case.parent.mkdir(parents=True, exist_ok=True)
        case.write_bytes(content)
    path.write_bytes(whole)


def complaint(reader: str, root: Path, tally: Tally) -> str | None:
    """What is wrong with how a reader takes its files: nothing if it reads them, or refuses one by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            READERS[reader][0](root)
        except InputError as error:
            tally.refused += 1
            said = str(error)
            return said[:500] if str(root) not in said or len(said.encode()) > 5000 else None
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:200]}"
    return None


@pytest.mark.parametrize("reader", READERS)
def test_a_damaged_file_is_read_or_refused_by_name(reader: str, world: Path, tmp_path: Path) -> None:
    root = copied(world, tmp_path / "world")
    if not files_of(reader, root):
        pytest.skip("h5py is not installed")
    rng, tally = random.Random(zlib.crc32(reader.encode())), Tally()
    assert complaint(reader, root, tally) is None  # it is whole to begin with
    assert not tally.refused
    for _ in range(READERS[reader][2] * TIMES):
        try_damaged(reader, root, rng, tally, tmp_path / "wrong")
    print(f"{reader}: {tally.tried} tried, {tally.refused} refused, {len(tally.wrong)} wrong")
    assert not tally.wrong, f"{len(tally.wrong)} of {tally.tried}:\n" + "\n".join(tally.wrong[:20])
    assert tally.refused


@pytest.mark.parametrize("case", FOUND, ids=lambda case: "/".join(case.parts[-2:]))
def test_what_once_went_wrong_is_read_or_refused_by_name(case: Path, world: Path, tmp_path: Path) -> None:
    root = copied(world, tmp_path / "world")
    shutil.copytree(case, root, dirs_exist_ok=True)
    assert complaint(case.parent.name, root, Tally()) is None


def copied(world: Path, to: Path) -> Path:
    """A copy of the whole files that may be damaged."""
    shutil.copytree(world, to)
    _point_to(to)
    return to


def _point_to(root: Path) -> None:
    """Let the copied run know where the copied store is."""
    path = root / "run" / "environment.json"
    about = json.loads(path.read_text())
    about["data"]["path"] = str(root / "store")
    path.write_text(json.dumps(about))
