"""Files that may be damaged or hostile: one way in for each kind, and whatever is wrong is one InputError with a name.

Parsers fail in any way there is: numpy's reader of headers alone raises TokenError, SyntaxError, RecursionError and
OverflowError. So a reader does not list what may be raised; it works inside `refusing`, which names the file.
"""

import io
import json
import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from jaxtyping import Shaped
from numpy.lib import format as npy

from wtal.errors import InputError

#: what a compressed or sparsely stored file may grow to in memory
LIMIT_BYTES = 8 * 2**30
#: brackets within brackets; our own files have less than ten
LIMIT_DEPTH = 64
#: a few lines of YAML can stand for billions of values: aliases of aliases
LIMIT_VALUES = 1_000_000
_LARGEST = 2**1023


@contextmanager
def refusing(path: Path | str, wrong: str = "is damaged", then: str = "") -> Iterator[None]:
    """Anything that goes wrong inside becomes an InputError: `PATH WRONG (why)THEN`.

    >>> with refusing("index.json", "lacks or misspells", "; convert again"):
    ...     {}["snippets"]
    Traceback (most recent call last):
    wtal.errors.InputError: index.json lacks or misspells 'snippets'; convert again
    """
    try:
        yield
    except ImportError:  # what is missing is no fault of the file
        raise
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
        why = _reason(error)
        why = why if isinstance(error, KeyError) else f"({why})"
        raise InputError(f"{path} {wrong} {why}{then}") from error


def _reason(error: Exception) -> str:
    known = {MemoryError: "too large for the memory", RecursionError: "nested too deep"}
    if type(error) in known:
        return known[type(error)]
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return printable(lines[0][:300])


def printable(text: str) -> str:
    """The text with halves of surrogate pairs, which no file or terminal takes, written as \\ud800."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def read_text(path: Path, newline: str | None = None) -> str:
    """The text of a UTF-8 file, without its mark if it has one."""
    try:
        with path.open(encoding="utf-8-sig", newline=newline) as file:
            return file.read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file (byte {error.start} is not UTF-8)") from error


def read_json(path: Path) -> Any:
    """What a JSON file holds; its numbers fit into floats, its texts can be written again, its nesting is sane."""
    return from_json(read_text(path), path)


def from_json(text: str, path: Path) -> Any:
    """What a text in a JSON file holds, checked."""
    try:
        content = json.loads(text, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} is not whole JSON: {error.msg} at line {error.lineno}, column {error.colno}; "
            "the file may have been cut off"
        ) from error
    except RecursionError as error:
        raise InputError(f"{path}: brackets nested too deep") from error
    except ValueError as error:
        raise InputError(f"{path}: {_reason(error)}") from error
    # only an escape can bring half of a surrogate pair into text that is UTF-8
    _refuse_bombs(path, content, math.inf, texts="\\ud" in text.lower())
    return content


def read_json_object(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file that we wrote; None if there is no such file."""
    if not path.exists():
        return None
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} is damaged: wanted an object {{…}}, got {printable(str(content)[:40])}")
    return content


def read_yaml(path: Path, loader: type | None = None) -> Any:
    """What a YAML file holds, checked as `read_json` checks it."""
    import yaml

    text = read_text(path)
    try:
        content = yaml.load(text, Loader=loader or yaml.SafeLoader)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except RecursionError as error:
        raise InputError(f"{path}: brackets nested too deep") from error
    except Exception as error:  # beside its own errors, whatever the making of dates, numbers and keys raises
        raise InputError(f"{path} is not a YAML file: {printable(str(error))}") from error
    _refuse_bombs(path, content, LIMIT_VALUES, texts=True)
    return content


def read_xml(path: Path) -> Element:
    """The root of an XML file without a document type: entities, which can stand for gigabytes or for files, need one.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x.xml"
    >>> _ = path.write_text("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>")
    >>> read_xml(path)
    Traceback (most recent call last):
    wtal.errors.InputError: ...x.xml has a document type (<!DOCTYPE), which is not read: it can stand for anything
    """
    text = read_text(path)
    if "<!DOCTYPE" in text:
        raise InputError(f"{path} has a document type (<!DOCTYPE), which is not read: it can stand for anything")
    with refusing(path, "is not a readable XML file"):
        return ElementTree.fromstring(text)


