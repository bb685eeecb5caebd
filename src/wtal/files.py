"""Atomic output files: every output is written beside its place and renamed into it."""

import os
import platform
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from wtal.errors import InputError


@contextmanager
def written_whole(path: Path, mode: str = "w") -> Iterator[IO]:  # type: ignore[type-arg]
    """A file handle whose content appears at `path` only if the block ends without an error.

    A reader never sees half a file, and a failed write (a full disk, Ctrl-C) leaves what was there before.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with written_whole(folder / "note.txt") as file:
    ...     _ = file.write("done")
    >>> [entry.name for entry in folder.iterdir()]
    ['note.txt']
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_partial(path)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=partial_prefix(path), suffix=".partial")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    beside = Path(name)
    try:
        with os.fdopen(descriptor, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; give ours what an ordinary open() would have given
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o666 & ~umask)
        beside.replace(path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"cannot write {path}: {error.strerror or error}") from error
        raise


def copy_whole(folder: Path, to: Path, finish: Callable[[Path], None] = lambda _: None) -> None:
    """Copy a folder; `to` is there only once all of it is, and what `finish` adds to it."""
    beside = to.with_name(f".{to.name}.partial")
    try:
        shutil.rmtree(beside, ignore_errors=True)  # of a copy that was cut short
        shutil.copytree(folder, beside)
        finish(beside)
        shutil.rmtree(to, ignore_errors=True)
        beside.rename(to)
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        if isinstance(error, OSError):
            raise InputError(f"cannot copy {folder} to {to}: {error.strerror or error}") from error
        raise


def partial_prefix(path: Path) -> str:
    """How the name begins under which `path` is being written: it says which process of which machine does it."""
    return f".{path.name}.{_machine()}-{os.getpid()}."


def clear_partial(path: Path) -> None:
    """Remove what writers of `path` that were killed on this machine have left beside it."""
    start = f".{path.name}.{_machine()}-"
    for entry in list(os.scandir(path.parent)):
        process, _, rest = entry.name.removeprefix(start).partition(".")
        if not (entry.name.startswith(start) and process.isdecimal() and rest.endswith(".partial")):
            continue
        if _is_alive(int(process)):
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry, ignore_errors=True)
        else:
            Path(entry).unlink(missing_ok=True)


def _machine() -> str:
    """A folder may be shared by machines, each with a process of that number."""
    return f"{zlib.crc32(platform.node().encode()) & 0xFFFF:04x}"


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # where the question would end the process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True
