"""How a process uses the machine: what torch's libraries are told before they are loaded, and memory that is kept."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

#: by how many bytes training may grow before it gives back what it has freed
MOST_KEPT = 2 * 2**30


def prepare_torch() -> None:
    """Tell torch's libraries how to wait and what to remember, unless the user has said otherwise; before it is loaded.

    By default OpenMP's threads spin while they wait. Beside other programs a thread that is waited for may not be
    running, and the others burn the very time that it needs: an epoch takes many times as long
    (`python -m benchmarks waiting`). A very short spin does little harm, and spares threads of small products
    from being put to sleep and woken hundreds of times.

    oneDNN compiles a kernel for each size of a product and keeps a thousand of them. Videos differ in length, so an
    epoch needs more, and would compile all of them again: one part in ten of its time.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "300")  # of GNU, which torch brings on Linux
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("KMP_BLOCKTIME", "0")  # of Intel and LLVM: macOS, Windows, conda
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "20000")


@contextmanager
def keeping_memory(most: int = MOST_KEPT) -> Iterator[Callable[[], None]]:
    """Let the C library keep large arrays that are freed inside for those that come next.

    Otherwise it gives the memory back to the system at once, and each training step gets the same arrays page by page
    again: one part in twenty of an epoch. Where arrays differ in size from step to step, what is kept grows. So it
    gives a function to be called after each step, which gives back all that is kept once the process has grown by
    `most` bytes. Only GNU's C library on Linux is asked; others do as they do.
    """
    mmap_threshold, trim_threshold = -3, -1
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
        held = resident_memory()
    except (OSError, TypeError, AttributeError):  # Windows, macOS, musl
        yield lambda: None
        return

    def release() -> None:
        nonlocal held
        if resident_memory() - held > most:
            trim(0)
            held = resident_memory()

    mallopt(mmap_threshold, 32 * 2**20)  # the most that it takes
    mallopt(trim_threshold, 2**31 - 1)
    try:
        yield release
    finally:
        mallopt(mmap_threshold, 128 * 2**10)  # as they are by default
        mallopt(trim_threshold, 128 * 2**10)
        trim(0)


def resident_memory() -> int:
    """Bytes of memory that the process uses, as Linux counts them."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
