"""Pickled object arrays read without trust: numpy's own building blocks are allowed and nothing else.

A pickle is a program. The W-TALC features come as one, from the net, so every name that it wants to import
goes through a list of the few that make numpy arrays, and the rest is refused by name.
"""

import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Shaped
from numpy.lib import format as npy

from wtal.errors import InputError


class _RefusedError(pickle.UnpicklingError):
    pass


def _latin1(text: str, encoding: str) -> bytes:
    """Bytes from their text form: how Python 3 wrote bytes with the pickle protocol of numpy before 1.17."""
    if encoding != "latin1":
        raise _RefusedError(f"_codecs.encode to {encoding}")
    return text.encode("latin1")


def _scalar(dtype: np.dtype[Any], data: bytes) -> Any:
    """A numpy scalar from its bytes. Scalars of Python objects are refused: they carry a pointer."""
    if not isinstance(dtype, np.dtype) or dtype.hasobject:
        raise _RefusedError("a numpy scalar of Python objects")
    return np.frombuffer(data, dtype=dtype, count=1)[0]


def _frombuffer(data: Any, dtype: np.dtype[Any], shape: Any, order: Any, *_: Any) -> Any:
    """An array from its bytes: how the pickle protocol 5 writes them."""
    return np.frombuffer(data, dtype=dtype).reshape(shape, order=order)


def _allowed() -> dict[tuple[str, str], Any]:
    reconstruct = np.empty(0).__reduce__()[0]
    table: dict[tuple[str, str], Any] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("_codecs", "encode"): _latin1,
    }
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):  # before and since numpy 2
        table[module, "_reconstruct"] = reconstruct
        table[module, "scalar"] = _scalar
        table[module.replace("multiarray", "numeric"), "_frombuffer"] = _frombuffer
    return table


_ALLOWED = _allowed()


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise _RefusedError(f"{module}.{name}")
        return _ALLOWED[module, name]


def read_object_array(path: Path) -> Shaped[np.ndarray, "..."]:
    """The array of a .npy file, pickled or plain, built from numpy's parts, lists, strings and numbers only.

    A file that wants to import anything else is refused before that is imported, and the error says what it
    wanted.
    """
    try:
        with path.open("rb") as file:
            return _read(file)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except _RefusedError as error:
        raise InputError(
            f"{path} is refused: it wants to import {error}, which is no part of a numpy array and could run "
            f"any code; get the file from its authors again, and tell them"
        ) from error
    except Exception as error:  # a damaged pickle fails in any way there is
        raise InputError(
            f"{path} is cut off or is not a .npy file ({type(error).__name__}: {error}); download it again"
        ) from error


def _read(file: BinaryIO) -> Shaped[np.ndarray, "..."]:
    version = npy.read_magic(file)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if not dtype.hasobject:
        file.seek(0)
        return np.asarray(npy.read_array(file, allow_pickle=False))
    array = _ArrayUnpickler(file, encoding="latin1").load()  # Python 2 strings come out as text
    if not isinstance(array, np.ndarray):
        raise ValueError(f"the pickle holds a {type(array).__name__}, not an array")
    return array.reshape(shape)


def as_text(value: Any) -> str:
    """A string from what old files hold in its place: bytes, numpy strings, arrays of one."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
