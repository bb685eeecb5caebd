"""The one call from TCAM to instances, against what the authors' released code makes of the same real TCAMs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from strategies import tcams
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.maps import ActivationMap
from wtal.propose import PAPER, PRESETS, RELEASED, Cut, Fusion, Nms, Proposer, SoftNms
from wtal.pseudo.candidates import Candidates
from wtal.pseudo.templates import TEMPLATES


def real_videos(golden):
    with np.load(golden / "tcam_a.npz") as file:
        names, lengths, classes = file["names"], file["lengths"], [str(c) for c in file["classes"]]
        parts = np.split(file["tcam"], np.cumsum(lengths)[:-1])
        for name, tcam, scores in zip(names, parts, file["video_scores"], strict=True):
            yield str(name), tcam[:, : len(classes)], scores[: len(classes)], classes


def rows(found, classes):
    return sorted(
        (classes[c], *segment, score)
        for c, segment, score in zip(found.class_ids, found.segments, found.scores, strict=True)
    )


def golden_rows(path):
    results = json.loads(path.read_text())["results"]
    return {name: sorted((r["label"], *r["segment"], r["score"]) for r in found) for name, found in results.items()}


@pytest.mark.parametrize(("combine", "file"), [(Fusion, "fused"), (Nms, "nms")])
def test_the_released_preset_makes_what_the_released_code_makes(golden, combine, file):
    expected = golden_rows(golden / f"{file}_released_a.json")
    proposer = RELEASED.by(combine)
    off = []
    for name, tcam, scores, classes in real_videos(golden):
        mine, theirs = rows(proposer(tcam, scores).instances, classes), expected.get(name, [])
        assert [r[0] for r in mine] == [r[0] for r in theirs]
        off += [
            (name, m, t) for m, t in zip(mine, theirs, strict=True) if not np.allclose(m[1:], t[1:], rtol=0, atol=1e-5)
        ]
    # one pair of candidates ties to the tenth digit: in single precision, theirs, the other one is the better
    assert len(off) <= (1 if combine is Nms else 0)
    assert all(abs(mine[3] - theirs[3]) < 1e-8 for _, mine, theirs in off)


@given(tcams())
def test_every_preset_and_way_of_combining_works_on_any_curve(tcam):
    scores = np.full(tcam.shape[1], 0.5)
    for preset in PRESETS.values():
        ways = [preset.by(Fusion, template=name) for name in TEMPLATES] + [preset.by(Nms)]
        ways += [preset.by(SoftNms, decay=decay) for decay in ("linear", "gaussian")]
        for proposer in ways:
            found = proposer(tcam, scores)
            assert np.isfinite(found.instances.segments).all()
            assert (np.diff(found.instances.scores) <= 0).all()


def test_tags_override_scores():
    tcam = np.tile(np.array([0.0, 0.9, 0.9, 0.0])[:, None], 3)
    assert PAPER(tcam, np.array([0.9, 0.0, 0.0])).instances.class_ids.tolist() == [0]
    assert PAPER(tcam, np.array([0.9, 0.0, 0.0]), classes=[2]).instances.class_ids.tolist() == [2]


def test_the_best_class_is_kept_only_when_asked():
    scores = np.array([0.01, 0.05])
    assert len(PAPER.cut.choose_classes(scores)) == 0
    assert Cut(keep_best_class=True).choose_classes(scores).tolist() == [1]


def test_a_score_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="nan"):
        PAPER(np.zeros((3, 1)), np.array([np.nan]))


def test_attention_thresholds_add_runs_of_the_attention_scored_by_the_activations():
    tcam = np.array([[0.0], [0.0], [0.5], [0.5], [0.0], [0.0]])
    attention = np.array([0.0, 0.9, 0.9, 0.9, 0.9, 0.0])
    both = Proposer(Cut(thresholds=(0.1,), attention_thresholds=(0.5,)), Nms(0.9))
    found = both(tcam, np.ones(1), attention=attention).instances
    assert found.segments.tolist() == [[2.0, 4.0], [1.0, 5.0]]
    assert found.scores.tolist() == pytest.approx([0.5, 0.25])
    with pytest.raises(InputError, match="attention"):
        both(tcam, np.ones(1))


def streams():
    """Two streams that see one action a little apart, and the second a further one."""
    first, second = np.zeros((2, 20, 1))
    first[4:8], second[5:9], second[14:18] = 1.0, 1.0, 0.6
    return [ActivationMap("v", first, np.ones(1), weight=0.1), ActivationMap("v", second, np.ones(1))]


def test_streams_are_pooled_before_or_after_they_are_combined():
    nms = Proposer(Cut(thresholds=(0.5,)), Nms(0.2))
    assert nms.of_maps(streams()).instances.segments.tolist() == [[5.0, 9.0], [14.0, 18.0]]
    after = replace(nms, pool_threshold=0.9).of_maps(streams()).instances
    assert after.segments.tolist() == [[5.0, 9.0], [14.0, 18.0], [4.0, 8.0]]
    assert after.scores.tolist() == pytest.approx([1.0, 0.6, 0.1])
    together = Proposer(Cut(thresholds=(0.5,)), Fusion(temperature=1e6)).of_maps(streams()).instances
    np.testing.assert_allclose(together.segments, [[14.0, 18.0], [4.5, 8.5]], atol=1e-4)


def test_one_stream_is_the_same_as_a_map_by_itself():
    one = streams()[1]
    alone, pooled = PAPER(one.tcam, one.video_scores), replace(PAPER, pool_threshold=0.5).of_maps([one])
    assert alone.instances.segments.tolist() == pooled.instances.segments.tolist()
    assert alone.instances.scores.tolist() == pooled.instances.scores.tolist()


def test_background_is_a_last_column_beyond_the_classes():
    tcam = np.tile(np.array([0.0, 0.9, 0.9, 0.0])[:, None], 3)
    scores = np.array([0.9, 0.0, 0.9])
    found = PAPER(tcam, scores, n_classes=2).instances
    assert found.class_ids.tolist() == [0]
    for maps in ((tcam[:, :2], scores), (tcam, scores[:2]), (tcam[:, :2], scores[:2])):
        assert PAPER(*maps, n_classes=2).instances.class_ids.tolist() == [0]
    assert PAPER(tcam, n_classes=2).instances.class_ids.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"must have 1 columns, one per class, or 2 with background last; got .*3"):
        PAPER(tcam, scores, n_classes=1)
    with pytest.raises(InputError, match="if its last column is background, give n_classes"):
        PAPER(tcam, scores[:2])


def test_each_way_of_combining_has_settings_that_act_and_no_others():
    near = np.zeros((20, 1))
    near[4:8], near[5:7] = 0.6, 0.9
    cut = Cut(thresholds=(0.5, 0.8))

    def found(combine):
        return Proposer(cut, combine)(near, np.ones(1)).instances.scores.tolist()

    assert len(found(SoftNms(sigma=0.1, min_score=0.0))) == 2
    assert found(SoftNms(sigma=0.1, min_score=0.0)) != found(SoftNms(sigma=10.0, min_score=0.0))
    assert found(SoftNms("linear", threshold=0.1)) != found(SoftNms("linear", threshold=0.9))
    for wrong in ({"decay": "gaussian", "threshold": 0.5}, {"decay": "linear", "sigma": 0.5}):
        with pytest.raises(InputError, match=r"has no (threshold|sigma); leave it out"):
            SoftNms(**wrong)


def test_another_way_of_combining_keeps_the_groups():
    assert RELEASED.by(Nms).combine == Nms(0.25, "own_length", 1.0)
    assert RELEASED.by(Nms).by(Fusion, template="uniform").combine == Fusion("uniform", overlap="own_length", pad=1.0)
    assert RELEASED.by(SoftNms).by(Nms).combine == Nms()
    assert RELEASED.by(Fusion) == RELEASED
    assert RELEASED.by(Nms).at_temperature(0.5) == RELEASED.by(Nms)
    assert RELEASED.at_temperature(0.5) == RELEASED.by(Fusion, temperature=0.5)


@given(tcams())
def test_decay_weakens_what_overlaps_better_ones_and_keeps_it(tcam):
    without = Proposer(Cut(thresholds=(0.05, 0.2, 0.4), min_length=1.0), Fusion(threshold=0.8))
    with_decay = without.by(Fusion, decay_sigma=0.3)
    plain, weakened = without(tcam), with_decay(tcam)
    assert len(plain.instances) == len(weakened.instances)
    assert weakened.fused is not None
    for index, segment in enumerate(weakened.instances.segments):
        members = plain.candidates.instances[weakened.fused.members(index)]
        assert members.starts.min() - 1e-9 <= segment[0] < segment[1] <= members.ends.max() + 1e-9
    assert weakened.instances.scores.max(initial=0.0) == pytest.approx(plain.instances.scores.max(initial=0.0))
    assert (np.diff(weakened.instances.scores) <= 0).all()


def test_the_papers_preset_looks_for_classes_from_a_tenth_on():
    tcam = np.zeros((9, 2))
    tcam[3:6] = 0.5
    assert PAPER(tcam, np.array([0.1, 0.0999])).instances.class_ids.tolist() == [0]


def test_the_papers_preset_weighs_candidates_at_temperature_0_03():
    # the level 0.001 sees [6, 12), the levels above 0.03 its upper half: two kinds of candidates in one group
    tcam = np.zeros((18, 1))
    tcam[6:12], tcam[8:12] = 0.03, 0.05
    found = PAPER(tcam, np.ones(1))
    q = found.candidates.instances.scores
    expected = np.exp(q / 0.03) / np.exp(q / 0.03).sum()
    assert found.fused is not None
    np.testing.assert_allclose(found.fused.weights, expected, rtol=1e-9)
    assert found.instances.starts.tolist() == pytest.approx([expected @ found.candidates.instances.starts])


@pytest.mark.parametrize(("length", "instances"), [(21, 1), (19, 2)])
def test_the_papers_preset_fuses_what_overlaps_by_more_than_a_quarter(length, instances):
    # of 80 snippets above the low levels, so many are above the high ones: a tIoU just above or below 0.25
    tcam = np.zeros((100, 1))
    tcam[10:90], tcam[10 : 10 + length] = 0.01, 0.9
    assert len(PAPER(tcam, np.ones(1)).instances) == instances


def released_contrast(curve, start, end):
    """The authors' formula on whole snippets: the run with the snippet after it, and flanks cut to whole ones."""
    width = 0.0785 * (end - start) ** 0.9
    inner = curve[start : end + 1]
    left, right = max(0, int(start - width)), min(int(end + 1 + width), len(curve) - 1)
    outer = np.r_[curve[left:start], curve[end + 1 : right]]
    return inner.mean() - (outer.mean() if len(outer) else 0.0)


