"""Atomic output files: every output is written beside its place and renamed into it."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

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
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
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


def copy_whole(folder: Path, to: Path) -> None:
    """Copy a folder; `to` is there only once all of it is."""
    beside = to.with_name(f".{to.name}.partial")
    try:
        shutil.rmtree(beside, ignore_errors=True)  # of a copy that was cut short
        shutil.copytree(folder, beside)
        shutil.rmtree(to, ignore_errors=True)
        beside.rename(to)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise InputError(f"cannot copy {folder} to {to}: {error.strerror or error}") from error


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file that we wrote; None if there is no such file."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    return content
