"""The real thing, small: untrimmed videos from real clips, tags only, no downloaded extractor, held-out truth."""

import json
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from wtal.video.decode import Geometry, read_pictures

EXAMPLE = Path(__file__).parents[1] / "examples" / "03_my_own_videos.py"


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    spec = spec_from_file_location("my_own_videos", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks for it
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop(spec.name)


def test_no_recording_is_in_both_training_and_test(example, ucf101):
    clips = example.read_clips(ucf101)
    split = example.split_by_group(clips)
    assert sorted(len(part) for part in split.values()) == [37, 67]
    groups = {name: {(clip.label, clip.group) for clip in part} for name, part in split.items()}
    assert not groups["train"] & groups["test"]
    assert {label for label, _ in groups["train"]} == {label for label, _ in groups["test"]}


def test_joined_clips_leave_no_trace_but_their_pictures(example, ucf101, tmp_path):
    clips = [clip for clip in example.read_clips(ucf101) if clip.group == "01"]
    board = [next(c for c in clips if c.label == label) for label in ("BandMarching", "Archery", "Basketball")]
    truth = example.join(tmp_path / "joined.mp4", board)
    lengths = [len(list(read_pictures(clip.path))) for clip in board]
    pictures = [p.pixels for p in read_pictures(tmp_path / "joined.mp4", geometry=Geometry(240, None))]
    assert len(pictures) == sum(lengths)
    start, end = lengths[0], lengths[0] + lengths[1]
    np.testing.assert_allclose(truth.segments, [[start / 25, end / 25]])
    # the pictures on either side of a cut are those of the clips, and none is black
    for clip, first, length in zip(board, (0, start, end), lengths, strict=True):
        own = [p.pixels for p in read_pictures(clip.path, geometry=Geometry(240, None))]
        for index in (0, length - 1):
            assert abs(pictures[first + index].astype(int) - own[index]).mean() < 6
    assert min(picture.mean() for picture in pictures) > 10


def test_a_detector_from_tags_finds_actions_in_held_out_videos(example, ucf101, tmp_path, capsys):
    example.run(ucf101, tmp_path, n_train=8, n_test=3, n_context=2, options=["--threads", "1"])
    shown = capsys.readouterr().out
    assert "test_000.mp4" in shown
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")
    scores = json.loads((tmp_path / "run" / "evaluation.json").read_text())["thumos14"]
    assert scores["n_videos"] == 3
    assert scores["map"][0] > 25
