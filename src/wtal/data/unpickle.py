"""Pickled object arrays read without trust: plain arrays, lists, strings and numbers are built, and nothing else.

A pickle is a program. The W-TALC features come as one, from the net, so every name that it wants to import goes
through a list of the few that make numpy arrays, and the rest is refused by name. Those few are our own: numpy's would
believe any shape, type and pointer that a damaged file tells them.
"""

import math
import pickle
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Shaped

from wtal.errors import InputError
from wtal.reading import read_header, read_npy, refusing

_PLAIN = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|[SU][0-9]{1,5}|O[48]?|\?)")
_PLACES = {"PUT", "BINPUT", "LONG_BINPUT"}
_WRONG = "is cut off or is not a .npy file"


class _RefusedError(pickle.UnpicklingError):
    pass


class _Maker:
    """A function that a pickle may call; it cannot be changed by one, as functions can."""

    __slots__ = ("_call",)
    _call: Callable[..., Any]

    def __init__(self, call: Callable[..., Any]) -> None:
        object.__setattr__(self, "_call", call)

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    def __setattr__(self, name: str, value: Any) -> None:
        raise _RefusedError("a change of its builders")


class _Type:
    """What stands for a numpy dtype while a pickle is read: plain numbers, truth values, strings, or objects."""

    __slots__ = ("kind",)

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or not _PLAIN.fullmatch(code):
            raise ValueError(f"arrays of {code!r}")
        self.kind: np.dtype[Any] = np.dtype("O") if code.lstrip("<>|=").startswith("O") else np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        order = state[1]  # of its bytes; all else follows from the code
        if order not in ("<", ">", "|", "="):
            raise ValueError(f"bytes in the order {order!r}")
        self.kind = self.kind.newbyteorder(order)


class _Array(np.ndarray):
    """An array that believes its pickle only what fits together."""

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, content = state
        dtype, count = _checked(shape, kind)
        if dtype.hasobject:
            if type(content) is not list or len(content) != count:
                raise ValueError(f"no list of {count} objects for shape {shape}")
            if any(isinstance(one, np.ndarray) and one.dtype.hasobject for one in content):
                raise ValueError("objects inside objects")
        else:
            # Python 2's bytes come out as text
            content = content.encode("latin1") if isinstance(content, str) else content
            if type(content) is not bytes or len(content) != count * dtype.itemsize:
                raise ValueError(f"{len(content)} bytes for {dtype} {shape}")
        super().__setstate__((1, shape, dtype, bool(fortran), content))  # type: ignore[arg-type]


def _checked(shape: Any, kind: Any) -> tuple[np.dtype[Any], int]:
    if type(shape) is not tuple or len(shape) > 8 or any(type(n) is not int or not 0 <= n < 2**40 for n in shape):
        raise ValueError(f"an array of shape {shape!r}")
    if not isinstance(kind, _Type):
        raise ValueError(f"an array of {type(kind).__name__}")
    return kind.kind, math.prod(shape)


def _begin(*_: Any) -> Any:
    return _Array((0,), dtype=np.int8)


def _latin1(text: str, encoding: str) -> bytes:
    """Bytes from their text form: how Python 3 wrote bytes with the pickle protocol of numpy before 1.17."""
    if encoding != "latin1":
        raise _RefusedError(f"_codecs.encode to {encoding}")
    return text.encode("latin1")


def _no_bytes(*arguments: Any) -> bytes:
    """The content of an empty array: how Python 3 wrote that with the pickle protocol of numpy before 1.17."""
    if arguments:
        raise _RefusedError("builtins.bytes")
    return b""


def _scalar(kind: Any, content: Any) -> Any:
    """A number or text from its bytes. Scalars of Python objects are refused: they carry a pointer."""
    dtype, _ = _checked((), kind)
    if dtype.hasobject:
        raise _RefusedError("a numpy scalar of Python objects")
    content = content.encode("latin1") if isinstance(content, str) else content
    return np.frombuffer(content, dtype=dtype, count=1)[0].item()


def _frombuffer(content: Any, kind: Any, shape: Any, order: Any, *_: Any) -> Any:
    """An array from its bytes: how the pickle protocol 5 writes them."""
    dtype, count = _checked(shape, kind)
    if dtype.hasobject or type(content) not in (bytes, bytearray) or len(content) != count * dtype.itemsize:
        raise ValueError(f"no bytes for {dtype} {shape}")
    return np.frombuffer(content, dtype=dtype).reshape(shape, order=order).view(_Array)


def _allowed() -> dict[tuple[str, str], Any]:
    table: dict[tuple[str, str], Any] = {
        ("numpy", "ndarray"): "ndarray",  # an argument only: nothing is made by calling it
        ("numpy", "dtype"): _Maker(_Type),
        ("_codecs", "encode"): _Maker(_latin1),
        ("__builtin__", "bytes"): _Maker(_no_bytes),
    }
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):  # before and since numpy 2
        table[module, "_reconstruct"] = _Maker(_begin)
        table[module, "scalar"] = _Maker(_scalar)
        table[module.replace("multiarray", "numeric"), "_frombuffer"] = _Maker(_frombuffer)
    return table


_ALLOWED = _allowed()


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise _RefusedError(f"{module}.{name}")
        return _ALLOWED[module, name]


def read_object_array(path: Path) -> Shaped[np.ndarray, "..."]:
    """The array of a .npy file, pickled or plain, built from plain arrays, lists, strings and numbers only.

    A file that wants to import anything else is refused before that is imported, and the error says what it
    wanted.
    """
    with refusing(path, _WRONG, "; download it again"):
        try:
            with path.open("rb") as file:
                shape, _, dtype = read_header(file)
                if dtype.hasobject:
                    return _unpickled(file, shape)
        except _RefusedError as error:
            raise InputError(
                f"{path} is refused: it wants to import {error}, which is no part of a numpy array and could run "
                f"any code; get the file from its authors again, and tell them"
            ) from error
        return read_npy(path)


def _unpickled(file: BinaryIO, shape: tuple[int, ...]) -> Shaped[np.ndarray, "..."]:
    start = file.tell()
    for number, (code, place, _) in enumerate(pickletools.genops(file)):
        # Python's reader makes room for as many remembered objects as the file says, four billion at will
        if code.name in _PLACES and isinstance(place, int) and place > number:
            raise ValueError(f"place {place} of {number} remembered objects")
    file.seek(start)
    array = _ArrayUnpickler(file, encoding="latin1").load()  # Python 2 strings come out as text
    if not isinstance(array, np.ndarray):
        raise ValueError(f"the pickle holds a {type(array).__name__}, not an array")
    return array.reshape(shape)


def as_text(value: Any) -> str:
    """A string from what old files hold in its place: bytes, numpy strings, arrays of one."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
