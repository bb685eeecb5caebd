"""What a process asks of the machine."""

import ctypes
import resource

import numpy as np
import pytest

from wtal.machine import keeping_memory, resident_memory


def faults() -> int:
    """Pages that the system had to hand out for ten arrays of 16 MB, one after the other."""
    np.ones(2**21)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.ones(2**21)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs GNU's C library")
def test_arrays_are_reused_inside_and_given_back_afterwards() -> None:
    with keeping_memory():
        inside = faults()
    assert inside < 10
    assert faults() >= 10  # one for each array at least: huge pages may be on


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs GNU's C library")
def test_what_is_kept_is_given_back_once_it_is_much() -> None:
    with keeping_memory(most=64 * 2**20) as release:
        arrays = [np.ones(2**20) for _ in range(32)]  # 8 MB each
        pins = [np.ones(2) for _ in range(32)]  # small ones that live on, as a library's caches do
        grown = resident_memory()
        del arrays
        assert resident_memory() > grown - 2**24  # kept
        release()
        assert resident_memory() < grown - 128 * 2**20
        before = resident_memory()
        release()  # nothing has grown since
        assert abs(resident_memory() - before) < 2**20
        assert len(pins) == 32