def test_the_released_preset_cuts_flanks_to_whole_snippets():
    curve = np.r_[np.linspace(0.0, 0.0009, 20), np.full(30, 0.5), np.linspace(0.0009, 0.0, 20)]
    found = RELEASED(curve[:, None], np.ones(1)).candidates.instances
    assert set(map(tuple, found.segments)) == {(20.0, 51.0)}
    np.testing.assert_allclose(found.scores, released_contrast(curve, 20, 50), rtol=1e-9)
    exact = replace(RELEASED, cut=replace(RELEASED.cut, flank_rounding="exact"))
    assert abs(exact(curve[:, None], np.ones(1)).instances.scores[0] - found.scores[0]) > 1e-6


@pytest.mark.parametrize(("shared", "instances"), [(1, 2), (2, 1)])
def test_the_released_preset_counts_positions_as_inclusive(shared, instances):
    # (intersection + 1) / (own length + 1) > 0.25 for a candidate of 8 positions: 2 / 9 is not, 3 / 9 is
    best, other = [0.0, 10.0], [10.0 - shared, 18.0 - shared]
    found = Candidates(Instances([best, other], [0.9, 0.5], unit="snippets"), np.full(2, 0.5))
    assert len(RELEASED.combine(found).instances) == instances
    assert len(RELEASED.by(Fusion, pad=0.0).combine(found).instances) == 2  # 2 / 8 is not more than a quarter
