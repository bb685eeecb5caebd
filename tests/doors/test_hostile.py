"""Files that somebody has made to do harm, and what is left behind by a process that was killed."""

import os
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from wtal.data.unpickle import read_object_array
from wtal.data.video_record import VideoRecord
from wtal.data.writer import new_store
from wtal.errors import InputError
from wtal.files import partial_prefix, written_whole
from wtal.formats import read_annotations
from wtal.formats.targets import from_parts, to_parts
from wtal.reading import read_json, read_npy, read_npz, read_yaml, refusing


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested too deep"),
        ("[" * 200 + "]" * 200, "nested too deep"),
        ('{"a": 1' + "0" * 400 + "}", "too large"),
        ('{"a": 1' + "0" * 9000 + "}", "limit"),
        ('{"a\\ud800": 1}', r"a\\ud800 has half of a surrogate pair"),
        ('{"a": ["\\uD800"]}', "surrogate"),
        ('{"a": 1', "not whole JSON"),
    ],
)
def test_json_that_no_float_file_or_stack_takes(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=rf"x\.json.*{said}"):
        read_json(tmp_path / "x.json")


def test_pairs_of_surrogates_are_letters(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('["\\ud83d\\ude00"]')
    assert read_json(tmp_path / "x.json") == ["😀"]


def test_a_name_that_cannot_be_written_is_refused_at_the_door(tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_text('{"database": {"\\ud800": {"subset": "test", "annotations": []}}}')
    with pytest.raises(InputError, match=r"gt\.json.*surrogate"):
        read_annotations(tmp_path / "gt.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a: &a [x]\n"
            + "".join(f"b{i}: &b{i} [{', '.join([f'*b{i - 1}' if i else '*a'] * 9)}]\n" for i in range(9)),
            "aliases",
        ),
        ("a: &a [*a]", "nested too deep"),
        ("[" * 5000, "nested too deep"),
        ('"\\ud800": 1', "surrogate"),
        ("a: 2001-99-99", "not a YAML file"),
    ],
)
def test_yaml_that_stands_for_more_than_it_says(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(InputError, match=rf"x\.yaml.*{said}"):
        read_yaml(tmp_path / "x.yaml")


def _npy(path: Path, header: str, content: bytes = b"") -> Path:
    header = header.ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + content)
    return path


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}",
        "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (4,)}",
        "(" * 100,
        "-" * 100 + "1",
        "'" * 3,
    ],
)
def test_headers_of_arrays_are_not_believed(tmp_path: Path, header: str) -> None:
    with pytest.raises(InputError, match=r"x\.npy is cut off or is not"):
        read_npy(_npy(tmp_path / "x.npy", header, bytes(16)))


def test_an_archive_that_inflates_beyond_the_limit_is_refused_before(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(2**21))
    assert (tmp_path / "x.npz").stat().st_size < 2**16
    with pytest.raises(InputError, match="would take"), refusing(tmp_path / "x.npz"):
        read_npz(tmp_path / "x.npz", ["a"], limit_bytes=2**20)
    assert read_npz(tmp_path / "x.npz", ["a"])["a"].shape == (2**21,)


def test_members_that_are_no_arrays_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", b"just bytes")
    with pytest.raises(InputError, match=r"x\.npz"), refusing(tmp_path / "x.npz"):
        read_npz(tmp_path / "x.npz", ["a"])


@pytest.mark.parametrize(
    "change",
    [
        {"columns": np.array([0, 2**30], np.int32)},
        {"columns": np.array([0, -1], np.int32)},
        {"columns": np.array([0, 1], np.int8)},
        {"columns": np.array([0], np.int32)},
        {"starts": np.array([0, 2**30, 2], np.int32)},
        {"starts": np.array([0, 2**30], np.int32)},
        {"starts": np.array([-5, 1, 2], np.int32)},
        {"starts": np.array([], np.int32)},
        {"starts": np.array(2, np.int32)},
        {"values": np.array([0.5, np.nan], np.float32)},
        {"values": np.array(["a", "b"])},
    ],
)
def test_labels_out_of_place_are_refused_before_compiled_code_sees_them(change: dict[str, Any]) -> None:
    whole = to_parts(csr_array(np.array([[0.5, 0, 0], [0, 0.25, 0]], np.float32)))
    assert from_parts(whole, 3).toarray().tolist() == [[0.5, 0, 0], [0, 0.25, 0]]
    with pytest.raises(InputError, match="labels"):
        from_parts({**whole, **change}, 3)


def _pickled(path: Path, content: bytes) -> Path:
    return _npy(path, "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", content)


class _Call:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def _in_array(item: object) -> bytes:
    array = np.empty(1, dtype=object)
    array[0] = item
    return pickle.dumps(array, protocol=2)


_NESTED = np.empty(1, dtype=object)
_NESTED[0] = np.array([None])


@pytest.mark.parametrize(
    "content",
    [
        _in_array(np.array(["2001-01-01"], "M8[s]")),
        _in_array(np.zeros(2, [("a", "f4")])),
        _in_array(_NESTED),
        _in_array(_Call(np.ndarray, (2**34,))),
        _in_array(_Call(np.dtype, "f4,O")),
        b"\x80\x02]r" + struct.pack("<I", 2**32 - 2) + b".",  # room for four billion remembered objects
        b"\x80\x02cnumpy\ndtype\n}(X\x05\x00\x00\x00_callK\x01ub.",  # a builder changed for all that come after
    ],
)
def test_pickles_build_plain_arrays_only(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match=r"x\.npy"):
        read_object_array(_pickled(tmp_path / "x.npy", content))
    good = _pickled(tmp_path / "good.npy", _in_array(np.arange(6.0).reshape(2, 3).T))
    np.testing.assert_array_equal(read_object_array(good)[0], np.arange(6.0).reshape(2, 3).T)


def _dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_killed_writer_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    path, store = tmp_path / "note.txt", tmp_path / "store"
    mine, gone = str(os.getpid()), str(_dead())
    left = [tmp_path / f"{partial_prefix(one).replace(mine, gone)}abc.partial" for one in (path, store)]
    left[0].write_text("half")
    left[1].mkdir()
    (left[1] / "features.npy").write_text("half")
    kept = [
        tmp_path / f"{partial_prefix(path)}abc.partial",  # by a process that lives: this one
        tmp_path / f"{partial_prefix(path.with_name('other.txt')).replace(mine, gone)}abc.partial",
        tmp_path / f".note.txt.ffff0-{gone}.abc.partial",  # by another machine
        tmp_path / ".note.txt.own.partial",
    ]
    for other in kept:
        other.write_text("not ours")
    with written_whole(path) as file:
        file.write("done")
    with new_store(store, classes=("Run",)) as writer:
        writer.add(VideoRecord("a", "train", ("Run",)), np.ones((3, 4), np.float32))
    assert path.read_text() == "done"
    assert not any(one.exists() for one in left)
    assert all(one.exists() for one in kept)


def test_a_kill_in_the_middle_of_a_write_leaves_nothing_for_good(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    code = f"""
import os, signal
from pathlib import Path
from wtal.files import written_whole
with written_whole(Path({str(path)!r})) as file:
    file.write("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    assert [entry.name for entry in tmp_path.iterdir()] != []
    with written_whole(path) as file:
        file.write("done")
    assert [entry.name for entry in tmp_path.iterdir()] == ["note.txt"]
