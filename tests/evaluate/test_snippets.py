import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wtal.evaluate.snippets import CLOCK, cut_down, rounded


@given(st.integers(0, 10**6))
def test_whole_positions_survive_the_way_through_seconds(position):
    seconds = CLOCK.to_seconds(np.array([float(position)]))
    assert cut_down(seconds, unit="seconds").tolist() == [position]
    assert rounded(seconds).tolist() == [position]


@given(st.floats(-1e4, 1e4))
def test_cutting_down_moves_towards_zero_by_less_than_a_snippet(seconds):
    cut = cut_down(np.array([seconds]), unit="seconds")[0]
    assert cut == int(cut)
    assert abs(CLOCK.to_seconds(np.array([cut]))[0]) <= abs(seconds)
    assert abs(seconds) - abs(cut) * 0.64 < 0.64 + 1e-9
