import numpy as np
import pytest

from wtal.errors import InputError
from wtal.formats.maps import read_maps, write_maps
from wtal.maps import ActivationMap


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
    maps = read_maps(written(tmp_path / "maps.npz"))
    assert maps.classes == ("Run", "Jump")
    assert list(maps.videos) == ["a", "b"]
    np.testing.assert_array_equal(maps.videos["b"][0].tcam, [[6, 7], [9, 10], [12, 13]])
    assert maps.videos["a"][0].video_scores.shape == (2,)


def test_what_is_written_is_read(tmp_path):
    rng = np.random.default_rng(0)
    streams = [ActivationMap("a", rng.random((4, 2)), np.array([0.5, 0.25]), rng.random(4), w) for w in (0.1, 1.0)]
    empty = ActivationMap("b", np.zeros((0, 2)), np.zeros(2), np.zeros(0))
    for maps in ({"a": streams, "b": [empty]}, {"b": [empty]}, {}):
        write_maps(tmp_path / "maps.npz", ["x", "y"], maps)
        back = read_maps(tmp_path / "maps.npz")
        assert back.classes == ("x", "y")
        assert list(back.videos) == list(maps)
        for name, written in maps.items():
            for before, after in zip(written, back.videos[name], strict=True):
                assert (before.name, before.weight) == (after.name, after.weight)
                for what in ("tcam", "video_scores", "attention"):
                    np.testing.assert_array_equal(getattr(before, what), getattr(after, what))


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
        read_maps(path)
    assert "maps.npz" in str(caught.value)


def test_a_file_cut_in_half_and_a_missing_one(tmp_path):
    path = written(tmp_path / "maps.npz")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match=r"maps\.npz"):
        read_maps(path)
    with pytest.raises(InputError, match=r"cannot read .*none\.npz: No such file"):
        read_maps(tmp_path / "none.npz")
