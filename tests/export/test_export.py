"""A model that is handed on does what it did at home, wherever it is copied; its card tells the truth."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from wtal.cli import main
from wtal.errors import InputError, MissingExtraError
from wtal.export import export
from wtal.export.hub import push
from wtal.localize import Localizer

FILES = {"README.md", "classes.txt", "config.yaml", "evaluation.json", "model.json", "model.safetensors"}


def finds_the_same(one: Path, other: Path, store) -> bool:
    name = store.names("test")[0]
    first, second = (Localizer.load(path, device="cpu")(store.features(name)) for path in (one, other))
    return len(first) > 0 and list(first) == list(second)


@pytest.mark.parametrize("kind", ["single", "pair"])
def test_the_folder_is_the_model(kind, request, store, tmp_path):
    run = request.getfixturevalue(kind).path
    written = export(run, tmp_path / "out")
    teacher = {"teacher/model.json", "teacher/model.safetensors"} if kind == "pair" else set()
    assert set(written) == FILES | teacher
    moved = tmp_path / "elsewhere" / "under another name"
    shutil.copytree(tmp_path / "out", moved)
    assert finds_the_same(run, moved, store)
    assert (moved / "model.json").read_bytes() == (run / "model" / "model.json").read_bytes()
    assert tuple((moved / "classes.txt").read_text().splitlines()) == store.classes


@pytest.mark.parametrize("kind", ["single", "pair"])
def test_a_runs_folder_model_copied_anywhere_is_the_model_too(kind, request, store, tmp_path):
    run = request.getfixturevalue(kind).path
    shutil.copytree(run / "model", tmp_path / "copy")
    assert finds_the_same(run, tmp_path / "copy", store)
    export(tmp_path / "copy", tmp_path / "again")
    assert "Not measured" in (tmp_path / "again" / "README.md").read_text()
    assert finds_the_same(run, tmp_path / "again", store)


def test_the_command_line_uses_the_settings_of_the_folder(single, store, tmp_path):
    export(single.path, tmp_path / "out")
    for place, file in ((single.path, "a.json"), (tmp_path / "out", "b.json")):
        main(["localize", str(place), "--features", str(store.path), "--split", "test", "-o", str(tmp_path / file)])
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_the_card_says_what_was_measured_and_nothing_of_the_machine(pair, store, tmp_path):
    export(pair.path, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    measured = json.loads((pair.path / "evaluation.json").read_text())["thumos14"]
    assert " | ".join(f"{value:.1f}" for value in measured["map"]) in card
    assert f"{measured['n_videos']} videos" in card
    assert all(f"`{name}`" in card for name in store.classes)
    assert "`my-store`" in card
    assert "together with its teacher: `rskp` in `teacher/`" in card
    assert str(store.path.parent) not in card
    assert str(tmp_path) not in card


def test_what_is_there_stays(single, tmp_path):
    folder = tmp_path / "out"
    export(single.path, folder)
    before = (folder / "README.md").stat().st_mtime_ns
    with pytest.raises(InputError, match="is there already; --overwrite replaces it"):
        export(single.path, folder)
    assert (folder / "README.md").stat().st_mtime_ns == before
    export(single.path, folder, overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="choose another folder"):
            export(single.path, tmp_path / "mine", overwrite=overwrite)
    with pytest.raises(InputError, match="holds no trained model"):
        export(tmp_path / "mine", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_names_cannot_break_the_card():
    from wtal.export.readme import _code

    assert _code("a\n# b") == "`a # b`"
    assert _code("<img src=x>") == "`<img src=x>`"
    assert _code("x`y") == "``` x`y ```"


class FakeHub:
    """What is asked of the Hub, kept."""

    calls: ClassVar[list[tuple[object, ...]]] = []

    def __init__(self, **_):
        pass

    def create_repo(self, name, **options):
        self.calls.append(("create", name, options))
        return f"https://huggingface.co/{name}"

    def upload_folder(self, **options):
        self.calls.append(("upload", sorted(path.name for path in Path(options["folder_path"]).iterdir()), options))


def test_push_uploads_the_folder(single, tmp_path, monkeypatch, capsys):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "HfApi", FakeHub)
    monkeypatch.setattr(FakeHub, "calls", [])
    main(["export", str(single.path), str(tmp_path / "out"), "--push", "me/mine"])
    assert "https://huggingface.co/me/mine" in capsys.readouterr().out
    (_, name, made), (_, files, uploaded) = FakeHub.calls
    assert (name, made) == ("me/mine", {"private": True, "exist_ok": True})
    assert set(files) == FILES
    assert uploaded["repo_id"] == "me/mine"
    for wrong in ("mine", "a/b/c", "/x"):
        with pytest.raises(InputError, match="OWNER/NAME"):
            push(tmp_path / "out", wrong)


def test_a_hub_that_refuses_is_one_sentence(single, tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")

    class Refusing(FakeHub):
        def create_repo(self, name, **options):
            raise hub.errors.LocalTokenNotFoundError("no token")

    monkeypatch.setattr(hub, "HfApi", Refusing)
    with pytest.raises(InputError, match=r"the Hub did not take .*: no token; sign in with hf auth login"):
        push(tmp_path, "me/mine")


@pytest.mark.parametrize(("package", "extra"), [("onnxruntime", "onnx"), ("onnxscript", "onnx")])
def test_without_the_extra_nothing_is_written(single, tmp_path, monkeypatch, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*wtal\[{extra}\]"):
        export(single.path, tmp_path / "out", onnx=True)
    assert list(tmp_path.iterdir()) == []


def test_without_the_hubs_package_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"wtal\[hub\]"):
        push(tmp_path, "me/mine")


# Exporting traces the model with symbols for sizes, which the checks of shapes in tests cannot take: other processes.

EVERY = """
import sys
from pathlib import Path
import torch
from wtal.errors import InputError
from wtal.export.onnx import write_onnx
from wtal.card import Card
from wtal.models import build
from wtal.models.stpn import STPN

