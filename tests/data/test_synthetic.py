import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wtal.annotations import Annotations, Video
from wtal.data import Store
from wtal.data.convert import convert
from wtal.data.streams import join_streams
from wtal.data.synthetic import Difficulty, World, synthetic_features, synthetic_source
from wtal.data.synthetic_annotations import random_annotations
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.timebase import TimeBase

QUIET = Difficulty(noise=0.0, feature_noise=0.0, scene=0.0, variation=0.0)


@given(
    seed=st.integers(0, 999),
    n_classes=st.integers(1, 12),
    two=st.floats(0, 1),
    overlap=st.floats(0, 1),
    background=st.floats(0, 1),
)
@settings(max_examples=40)
def test_made_up_annotations_make_sense(
    seed: int, n_classes: int, two: float, overlap: float, background: float
) -> None:
    made = random_annotations(
        np.random.default_rng(seed),
        n_train=n_classes,
        n_test=2,
        n_classes=n_classes,
        two_tags=two,
        overlap=overlap,
        background_only=background,
    )
    assert len(made.classes) == n_classes
    for video in made.videos.values():
        assert video.duration_s is not None
        if len(video.instances):
            assert video.instances.starts.min() >= 0
            assert video.instances.ends.max() <= video.duration_s + 0.02  # times are rounded
            assert video.instances.class_ids.max() < n_classes
    if background == 0:
        train = made.of_split("train").videos.values()
        assert {int(label) for video in train for label in video.instances.class_ids} == set(range(n_classes))


def test_overlapping_instances_and_background_only_videos_are_made() -> None:
    rng = np.random.default_rng(0)
    made = random_annotations(rng, n_train=60, n_test=0, two_tags=1.0, overlap=0.5, background_only=0.2)
    videos = list(made.videos.values())
    assert any(not len(video.instances) for video in videos)
    overlapping = 0
    for video in videos:
        by_start = video.instances[np.argsort(video.instances.starts)]
        overlapping += int((by_start.starts[1:] < by_start.ends[:-1]).sum())
    assert overlapping > 10


def test_no_class_or_no_video_is_refused() -> None:
    with pytest.raises(InputError, match="at least one class and one video"):
        random_annotations(np.random.default_rng(0), n_classes=0)
    with pytest.raises(InputError, match="2 dimensions at least"):
        World.create(np.random.default_rng(0), 3, 1)


@given(start=st.floats(0, 40), length=st.floats(2, 30), n_dims=st.sampled_from([16, 64, 300]))
@settings(max_examples=30)
def test_the_action_shows_where_it_is_and_nowhere_else(start: float, length: float, n_dims: int) -> None:
    world = World.create(np.random.default_rng(0), 1, n_dims)
    clock = TimeBase(25.0, 16.0, -0.5)
    one = Instances([[start, start + length]])
    bare = replace(QUIET, context=0.0, shoulder=0.0)
    x = synthetic_features(world, one, 120, np.random.default_rng(1), timebase=clock, difficulty=bare)
    shown = world.evidence(x)[:, 0] > 0.05
    first, past = clock.to_positions(one.segments)[0]
    centres = np.arange(120) + 0.5
    assert shown[(centres > first + 0.5) & (centres < past - 0.5)].all()
    assert not shown[(centres < first - 0.5) | (centres > past + 0.5)].any()


def test_only_parts_of_an_action_are_salient_and_the_context_spills_over() -> None:
    world = World.create(np.random.default_rng(0), 2, 128)
    one = Instances([[19.2, 44.8]])  # snippets 30 to 70
    inside, spilt = [], []
    for seed in range(20):
        x = synthetic_features(world, one, 100, np.random.default_rng(seed), difficulty=QUIET)
        strength = world.evidence(x)[30:70, 0]
        inside.append((strength > 0.75 * strength.max()).mean())
        scene = x @ world.rotation.T @ world.contexts[0]
        spilt.append((scene[:30] > 0.2).any() and (scene[70:] > 0.2).any())
    assert 0.05 < np.mean(inside) < 0.6
    assert np.mean(spilt) > 0.5


