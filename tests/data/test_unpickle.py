import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wtal.data.unpickle import as_text, read_object_array
from wtal.errors import InputError


def _object_file(path: Path, payload: bytes, shape: str = "(1,)") -> Path:
    header = "{'descr': '|O', 'fortran_order': False, 'shape': " + shape + "}"
    header = header.ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + payload)
    return path


def _objects(*items: Any) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_lists_and_strings_come_through_every_protocol(tmp_path: Path, protocol: int) -> None:
    array = _objects(np.arange(6, dtype=np.float32).reshape(2, 3), [b"Run", "Jump"], np.float64(2.5), np.str_("x"))
    path = _object_file(tmp_path / "o.npy", pickle.dumps(array, protocol=protocol), "(4,)")
    read = read_object_array(path)
    np.testing.assert_array_equal(read[0], array[0])
    assert read[1] == [b"Run", "Jump"]
    assert float(read[2]) == 2.5
    assert as_text(read[3]) == "x"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_keep_shape_type_and_the_order_of_their_values(tmp_path: Path, protocol: int) -> None:
    by_column = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    swapped = np.arange(4, dtype=">f8").reshape(1, 4)
    array = _objects(by_column, by_column.T, swapped, np.zeros((2, 0, 3), np.float32), np.array([True, False]))
    read = read_object_array(_object_file(tmp_path / "o.npy", pickle.dumps(array, protocol=protocol), "(5,)"))
    for mine, theirs in zip(read, array, strict=True):
        assert (mine.shape, mine.dtype.newbyteorder("=")) == (theirs.shape, theirs.dtype.newbyteorder("="))
        np.testing.assert_array_equal(mine, theirs)


def test_the_shape_of_the_file_is_that_of_the_array(tmp_path: Path) -> None:
    array = _objects("a", "b", "c", "d", "e", "f").reshape(2, 3)
    np.save(tmp_path / "o.npy", array, allow_pickle=True)
    assert read_object_array(tmp_path / "o.npy").tolist() == [["a", "b", "c"], ["d", "e", "f"]]
    with pytest.raises(InputError, match="cut off or is not"):
        read_object_array(_object_file(tmp_path / "other.npy", pickle.dumps(array, protocol=2), "(4,)"))


def test_what_numpy_saves_is_read_back(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", _objects(np.zeros((2, 2)), np.ones((3, 2))), allow_pickle=True)
    assert [len(item) for item in read_object_array(tmp_path / "o.npy")] == [2, 3]
    np.save(tmp_path / "plain.npy", np.array([b"a", b"bc"]))
    assert [as_text(item) for item in read_object_array(tmp_path / "plain.npy")] == ["a", "bc"]


class _Evil:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    ("evil", "wanted"),
    [
        (_Evil(os.system, "touch pwned"), r"(posix|nt)\.system"),
        (_Evil(eval, "1 + 1"), r"builtins\.eval"),
        (_Evil(getattr, "x", "y"), r"builtins\.getattr"),
        (_Evil(np.load, "x.npy"), r"numpy\.load"),
        (_Evil(np.fromfile, "x"), r"numpy.*fromfile"),
    ],
)
def test_anything_but_numpy_parts_is_refused_by_name_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evil: _Evil, wanted: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = _object_file(tmp_path / "o.npy", pickle.dumps(_objects(evil)))
    with pytest.raises(InputError, match=f"refused: it wants to import {wanted}"):
        read_object_array(path)
    assert not (tmp_path / "pwned").exists()


def test_the_text_codec_is_for_latin1_only(tmp_path: Path) -> None:
    import codecs

    path = _object_file(tmp_path / "o.npy", pickle.dumps(_objects(_Evil(codecs.encode, "x", "rot13"))))
    with pytest.raises(InputError, match=r"_codecs\.encode to rot13"):
        read_object_array(path)


@pytest.mark.parametrize("items", [["a"], ["a", "b", "c"], ("a", "b")])
def test_an_array_of_objects_has_as_many_as_its_shape_says(tmp_path: Path, items: Any) -> None:
    begin, begun, (version, _, *rest, _) = _objects("a", "b").__reduce__()
    wrong = _Evil(begin, *begun)
    wrong.call = (*wrong.call, (version, (2,), *rest, items))
    with pytest.raises(InputError, match="cut off or is not"):
        read_object_array(_object_file(tmp_path / "o.npy", pickle.dumps(wrong, protocol=2), "(2,)"))


@given(cut=st.floats(0.0, 0.999))
def test_a_file_cut_anywhere_is_an_input_error(tmp_path_factory: pytest.TempPathFactory, cut: float) -> None:
    path = tmp_path_factory.mktemp("cut") / "o.npy"
    np.save(path, _objects(np.zeros((4, 4)), ["x"]), allow_pickle=True)
    data = path.read_bytes()
    path.write_bytes(data[: int(cut * len(data))])
    with pytest.raises(InputError, match=r"cut off or is not a \.npy file"):
        read_object_array(path)


@given(noise=st.binary(max_size=80))
def test_noise_in_place_of_a_pickle_is_an_input_error(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = _object_file(tmp_path_factory.mktemp("noise") / "o.npy", noise)
    with pytest.raises(InputError):
        read_object_array(path)