torch.manual_seed(0)
for name, options, streams in (
    ("stpn", {"hidden": 8}, {}),
    ("bm", {"hidden": 8, "floor": 0.1}, {}),
    ("wum", {"hidden": 8}, {}),
    ("facnet", {"hidden": 8}, {"rgb": 1.0, "flow": 2.0}),
):
    widths = {"rgb": 6, "flow": 6}
    card = Card(name, ("a", "b", "c"), 12, stream_weights=streams, streams=widths)
    model = build(name, 3, 12, streams=widths, stream_weights=streams, **options)
    print(name, *write_onnx(Path(sys.argv[1]) / f"{name}.onnx", model, card))


class Stubborn(STPN):
    def forward(self, batch):
        if not batch.features.sum() > 0:
            raise ValueError
        return super().forward(batch)


try:
    write_onnx(Path(sys.argv[1]) / "stubborn.onnx", Stubborn(2, 4), Card("stubborn", ("a", "b"), 4))
except InputError as error:
    print(error)
"""


def python(*arguments: object) -> str:
    ended = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_graphs_of_a_pair_say_what_torch_says(pair, store, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    python("-m", "wtal", "export", pair.path, tmp_path / "out", "--onnx")
    localizer = Localizer.load(pair.path, device="cpu")
    features = store.features(store.names("test")[0])[:53].astype(np.float32)
    (want,) = localizer.teachers[0].maps("a", features)
    session = runtime.InferenceSession(str(tmp_path / "out" / "teacher" / "model.onnx"))
    tcam, attention, scores = session.run(None, {"features": features})
    np.testing.assert_allclose(tcam[:, : len(store.classes)], want.tcam, atol=1e-4)
    np.testing.assert_allclose(attention, want.attention, atol=1e-4)
    np.testing.assert_allclose(scores[: len(store.classes)], want.video_scores, atol=1e-4)
    found = localizer.candidates("a", features).instances
    session = runtime.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    segments, scores = session.run(["segments", "scores"], {"features": features})
    network, cell, class_id = np.nonzero(scores > localizer.model.least_score)
    for column, values in ((found.starts, segments[network, cell, 0]), (found.scores, scores[network, cell, class_id])):
        assert len(column) == len(values)
        np.testing.assert_allclose(np.sort(column), np.sort(values), atol=1e-3)
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == list(store.classes)
    assert "| `teacher/model.onnx` | `tcam` |" in (tmp_path / "out" / "README.md").read_text()


def test_every_other_model_can_be_exported_or_is_named(tmp_path):
    pytest.importorskip("onnxruntime")
    *said, last = (line.split() for line in python("-c", EVERY, tmp_path).splitlines())
    assert " ".join(last).startswith("the model stubborn cannot be exported to ONNX: Could not guard on data-dependent")
    assert not (tmp_path / "stubborn.onnx").exists()
    maps = ["tcam", "attention", "video_scores"]
    of_streams = [f"{one}_{stream}" for stream in ("rgb", "flow") for one in maps]
    assert said == [["stpn", *maps], ["bm", *maps], ["wum", *maps], ["facnet", *of_streams]]