def test_an_end_is_the_middle_of_a_shoulder_of_its_own_extent() -> None:
    world = World.create(np.random.default_rng(0), 1, 64)
    one = Instances([[32.0, 96.0]])  # snippets 50 to 150
    flat = replace(QUIET, context=0.0, plateau=0.6, shoulder=0.25)
    crossed = {level: [] for level in (0.1, 0.5, 0.9)}
    for seed in range(60):
        x = synthetic_features(world, one, 200, np.random.default_rng(seed), difficulty=flat)
        strength = world.evidence(x)[:, 0]
        for side in (strength, strength[::-1]):
            plateau = np.median(side[70:130])
            for level, places in crossed.items():
                places.append(int(np.argmax(side > level * plateau)) - 50)
    assert np.median(crossed[0.1]) < -5
    assert abs(np.median(crossed[0.5])) < 4
    assert np.median(crossed[0.9]) > 5
    widths = np.subtract(crossed[0.9], crossed[0.1])
    assert np.quantile(widths, 0.9) > 4 * np.quantile(widths, 0.1)


def test_the_same_seed_makes_the_same_features_in_any_order() -> None:
    made = random_annotations(np.random.default_rng(0), n_train=3, n_test=1, n_classes=2)
    one, two = (synthetic_source(made, np.random.default_rng(5), n_dims=16) for _ in range(2))
    names = list(made.videos)
    first = [join_streams(name, one.load(name)) for name in names]
    again = [join_streams(name, two.load(name)) for name in reversed(names)][::-1]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    other = synthetic_source(made, np.random.default_rng(6), n_dims=16)
    assert not np.array_equal(first[0], join_streams(names[0], other.load(names[0])))


def test_any_annotation_file_gets_features(thumos14: Path, tmp_path: Path) -> None:
    from wtal.formats.activitynet import read_annotations

    real = read_annotations(thumos14 / "gt.json")
    few = Annotations(real.classes, dict(list(real.videos.items())[:8]))
    convert(synthetic_source(few, np.random.default_rng(0), n_dims=32), tmp_path / "s", dtype="float16")
    store = Store.open(tmp_path / "s")
    assert store.names() == tuple(few.videos)
    for name, video in few.videos.items():
        assert store.duration_s(name) >= video.instances.ends.max()
        assert store.dtype == "float16"


def test_videos_without_duration_or_instances_get_one() -> None:
    videos = {"a": Video("train", None, Instances([[3.0, 9.0]])), "b": Video("train", None, Instances.empty())}
    source = synthetic_source(Annotations(("Run",), videos), np.random.default_rng(0), n_dims=8)
    assert [record.duration_s for record in source.records] == [14.0, 60.0]
    assert [record.tags for record in source.records] == [("Run",), ()]


def test_tags_can_be_told_from_the_features() -> None:
    rng = np.random.default_rng(0)
    made = random_annotations(rng, n_train=40, n_test=0, n_classes=8, two_tags=0.0)
    state = rng.bit_generator.state
    source = synthetic_source(made, rng, n_dims=64)
    rng.bit_generator.state = state
    world = World.create(rng, 8, 64)
    right = 0
    for record in source.records:
        evidence = world.evidence(join_streams(record.name, source.load(record.name)))
        best = np.sort(evidence, axis=0)[-len(evidence) // 8 :].mean(axis=0).argmax()
        right += source.classes[best] in record.tags
    assert right >= 38


def test_memory_stays_flat_while_a_store_is_written(tmp_path: Path) -> None:
    made = random_annotations(np.random.default_rng(0), n_train=60, n_test=0, n_classes=5)
    source = synthetic_source(made, np.random.default_rng(0), n_dims=256)
    tracemalloc.start()  # numpy reports its arrays to it
    try:
        convert(source, tmp_path / "s", dtype="float32")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (tmp_path / "s" / "features-00000.npy").stat().st_size / 2
