import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import t

from strategies import candidates
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.overlap import iou, own_length
from wtal.pseudo.candidates import Candidates
from wtal.pseudo.fusion import fuse
from wtal.pseudo.templates import FREEDOM, TEMPLATES, student_t

any_template = st.sampled_from(sorted(TEMPLATES))
any_temperature = st.sampled_from([1e-4, 1e-2, 0.1, 1.0, 1e3])
any_overlap = st.sampled_from(["iou", "own_length"])


@given(candidates(), any_template, any_temperature, any_overlap)
def test_a_fused_instance_lies_within_its_members(found, template, temperature, overlap):
    fused = fuse(found, template=template, temperature=temperature, overlap=overlap)
    for index in range(len(fused)):
        members = found.instances[fused.members(index)]
        assert (members.class_ids == fused.instances.class_ids[index]).all()
        for mine, theirs in (
            (fused.instances.starts[index], members.starts),
            (fused.instances.ends[index], members.ends),
            (fused.instances.scores[index], members.scores),
        ):
            assert theirs.min() <= mine <= theirs.max()
        assert fused.weights[fused.members(index)].sum() == pytest.approx(1.0)
    assert sorted(set(fused.group)) == list(range(len(fused)))


@given(candidates(), any_template, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_changes_nothing(found, template, random):
    order = list(range(len(found)))
    random.shuffle(order)
    shuffled = Candidates(found.instances[order], found.inner[order])
    first, second = fuse(found, template=template), fuse(shuffled, template=template)
    np.testing.assert_allclose(first.instances.segments, second.instances.segments, atol=1e-7)
    np.testing.assert_allclose(first.instances.scores, second.instances.scores, atol=1e-9)


@given(candidates(max_n=1, min_n=1), any_template, any_temperature)
def test_one_candidate_fuses_to_itself(found, template, temperature):
    fused = fuse(found, template=template, temperature=temperature)
    np.testing.assert_array_equal(fused.instances.segments, found.instances.segments)
    np.testing.assert_array_equal(fused.instances.scores, found.instances.scores)


@given(candidates(), any_overlap, st.sampled_from([0.0, 0.25, 0.5, 0.9]), st.sampled_from([0.0, 1.0]))
def test_groups_are_those_of_equation_1(found, overlap, threshold, pad):
    fused = fuse(found, threshold=threshold, overlap=overlap, pad=pad)
    measure = iou if overlap == "iou" else own_length
    left = list(np.lexsort((found.instances.ends, found.instances.starts, -found.instances.scores)))
    while left:
        best = left[0]
        same = [k for k in left if found.instances.class_ids[k] == found.instances.class_ids[best]]
        shared = measure(found.instances.segments[same], found.instances.segments[[best]], pad=pad)[:, 0]
        # one ulp either side of the threshold is a matter of how the fraction is formed
        sure = {k for k, o in zip(same, shared, strict=True) if o > threshold + 1e-12} | {best}
        maybe = {k for k, o in zip(same, shared, strict=True) if o > threshold - 1e-12} | {best}
        group = set(fused.members(fused.group[best]).tolist())
        assert sure <= group <= maybe
        left = [k for k in left if k not in group]


def test_gaussian_weights_are_the_softmax_of_scores():
    found = Candidates(Instances([[0.0, 10.0], [1.0, 11.0]], [0.2, 0.3]), np.array([5.0, 0.0]))
    weight = 1 / (1 + np.exp(-0.1 / 0.1))
    fused = fuse(found, temperature=0.1)
    assert fused.instances.segments[0] == pytest.approx([weight, 10 + weight])
    assert fused.instances.scores[0] == pytest.approx(0.2 + 0.1 * weight)
    assert fuse(found, temperature=0.1, logit="inner").weights[0] == pytest.approx(1.0)


def test_the_lowest_temperature_leaves_the_best_candidate_and_overflows_nowhere():
    found = Candidates(Instances([[0.0, 10.0], [1.0, 11.0]], [900.0, 899.0]), np.zeros(2))
    assert fuse(found, temperature=1e-4).instances.segments.tolist() == [[0.0, 10.0]]


def test_exponential_takes_the_weighted_median_and_uniform_the_middle():
    found = Candidates(Instances([[0.0, 10.0], [1.0, 11.0], [4.0, 12.0]], [0.5, 0.5, 0.5]), np.zeros(3))
    assert fuse(found, template="exponential").instances.segments.tolist() == [[1.0, 11.0]]
    assert fuse(found, template="uniform").instances.segments.tolist() == [[2.0, 11.0]]


@given(
    st.lists(
        st.tuples(st.floats(0, 20, width=16), st.floats(0.125, 1)), min_size=2, max_size=10, unique_by=lambda x: x[0]
    )
)
def test_student_t_is_a_local_minimum_no_worse_than_the_mean(samples):
    x, w = np.array(samples).T
    w = w / w.sum()
    values = np.column_stack([x, x + 30, x])
    location, converged = student_t(values, w, np.zeros(len(x), np.int64), 1)
    mean = w @ x
    scale = FREEDOM * (w @ (x - mean) ** 2)

    def objective(mu):
        return float(w @ np.log1p((x - mu) ** 2 / scale))

    assert converged[0]
    found = float(location[0, 0])
    assert objective(found) <= objective(mean) + 1e-12
    near = minimize_scalar(objective, bounds=(found - 1e-2, found + 1e-2), method="bounded").fun
    assert objective(found) <= near + 1e-9


def test_student_t_has_three_degrees_of_freedom():
    x, w = np.array([0.0, 1.0, 2.0, 10.0]), np.array([0.2, 0.3, 0.3, 0.2])
    found, _ = student_t(np.column_stack([x, x + 30, x]), w, np.zeros(4, np.int64), 1)
    variance = w @ (x - w @ x) ** 2
    # the maximum of the weighted likelihood of a Student-t with the samples' own spread, by scipy's density
    likely = minimize_scalar(lambda mu: -(w @ t.logpdf(x, 3, mu, np.sqrt(variance))), bounds=(0, 4), method="bounded")
    assert found[0, 0] == pytest.approx(likely.x, abs=1e-4)


def test_student_t_says_so_when_it_has_not_converged():
    values = np.array([[0.0, 10.0, 0.1], [1.0, 11.0, 0.2], [5.0, 19.0, 0.9]])
    location, converged = student_t(values, np.full(3, 1 / 3), np.zeros(3, np.int64), 1, steps=1)
    assert not converged[0]
    np.testing.assert_allclose(location[0], values.mean(axis=0))


@pytest.mark.parametrize(
    "options", [{"temperature": 0.0}, {"temperature": -1.0}, {"threshold": -0.1}, {"temperature": np.nan}]
)
def test_bad_settings_are_named(options):
    (name,) = options
    with pytest.raises(InputError, match=name):
        fuse(Candidates(Instances.empty(), np.zeros(0)), **options)


def test_nothing_fuses_to_nothing():
    fused = fuse(Candidates(Instances.empty(), np.zeros(0)))
    assert len(fused) == len(fused.group) == len(fused.converged) == 0


@given(candidates(min_n=1), st.floats(0.1, 2.0))
def test_evidence_is_the_number_of_members_and_changes_scores_alone(found, exponent):
    plain, strong = fuse(found), fuse(found, evidence=exponent, evidence_full=5.0)
    key = np.lexsort((plain.instances.class_ids, plain.instances.ends, plain.instances.starts))
    other = np.lexsort((strong.instances.class_ids, strong.instances.ends, strong.instances.starts))
    np.testing.assert_array_equal(plain.instances.segments[key], strong.instances.segments[other])
    members = np.bincount(strong.group, minlength=len(strong))
    expected = np.sort(np.maximum(plain.instances.scores, 0) * (np.bincount(plain.group) / 5.0) ** exponent)
    np.testing.assert_allclose(np.sort(strong.instances.scores), expected, atol=1e-12)
    assert members.sum() == len(found)
    assert (np.diff(strong.instances.scores) <= 0).all()


def test_of_two_equal_peaks_the_one_that_more_levels_see_comes_first():
    many = [[0.0, 10.0]] * 4 + [[40.0, 50.0]]
    found = Candidates(Instances(many, [0.5] * 5, unit="snippets"), np.full(5, 0.5))
    assert fuse(found, evidence=0.5).instances.starts.tolist() == [0.0, 40.0]
    scores = fuse(found, evidence=0.5, evidence_full=4.0).instances.scores
    np.testing.assert_allclose(scores, [0.5, 0.25])
