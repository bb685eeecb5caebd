"""Videos into a store: what a user meets when disks, videos and processes fail."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from videos import write_video
from wtal.cli import main
from wtal.data.source import Given
from wtal.data.store import Store
from wtal.data.unfinished import open_unfinished
from wtal.errors import InputError
from wtal.extract import extract, find_videos
from wtal.localize import Localizer
from wtal.video.extractor import ExtractorOptions
from wtal.video.snippets import Sampling

OWN = '''
import os
from pathlib import Path
import numpy as np

def mean(frames):
    """A vector that says which pictures it has seen."""
    log = os.environ.get("CALLS")
    if log:
        with Path(log).open("a") as file:
            file.write(f"{frames.mean():.1f}\\n")
        if os.environ.get("DIE_AFTER") and len(Path(log).read_text().split()) >= int(os.environ["DIE_AFTER"]):
            os._exit(9)
    return [frames.mean(), frames[0].mean(), frames[-1].mean()]

mean.short_side = 16
mean.version = "1"

def waves(frames):
    scaled = frames.mean() / np.array([5, 10, 20, 40])
    return np.concatenate([np.sin(scaled), np.cos(scaled)])

waves.short_side = 16

def other(frames):
    return [frames.mean(), 2.0]

class Counter:
    short_side, crop = 16, 8

    def __init__(self):
        self.seen = 0

    def __call__(self, frames):
        assert frames.shape == (16, 8, 8, 3)
        self.seen += 1
        return [self.seen]

def growing(frames, sizes=[]):
    sizes.append(1)
    return np.ones(len(sizes))
'''


@pytest.fixture(autouse=True)
def own_module(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "my_extractor.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    yield
    sys.modules.pop("my_extractor", None)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    write_video(folder / "a.mp4", np.arange(400) / 2, size=(32, 24))
    write_video(folder / "b.mkv", np.arange(80), size=(32, 24), fps=50)
    write_video(folder / "deep" / "c.avi", 200 - np.arange(100), size=(32, 24), codec="mpeg4")
    return folder


@pytest.fixture
def videos(written, tmp_path) -> Path:
    return shutil.copytree(written, tmp_path / "videos")


OPTIONS = ExtractorOptions("my_extractor:mean")


def test_folders_and_files_make_a_store(videos, tmp_path):
    extract([videos], tmp_path / "store", OPTIONS)
    store = Store.open(tmp_path / "store")
    assert {name: store.length(name) for name in store.names()} == {"a": 25, "b": 3, "c": 6}
    assert store.duration_s("b") == pytest.approx(1.6)
    # snippet i of the rising video shows its frames i·16 to i·16 + 15
    np.testing.assert_allclose(store.features("a")[:, 0], (np.arange(25) * 16 + 7.5) / 2, atol=2)
    assert store.timebase("a").snippet_s == 0.64
    assert store.extraction["extractor"] == "my_extractor:mean"
    assert store.extraction["version"] == "1"
    assert not list(tmp_path.glob(".store*"))


def test_tags_and_truth_go_along(videos, tmp_path):
    (tmp_path / "tags.csv").write_text("video,label,split\na.mp4,Run,train\nb,Jump,train\nb,Run,train\nz,Run,test\n")
    findings = extract([videos], tmp_path / "store", OPTIONS, given=Given(tags=tmp_path / "tags.csv"))
    store = Store.open(tmp_path / "store")
    assert store.classes == ("Jump", "Run")
    assert store.records["b"].tags == ("Jump", "Run")
    said = " ".join(map(str, findings))
    assert "1 of 3 tagged videos are not there: z" in said
    assert "1 of 3 videos have no row among the tags: c" in said


def test_overlapping_snippets_keep_their_time(videos, tmp_path):
    extract([videos / "a.mp4"], tmp_path / "store", OPTIONS, Sampling(stride_frames=4))
    store = Store.open(tmp_path / "store")
    middles = store.timebase("a").to_seconds(np.arange(store.length("a")) + 0.5) * 25  # in frames
    np.testing.assert_allclose(store.features("a")[:-3, 0], middles[:-3] / 2, atol=2)


def calls(path: Path) -> int:
    return len(path.read_text().split()) if path.exists() else 0


@pytest.mark.parametrize("die_after", [5, 20, 30])
def test_a_killed_extraction_goes_on_where_it_was(videos, tmp_path, monkeypatch, die_after):
    extract([videos], tmp_path / "whole", OPTIONS)
    log = tmp_path / "calls"
    command = ["from wtal.cli import main; main()", "extract", videos, "-o", tmp_path / "store"]
    arguments = [sys.executable, "-c", *map(str, command), "--extractor", "my_extractor:mean", "--workers", "1"]
    path = os.pathsep.join([str(tmp_path / "modules"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "CALLS": str(log), "PYTHONPATH": path}
    died = subprocess.run(arguments, env={**environment, "DIE_AFTER": str(die_after)}, check=False)
    assert died.returncode == 9
    assert not (tmp_path / "store").exists()
    at_death = calls(log)
    subprocess.run(arguments, env=environment, check=True, capture_output=True)
    whole, store = Store.open(tmp_path / "whole"), Store.open(tmp_path / "store")
    for name in whole.names():
        np.testing.assert_array_equal(store.features(name), whole.features(name))
    assert store.fingerprint == whole.fingerprint
    # only the batch that was under way is done twice: 16 snippets at the most
    assert calls(log) - 34 <= min(at_death, 16)
    if die_after == 20:
        assert calls(log) < 34 + at_death


def test_a_second_run_does_only_what_is_new(videos, tmp_path, monkeypatch):
    log = tmp_path / "calls"
    monkeypatch.setenv("CALLS", str(log))
    store = tmp_path / "store"
    extract([videos / "a.mp4"], store, OPTIONS)
    assert calls(log) == 25
    extract([videos / "a.mp4"], store, OPTIONS)
    assert calls(log) == 25
    extract([videos], store, OPTIONS)
    assert calls(log) == 34
    (tmp_path / "tags.csv").write_text("video,label\na,Run\nb,Jump\nc,Run\n")
    extract([videos], store, OPTIONS, given=Given(tags=tmp_path / "tags.csv"))
    assert calls(log) == 34
    assert Store.open(store).classes == ("Jump", "Run")
    write_video(videos / "b.mkv", np.arange(80)[::-1], size=(32, 24), fps=50)  # another video of the same name
    extract([videos], store, OPTIONS)
    assert calls(log) == 37
    assert not list(tmp_path.glob(".store*"))
    with pytest.raises(InputError, match="holds 2 videos that are not among the files given, such as b, c"):
        extract([videos / "a.mp4"], store, OPTIONS)


def test_features_of_two_extractors_are_not_mixed(videos, tmp_path):
    extract([videos / "a.mp4"], tmp_path / "store", OPTIONS)
    with pytest.raises(InputError, match=r"extractor \(my_extractor:mean, now my_extractor:other\)"):
        extract([videos], tmp_path / "store", ExtractorOptions("my_extractor:other"))
    with pytest.raises(InputError, match=r"sampling.stride_frames \(16, now 8\)"):
        extract([videos], tmp_path / "store", OPTIONS, Sampling(stride_frames=8))
    extract([videos], tmp_path / "store", ExtractorOptions("my_extractor:other"), overwrite=True)
    assert Store.open(tmp_path / "store").dimensions == 2


def test_bad_videos_stop_it_or_are_left_out_and_listed(videos, tmp_path, capsys):
    (videos / "empty.mp4").touch()
    data = (videos / "a.mp4").read_bytes()
    rng = np.random.default_rng(0)
    at = data.index(b"mdat") + 2000
    damaged = data[:at] + rng.integers(0, 256, 1500, dtype=np.uint8).tobytes() + data[at + 1500 :]
    (videos / "damaged.mp4").write_bytes(damaged)
    with pytest.raises(InputError, match=r"empty.mp4 is empty .* `skip_bad=True`"):
        extract([videos], tmp_path / "store", OPTIONS)
    assert not (tmp_path / "store").exists()
    command = ["extract", str(videos), "-o", str(tmp_path / "store"), "--extractor", "my_extractor:mean"]
    main([*command, "--skip-bad"])
    said = capsys.readouterr().out
    assert "empty: " in said
    assert "damaged at " in said
    assert Store.open(tmp_path / "store").names() == ("a", "b", "c")


def test_progress_reaches_the_end(videos, tmp_path):
    seen = []
    extract([videos], tmp_path / "store", OPTIONS, progress=lambda *at: seen.append(at))
    step, done_s, total_s, detail = seen[-1]
    assert (step, detail["video"] in ("a", "b", "c")) == ("extracting", True)
    assert done_s == pytest.approx(total_s)
    assert total_s == pytest.approx(16 + 1.6 + 4)


def test_a_wrong_extractor_is_named(videos, tmp_path):
    for name, message in {
        "my_extractor:growing": "must give a vector of 1 finite numbers",
        "my_extractor:nothing": "has no 'nothing'",
        "no_module:mean": "no module 'no_module'",
    }.items():
        with pytest.raises(InputError, match=message):
            extract([videos], tmp_path / "store", ExtractorOptions(name))


def test_a_class_is_made_once_and_says_what_frames_it_wants(videos, tmp_path):
    extract([videos / "a.mp4"], tmp_path / "store", ExtractorOptions("my_extractor:Counter"))
    assert Store.open(tmp_path / "store").features("a")[:, 0].tolist() == list(range(1, 26))


def test_unfinished_work_of_other_settings_is_refused_or_dropped(tmp_path):
    open_unfinished(tmp_path / "work", {"extractor": "a"})
    with pytest.raises(InputError, match="unfinished work of another extractor"):
        open_unfinished(tmp_path / "work", {"extractor": "b"})
    assert open_unfinished(tmp_path / "work", {"extractor": "b"}, anew=True).resume("x", "file", 16) == 0


def test_half_precision_can_be_gone_on_with_and_is_not_mixed(videos, tmp_path):
    extract([videos / "a.mp4"], tmp_path / "store", OPTIONS, dtype="float16")
    extract([videos], tmp_path / "store", OPTIONS, dtype="float16")
    assert Store.open(tmp_path / "store").features("a").dtype == np.float16
    with pytest.raises(InputError, match="holds float16, not float32"):
        extract([videos], tmp_path / "store", OPTIONS)


def test_what_cannot_be_found_is_said(videos, tmp_path):
    (tmp_path / "nothing").mkdir()
    for given, message in (
        ([], "no video is given"),
        ([tmp_path / "none.mp4"], "not there"),
        ([tmp_path / "nothing"], "no video files"),
    ):
        with pytest.raises(InputError, match=message):
            find_videos(given)
    write_video(videos / "other" / "a.mkv", [1, 2], size=(32, 24))
    with pytest.raises(InputError, match="two videos are called a"):
        find_videos([videos])
    (tmp_path / "tags.csv").write_text("video,label\nx,Run\n")
    with pytest.raises(InputError, match=r"none of the .* videos"):
        extract([videos / "a.mp4"], tmp_path / "store", OPTIONS, given=Given(tags=tmp_path / "tags.csv"))


def test_train_and_localize_from_video_files(videos, tmp_path, capsys):
    (tmp_path / "tags.csv").write_text("video,label,split\nb,Rise,train\nc,Fall,train\na,Rise,test\n")
    (tmp_path / "tiny.yaml").write_text(
        "model: rskp\nepochs: 2\nlearning_rate: [[2, 1e-3]]\nmodel_options: {hidden: 8}\n"
        "test: {proposer: {cut: {class_threshold: 0.0, thresholds: [0.0001, 0.01]}}}\n"
    )
    run = tmp_path / "run"
    command = ["train", str(tmp_path / "tiny.yaml"), "--videos", str(videos), "--tags", str(tmp_path / "tags.csv")]
    main([*command, "--extractor", "my_extractor:waves", "--run", str(run), "--threads", "1"])
    assert f"wtal localize {run} VIDEO.mp4" in capsys.readouterr().out.replace("\n", "")
    assert Store.open(tmp_path / "videos-store").names("test") == ("a",)
    assert json.loads((run / "model" / "model.json").read_text())["extraction"]["extractor"] == "my_extractor:waves"

    out = tmp_path / "found.json"
    main(["localize", str(run), str(videos / "a.mp4"), "-o", str(out), "--all"])
    shown = capsys.readouterr().out
    assert "Rise" in shown
    from_video = json.loads(out.read_text())["results"]["a"]
    from_store = json.loads((run / "predictions.json").read_text())["results"]["a"]
    assert from_video == from_store != []
    assert len(Localizer.load(run, device="cpu").video(videos / "a.mp4")) == len(from_video)

    extract([videos / "b.mkv"], tmp_path / "others", ExtractorOptions("my_extractor:other"))
    for arguments, message in (
        ([str(run), str(videos / "b.mkv"), "--extractor", "my_extractor:other"], "was trained with the extractor"),
        ([str(run), "--features", str(tmp_path / "others")], "differ from those that this model was made with"),
        ([str(run), str(tmp_path / "none.mp4")], "not there"),
        ([str(run), "--features", str(tmp_path / "others"), "--weights", "x"], "--weights is for video files"),
        ([str(videos / "b.mkv")], "wanted one of"),
    ):
        with pytest.raises(SystemExit):
            main(["localize", *arguments])
        assert message in capsys.readouterr().err.replace("\n", " ")

    card = json.loads((run / "model" / "model.json").read_text())
    (run / "model" / "model.json").write_text(
        json.dumps(card | {"extraction": None})
    )  # as if trained on others' features
    with pytest.raises(SystemExit):
        main(["localize", str(run), str(videos / "a.mp4")])
    assert "say what makes them, such as --extractor" in capsys.readouterr().err.replace("\n", " ")
    main(["localize", str(run), str(videos / "a.mp4"), "--extractor", "my_extractor:waves", "--top", "1", "--all"])
    assert "the 1 best of" in capsys.readouterr().out.replace("\n", " ")


def test_train_says_what_it_wants(tmp_path, videos, capsys):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text("model: rskp\nepochs: 1\nlearning_rate: [[1, 1e-3]]\n")
    for arguments, message in (
        ([], "wanted --data STORE, or --videos DIR"),
        (["--videos", str(videos)], "needs --tags FILE"),
        (["--data", "store", "--tags", "tags.csv"], "which the other options belong to"),
    ):
        with pytest.raises(SystemExit):
            main(["train", str(recipe), *arguments])
        assert message in capsys.readouterr().err
