"""How a process uses the machine: threads that wait without keeping a processor busy, and memory that it keeps."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager


def wait_quietly() -> None:
    """Let OpenMP's threads sleep while they wait, unless the user has said otherwise; before torch is loaded.

    By default they spin. Beside other programs a thread that is waited for may not be running, and the others burn
    the very time that it needs: an epoch takes many times as long (`python -m benchmarks waiting`).
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # of GNU, which torch brings on Linux
    os.environ.setdefault("KMP_BLOCKTIME", "0")  # of Intel and LLVM: macOS, Windows, conda


@contextmanager
def keeping_memory() -> Iterator[None]:
    """Let the C library keep large arrays that are freed inside for those that come next.

    Otherwise it gives the memory back to the system at once, and each training step gets the same arrays page by page
    again: one part in twenty of an epoch. Only GNU's C library is asked; others do as they do.
    """
    mmap_threshold, trim_threshold = -3, -1
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (OSError, TypeError, AttributeError):  # Windows, macOS, musl
        yield
        return
    mallopt(mmap_threshold, 32 * 2**20)  # the most that it takes
    mallopt(trim_threshold, 2**31 - 1)
    try:
        yield
    finally:
        mallopt(mmap_threshold, 128 * 2**10)  # as they are by default
        mallopt(trim_threshold, 128 * 2**10)
        trim(0)
