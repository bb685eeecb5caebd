import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wtal.errors import InputError
from wtal.video.decode import Picture
from wtal.video.snippets import Sampling, SnippetFrames


class Numbered(Picture):
    """A picture that holds its own number."""

    def __init__(self, number):
        self.number = number

    @property
    def pixels(self):  # in place of the cached one
        return np.full((1, 1, 3), self.number, np.uint8)


def numbers(n_frames, sampling, picks=None, start=0):
    pictures = (Numbered(i) for i in range(n_frames))
    picked = range(sampling.length_frames) if picks is None else picks
    return [snippet[:, 0, 0, 0].tolist() for snippet in SnippetFrames(pictures, sampling, picked, start)]


@given(
    n=st.integers(1, 120),
    length=st.integers(1, 20),
    stride=st.integers(1, 20),
    extra=st.integers(0, 1),
    start=st.integers(0, 3),
)
def test_snippets_are_the_windows_of_the_video(n, length, stride, extra, start):
    sampling = Sampling(25, length, stride)
    picks = range(length + extra)
    # written the plain way: all windows of which at least half is there
    windows = [s for s in range(0, n, stride) if n - s >= length / 2] or [0]
    wanted = [[min(s + pick, n - 1) for pick in picks] for s in windows]
    assert numbers(n, sampling, picks) == wanted
    if start < len(wanted):
        assert numbers(n, sampling, picks, start) == wanted[start:]


def test_only_the_picked_frames_are_made():
    made = []

    class Costly(Numbered):
        @property
        def pixels(self):
            made.append(self.number)
            return super().pixels

    snippets = list(SnippetFrames((Costly(i) for i in range(32)), Sampling(), picks=(2, 10)))
    assert [s[:, 0, 0, 0].tolist() for s in snippets] == [[2, 10], [18, 26]]
    assert made == [2, 10, 18, 26]


def test_the_clock_puts_a_snippets_middle_in_the_middle_of_its_cell():
    for length, stride in ((16, 16), (16, 8), (8, 16)):
        clock = Sampling(25, length, stride).timebase
        middles = clock.to_seconds(np.arange(5) + 0.5)
        np.testing.assert_allclose(middles, (np.arange(5) * stride + length / 2) / 25)


def test_frames_are_counted():
    snippets = SnippetFrames((Numbered(i) for i in range(37)), Sampling(), range(16))
    assert len(list(snippets)) == 2
    assert snippets.n_frames == 37


@pytest.mark.parametrize("wrong", [{"length_frames": 0}, {"stride_frames": 0}, {"fps": 0.0}])
def test_impossible_sampling_is_refused(wrong):
    with pytest.raises(InputError):
        Sampling(**wrong)
