import numpy as np
import pytest

from wtal.errors import InputError
from wtal.formats.tcam import VideoMap, read_tcams, write_tcams


def good():
    return {
        "names": np.array(["a", "b"]),
        "lengths": np.array([2, 3]),
        "tcam": np.arange(15, dtype=np.float32).reshape(5, 3),
        "video_scores": np.ones((2, 3), np.float32),
        "classes": np.array(["Run", "Jump"]),
    }


def written(path, **changes):
    arrays = {name: value for name, value in {**good(), **changes}.items() if value is not None}
    np.savez(path, **arrays)
    return path


def test_background_is_left_out(tmp_path):
    maps = read_tcams(written(tmp_path / "maps.npz"))
    assert maps.classes == ("Run", "Jump")
    assert [video.name for video in maps.videos] == ["a", "b"]
    np.testing.assert_array_equal(maps.videos[1].tcam, [[6, 7], [9, 10], [12, 13]])
    assert maps.videos[0].video_scores.shape == (2,)


def test_what_is_written_is_read(tmp_path):
    videos = [
        VideoMap("a", np.random.default_rng(0).random((4, 2)), np.array([0.5, 0.25])),
        VideoMap("b", np.zeros((0, 2)), np.zeros(2)),
    ]
    write_tcams(tmp_path / "maps.npz", ["x", "y"], videos)
    back = read_tcams(tmp_path / "maps.npz")
    for before, after in zip(videos, back.videos, strict=True):
        assert before.name == after.name
        np.testing.assert_allclose(before.tcam, after.tcam, atol=1e-6)
    write_tcams(tmp_path / "none.npz", ["x"], [])
    assert read_tcams(tmp_path / "none.npz").videos == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tcam": None}, "no array 'tcam'"),
        ({"tcam": np.zeros((4, 3))}, "sum to 5 snippets, but 'tcam' has 4"),
        ({"tcam": np.zeros((5, 7))}, r"\(5, 7\)"),
        ({"tcam": np.full((5, 3), np.nan)}, "video a"),
        ({"lengths": np.array([5])}, "lengths"),
        ({"lengths": np.array([2.5, 2.5])}, "lengths"),
        ({"video_scores": np.ones((1, 3))}, "video_scores"),
        ({"video_scores": np.array([[1, 1, 1], [np.inf, 1, 1]])}, "video b"),
        ({"names": np.array(["a", "a"])}, "'a' is listed more than once"),
        ({"names": np.array([{"pickled": 1}, 2], dtype=object)}, "not a readable"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path, changes, message):
    path = written(tmp_path / "maps.npz", **changes)
    with pytest.raises(InputError, match=message) as caught:
        read_tcams(path)
    assert "maps.npz" in str(caught.value)


def test_a_file_cut_in_half_and_a_missing_one(tmp_path):
    path = written(tmp_path / "maps.npz")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match=r"maps\.npz"):
        read_tcams(path)
    with pytest.raises(InputError, match="no such file"):
        read_tcams(tmp_path / "none.npz")
