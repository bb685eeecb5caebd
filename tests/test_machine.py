"""What a process asks of the machine."""

import ctypes
import resource

import numpy as np
import pytest

from wtal.machine import keeping_memory


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
