import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from strategies import instances
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.pseudo.candidates import QUARTER, RELEASED_FLANKS, Flanks
from wtal.pseudo.linpro import make_all_targets, make_targets

T = 45
positive = st.floats(0.015625, 1, width=16)
any_rows = st.sampled_from(["sum", "mean"])
any_flanks = st.sampled_from([QUARTER, RELEASED_FLANKS, Flanks(1.0), Flanks(0.0)])


def weights(found, rows, flanks):
    """W of Eq. 5, snippet by snippet: (n, T)."""
    w = np.zeros((len(found), T))
    for j, (s, e) in enumerate(found.segments):
        width = flanks.width(np.array([e - s]))[0]
        centre = np.arange(T) + 0.5
        inside = (s <= centre) & (centre < e)
        if not inside.any():
            inside[min(int((s + e) / 2), T - 1)] = True
        first, last = np.flatnonzero(inside)[[0, -1]]
        flank = (s - width <= centre) & (np.arange(T) < first) | (centre < e + width) & (np.arange(T) > last)
        w[j] = inside.astype(float) - flank
        if rows == "mean":
            w[j] = inside / inside.sum() - flank / max(flank.sum(), 1)
    return w


def oracle(w, q, upper=None, extra=None, cost=None):
    a, b = (w, q) if extra is None else (np.vstack([w, np.ones(T)]), np.append(q, extra))
    return linprog(np.ones(T) if cost is None else cost, A_eq=a, b_eq=b, bounds=(0, upper), method="highs")


@given(instances(unit="snippets", max_n=6, max_classes=1, min_n=1), any_rows, any_flanks, st.sampled_from([None, 1.0]))
def test_labels_meet_the_constraints_with_the_least_sum_that_linprog_finds(found, rows, flanks, upper):
    w, q = weights(found, rows, flanks), found.scores
    expected = oracle(w, q, upper)
    for solution in ("least_norm", "vertex"):
        labels = make_targets(found, T, 1, rows=rows, flanks=flanks, upper=upper or np.inf, solution=solution)
        g = labels.values[:, 0]
        assert np.isfinite(g).all()
        assert (g >= 0).all()
        assert (g <= (upper or np.inf) + 1e-9).all()
        np.testing.assert_allclose(labels.residual, w @ g - q, atol=1e-9)
        if expected.status == 0:
            np.testing.assert_allclose(w @ g, q, atol=2e-6)
            assert g.sum() == pytest.approx(expected.fun, abs=1e-5)
            assert labels.status == {0: "exact"}
        else:
            # what is missing is no more than the least that must be missing
            eye = np.eye(len(q))
            unit = (weights(found, "sum", flanks) > 0).sum(axis=1) if rows == "mean" else np.ones(len(q))
            slack = linprog(
                np.concatenate([np.zeros(T), unit, unit]),
                A_eq=np.hstack([w, eye, -eye]),
                b_eq=q,
                bounds=[(0, upper)] * T + [(0, None)] * (2 * len(q)),
                method="highs",
            )
            assert np.abs(labels.residual) @ unit == pytest.approx(slack.fun, abs=1e-4)


@given(instances(unit="snippets", max_n=6, max_classes=1, min_n=1, scores=positive), any_rows)
def test_no_other_optimal_labels_are_more_even(found, rows):
    w = weights(found, rows, QUARTER)
    labels = make_targets(found, T, 1, rows=rows)
    if labels.status[0] == "elastic":
        return
    g = labels.values[:, 0]
    # g has the least norm on the optimal face if and only if no point of the face is nearer in direction g
    nearest = oracle(w, w @ g, extra=g.sum(), cost=g)
    if nearest.status == 0:
        assert nearest.fun >= g @ g - 1e-6


@given(instances(unit="snippets", max_n=8, max_classes=1), any_rows, st.sampled_from(["least_norm", "vertex"]))
def test_equivalent_snippets_have_equal_labels(found, rows, solution):
    w = weights(found, "sum", QUARTER)
    g = make_targets(found, T, 1, rows=rows, solution=solution).values[:, 0]
    _, group = np.unique(w.T, axis=0, return_inverse=True)
    for k in np.unique(group):
        assert np.ptp(g[group.ravel() == k]) == 0


@given(instances(unit="snippets", max_n=8, max_classes=3), st.randoms(use_true_random=False))
def test_labels_do_not_depend_on_the_order_of_instances_or_on_other_classes(found, random):
    order = list(range(len(found)))
    random.shuffle(order)
    whole = make_targets(found, T, 3)
    np.testing.assert_allclose(whole.values, make_targets(found[order], T, 3).values, atol=1e-7)
    for label in range(3):
        alone = make_targets(found.of_class(label), T, 3).values
        np.testing.assert_allclose(whole.values[:, label], alone[:, label], atol=1e-12)


def test_contradicting_instances_give_way_and_say_so():
    same = Instances([[10.0, 20.0], [10.0, 20.0]], [0.2, 0.8], unit="snippets")
    labels = make_targets(same, T, 1)
    assert labels.status == {0: "elastic"}
    assert np.abs(labels.residual).sum() == pytest.approx(0.6)
    assert np.isfinite(labels.values).all()


def test_a_score_above_what_the_bound_allows_is_elastic():
    labels = make_targets(Instances([[10.0, 12.0]], [3.0], unit="snippets"), T, 1, rows="sum", upper=1.0)
    assert labels.status == {0: "elastic"}
    assert labels.residual.tolist() == pytest.approx([-1.0])


def test_mean_rows_do_not_shrink_with_length():
    found = Instances([[5.0, 7.0], [20.0, 40.0]], [0.5, 0.5], unit="snippets")
    by_sum, by_mean = (make_targets(found, T, 1, rows=rows).values for rows in ("sum", "mean"))
    assert by_sum[[5, 30], 0].tolist() == pytest.approx([0.25, 0.025])
    assert by_mean[[5, 30], 0].tolist() == pytest.approx([0.5, 0.5])


def test_an_instance_narrower_than_a_snippet_labels_the_one_under_its_middle():
    labels = make_targets(Instances([[3.6, 4.2]], [0.4], unit="snippets"), 8, 1)
    assert labels.values[:, 0].tolist() == pytest.approx([0, 0, 0, 0.4, 0, 0, 0, 0])


def test_a_batch_on_two_cores_is_the_videos_one_by_one():
    rng = np.random.default_rng(0)
    videos = []
    for _ in range(70):
        n, length = rng.integers(0, 6), int(rng.integers(1, 60))
        starts = rng.uniform(0, length, n)
        segments = np.column_stack([starts, starts + rng.uniform(1, 9, n)])
        videos.append((Instances(segments, rng.uniform(0, 1, n), rng.integers(0, 3, n), unit="snippets"), length))
    together = make_all_targets(videos, 3, workers=2)
    for (found, length), labels in zip(videos, together, strict=True):
        np.testing.assert_array_equal(labels.values, make_targets(found, length, 3).values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Instances([[0.0, 1.0]], class_ids=[4], unit="snippets"), 10, 3), "class 4"),
        ((Instances.empty("snippets"), 0, 3), "snippets"),
        ((Instances.empty("snippets"), 3, 0), "classes"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        make_targets(*arguments)


def test_bad_settings_are_named():
    with pytest.raises(InputError, match="upper"):
        make_targets(Instances.empty("snippets"), 3, 1, upper=0.0)
    with pytest.raises(InputError, match="workers"):
        make_all_targets([], 1, workers=0)


def test_no_instances_no_labels():
    labels = make_targets(Instances.empty("snippets"), 4, 2)
    assert not labels.values.any()
    assert labels.status == {}