def _whole(digits: str) -> int:
    number = int(digits)  # which refuses thousands of digits by itself
    if not -_LARGEST <= number <= _LARGEST:
        raise ValueError(f"a number of {len(digits)} digits is too large")
    return number


def _refuse_bombs(path: Path, content: Any, most: float, *, texts: bool) -> None:
    """Refuse nesting that is too deep, more values than wanted, and texts that cannot be written."""
    level, count = [content], 0
    for _ in range(LIMIT_DEPTH):
        inside: list[Any] = []
        for one in level:
            if texts and isinstance(one, str):
                _refuse_surrogates(one, path)
            elif isinstance(one, dict):
                inside += one.values()
                if texts:
                    inside += one
            elif isinstance(one, (list, tuple, set)):
                inside += one
            if count + len(inside) > most:
                raise InputError(f"{path} stands for more than {most:,.0f} values; write them without aliases")
        count += len(inside)
        level = inside if texts else [one for one in inside if isinstance(one, (dict, list))]
        if not level:
            return
    raise InputError(f"{path}: brackets nested too deep")


def _refuse_surrogates(text: str, where: Path | str) -> None:
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(f"{where}: {printable(text)} has half of a surrogate pair, which cannot be written; rename it")


def names_of(array: Any, where: str) -> list[str]:
    """The texts of a list or of a (n,) array of strings; anything else is refused, and texts that cannot be written."""
    if isinstance(array, np.ndarray):
        if array.ndim != 1 or array.dtype.kind != "U":
            raise InputError(f"{where} must be a list of names, got {array.dtype} {array.shape}")
        array = array.tolist()
    for name in array:
        if not isinstance(name, str):
            raise InputError(f"{where} must be names, got {printable(str(name)[:40])}")
        _refuse_surrogates(name, where)
    return list(array)


def read_npy(path: Path, *, then: str = "") -> Shaped[np.ndarray, "..."]:
    """The array of a .npy file: plain numbers, truth values or strings, as many as its header says."""
    with refusing(path, "is cut off or is not a .npy file", then), path.open("rb") as file:
        return _array(file, path.stat().st_size)


def map_npy(path: Path) -> Shaped[np.ndarray, "..."]:
    """The same, mapped into memory instead of read."""
    with path.open("rb") as file:
        _header(file, path.stat().st_size)
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(
    path: Path, names: Sequence[str], optional: Sequence[str] = (), *, limit_bytes: int = LIMIT_BYTES
) -> dict[str, Shaped[np.ndarray, "..."]]:
    """These arrays of an .npz file, if what they say they inflate to is within the limit."""
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        missing = [name for name in names if f"{name}.npy" not in members]
        if missing:
            raise ValueError(f"no array {missing[0]!r}; wanted {', '.join(names)}")
        found = {name: members[f"{name}.npy"] for name in (*names, *optional) if f"{name}.npy" in members}
        total = sum(info.file_size for info in found.values())
        if total > limit_bytes:
            raise InputError(f"{path} would take {total / 2**30:.1f} GiB, more than {limit_bytes / 2**30:.1f}")
        arrays = {}
        for name, info in found.items():
            with archive.open(info) as member:
                arrays[name] = _array(member, info.file_size)  # type: ignore[arg-type]
                member.read(1)  # the end, where the checksum is looked at
        return arrays


def _array(file: io.BufferedIOBase, size: int) -> Shaped[np.ndarray, "..."]:
    shape, fortran, dtype = _header(file, size)
    content = np.empty(math.prod(shape) * dtype.itemsize, dtype=np.uint8)
    rest = memoryview(content)  # type: ignore[arg-type]
    while rest:
        count = file.readinto(rest)
        if not count:
            raise ValueError("it ends early")
        rest = rest[count:]
    return content.view(dtype).reshape(shape, order="F" if fortran else "C")


def read_header(file: io.BufferedIOBase) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of the array that follows in a .npy file."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} is unknown")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"shape {shape}")
    return shape, fortran, dtype


def _header(file: io.BufferedIOBase, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The header of an array of plain values that fill the rest of the file."""
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects, wanted plain values")
    if dtype.kind not in "biufSU" or dtype.itemsize == 0:
        raise ValueError(f"it holds values of type {dtype}")
    wanted, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if wanted != there:
        raise ValueError(f"{shape} values of {dtype} are {wanted} bytes, there are {there}")
    return shape, fortran, dtype
