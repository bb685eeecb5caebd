"""One writer at a time: who holds a folder, and the refusal of whoever wants it meanwhile.

The lock is the kernel's (flock on a small file), so that it ends with the process that holds it, however that ends:
nobody ever has to remove a lock by hand. The file says who holds it. NFS and most cluster file systems carry such locks
from machine to machine; some are mounted without. There the file that another machine's process has left is all that
is known: it is taken over with a warning that says whose it was.
"""

import errno
import json
import os
import platform
import shlex
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wtal.errors import DataWarning, InputError

try:
    import fcntl
except ImportError:  # not on Windows, where nothing then keeps two from writing to the same place
    fcntl = None  # type: ignore[assignment]

#: the threads of this process that hold a lock file, with its descriptor
_held: dict[Path, tuple[int, int]] = {}


@contextmanager
def held(folder: Path, *, beside: bool = False) -> Iterator[None]:
    """Hold `folder` while the block runs; whoever wants it meanwhile gets an InputError that says who has it.

    Args:
        folder: What is going to be written to; it is made if need be, and removed again if it stays empty.
        beside: Whether the lock lies beside the folder rather than in it, since the folder itself will be replaced.
    """
    path = (folder.with_name(f".{folder.name}.lock") if beside else folder / ".lock").absolute()
    if fcntl is None or _held.get(path, (None,))[0] == threading.get_ident():  # held further out: one piece of work
        yield
        return
    new = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _locked(path, folder)
    except OSError as error:
        raise InputError(f"cannot write {path.parent}: {error.strerror}") from error
    _held[path] = threading.get_ident(), descriptor
    try:
        yield
    finally:
        del _held[path]
        path.unlink(missing_ok=True)  # while it is held: whoever waits for it sees that it is gone, and makes another
        os.close(descriptor)
        if new:
            with suppress(OSError):  # not empty
                path.parent.rmdir()


def _locked(path: Path, folder: Path) -> int:
    """A descriptor that holds the lock file, which says so."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _take(descriptor, path, folder)
            with suppress(FileNotFoundError):  # the holder before has removed it since it was opened
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    _warn_of_another_machine(_written(path), folder)
                    me = {
                        "process": os.getpid(),
                        "machine": platform.node(),
                        "since": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
                        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
                    }
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, json.dumps(me).encode(), 0)
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _take(descriptor: int, path: Path, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
            warnings.warn(
                f"the file system of {folder} cannot lock: see to it yourself that nobody else writes there",
                DataWarning,
                stacklevel=5,
            )
            return
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        who = _written(path)
        for _ in range(20):  # it writes down who it is a moment after it has the lock
            if who:
                break
            time.sleep(0.05)
            who = _written(path)
        raise InputError(
            f"{folder} is being written to by {_described(who)}. Wait for it, end it, or choose another folder"
        ) from error


def _written(path: Path) -> dict[str, Any]:
    """What a lock file says; nothing if it is gone, or not (yet) whole."""
    try:
        who = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return who if isinstance(who, dict) and {"process", "machine", "since", "command"} <= who.keys() else {}


def _described(who: dict[str, Any]) -> str:
    if not who:
        return "another process"
    return f"process {who['process']} on {who['machine']}, since {who['since']}: {who['command']}"


def _warn_of_another_machine(before: dict[str, Any], folder: Path) -> None:
    if before and before["machine"] != platform.node():
        warnings.warn(
            f"{folder} was left without an end by {_described(before)}. Its lock is free, so it is taken to have died; "
            "where machines do not share locks, make sure of it",
            DataWarning,
            stacklevel=6,
        )


def _let_go() -> None:
    """A child of a fork must not keep what its parent holds, or a killed parent's lock would live on in it."""
    for _, descriptor in _held.values():
        os.close(descriptor)
    _held.clear()


if fcntl is not None:
    os.register_at_fork(after_in_child=_let_go)
