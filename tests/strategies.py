"""Random input for property tests: curves, instances and candidates as the method meets them."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from wtal.instances import Instances
from wtal.pseudo.candidates import Candidates


@st.composite
def tcams(draw, max_snippets=40, max_classes=3):
    shape = (draw(st.integers(1, max_snippets)), draw(st.integers(1, max_classes)))
    # few distinct levels, so that equal neighbours, equal scores and plateaus at a threshold are common
    levels = st.one_of(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), st.floats(0, 1, width=32))
    return draw(hnp.arrays(np.float64, shape, elements=levels))


@st.composite
def instances(draw, max_n=12, max_end=30, max_classes=3, min_n=0, scores=None, unit="seconds"):
    n = draw(st.integers(min_n, max_n))
    position = st.one_of(st.integers(0, max_end - 1).map(float), st.floats(0, max_end - 1, width=32))
    length = st.one_of(st.integers(1, 12).map(float), st.floats(0.125, 12, width=32))
    starts = np.array(draw(st.lists(position, min_size=n, max_size=n)))
    lengths = np.array(draw(st.lists(length, min_size=n, max_size=n)))
    scored = draw(st.lists(st.floats(-1, 1, width=16) if scores is None else scores, min_size=n, max_size=n))
    class_ids = draw(st.lists(st.integers(0, max_classes - 1), min_size=n, max_size=n))
    segments = np.column_stack([starts, starts + lengths])
    return Instances(segments, scored, np.array(class_ids, dtype=np.int64), unit=unit)


@st.composite
def candidates(draw, **kwargs):
    found = draw(instances(unit="snippets", **kwargs))
    inner = draw(st.lists(st.floats(-1, 1, width=16), min_size=len(found), max_size=len(found)))
    return Candidates(found, np.array(inner, dtype=np.float64))
