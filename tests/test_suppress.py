import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import instances
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.overlap import iou, own_length
from wtal.suppress import nms, soft_nms


@given(instances(), st.sampled_from(["iou", "own_length"]), st.sampled_from([0.0, 0.3, 0.7]))
def test_what_nms_keeps_does_not_overlap_and_what_it_drops_does(found, overlap, threshold):
    kept = nms(found, threshold=threshold, overlap=overlap)
    measure = iou if overlap == "iou" else own_length
    for label in np.unique(found.class_ids):
        mine, all_of_label = kept.of_class(label), found.of_class(label)
        assert mine.scores.max() == all_of_label.scores.max()
        shared = measure(mine.segments, mine.segments)
        # each kept one was free of every better one
        assert (np.tril(shared, -1) <= threshold + 1e-12).all()
        assert (measure(all_of_label.segments, mine.segments).max(axis=1) > threshold - 1e-12).all()


def soft_nms_by_hand(found, decay, threshold, sigma):
    left = [[*s, q, c] for s, q, c in zip(found.segments, found.scores, found.class_ids, strict=True)]
    out = []
    while left:
        left.sort(key=lambda r: (-r[2], r[0], r[1]))
        best = left.pop(0)
        out.append(best)
        for row in left:
            if row[3] == best[3]:
                o = iou(np.array([row[:2]]), np.array([best[:2]]))[0, 0]
                row[2] *= np.exp(-(o**2) / sigma) if decay == "gaussian" else (1 - o if o > threshold else 1.0)
    return out


@given(instances(scores=st.floats(0.25, 1)), st.sampled_from(["linear", "gaussian"]))
def test_soft_nms_is_the_textbook_loop(found, decay):
    mine = soft_nms(found, decay=decay, threshold=0.3, sigma=0.4, min_score=0.0)
    expected = soft_nms_by_hand(found, decay, 0.3, 0.4)
    np.testing.assert_allclose(np.sort(mine.scores), np.sort([row[2] for row in expected]), rtol=1e-9)


def test_soft_nms_drops_what_falls_too_low():
    twice = Instances([[0.0, 4.0], [0.0, 4.0]], [0.9, 0.8])
    assert len(soft_nms(twice, decay="linear")) == 1


@pytest.mark.parametrize("options", [{"sigma": 0.0}, {"decay": "cubic"}])
def test_bad_settings_are_named(options):
    with pytest.raises(Exception, match=str(next(iter(options)))):
        soft_nms(Instances.empty(), **options)


def test_nothing_stays_nothing():
    assert len(nms(Instances.empty())) == len(soft_nms(Instances.empty())) == 0
    with pytest.raises(InputError, match="threshold"):
        nms(Instances.empty(), threshold=-1.0)
