import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wtal.data.sampling import even, perturbed

LENGTHS = st.integers(1, 3000)
SEGMENTS = st.integers(1, 800)


@given(t=LENGTHS, n=SEGMENTS, seed=st.integers(0, 99))
def test_perturbed_sampling_is_in_order_in_range_and_of_the_wanted_size(t: int, n: int, seed: int) -> None:
    chosen = perturbed(t, n, np.random.default_rng(seed))
    assert chosen.shape == (n,)
    assert chosen.min() >= 0
    assert chosen.max() < t
    assert (np.diff(chosen) >= 0).all()
    if t >= n:
        assert len(set(chosen.tolist())) == n  # one from each part


@given(t=LENGTHS, n=SEGMENTS)
def test_even_sampling_takes_all_or_spreads_out(t: int, n: int) -> None:
    chosen = even(t, n)
    assert chosen.shape == (min(t, n),)
    assert chosen[0] == 0
    assert chosen[-1] < t
    steps = np.diff(chosen)
    assert steps.size == 0 or (steps.min() >= 1 and steps.max() - steps.min() <= 1)


def test_every_snippet_is_seen_sooner_or_later() -> None:
    rng = np.random.default_rng(0)
    assert set(np.concatenate([perturbed(20, 5, rng) for _ in range(200)]).tolist()) == set(range(20))


def test_a_video_without_snippets_has_none_to_sample() -> None:
    assert even(0, 75).tolist() == []
