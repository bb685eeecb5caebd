"""Threads that wait for each other without keeping a processor busy."""

import os


def wait_quietly() -> None:
    """Let OpenMP's threads sleep while they wait, unless the user has said otherwise; before torch is loaded.

    By default they spin. Beside other programs a thread that is waited for may not be running, and the others burn
    the very time that it needs: an epoch takes many times as long (`python -m benchmarks waiting`).
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # of GNU, which torch brings on Linux
    os.environ.setdefault("KMP_BLOCKTIME", "0")  # of Intel and LLVM: macOS, Windows, conda
