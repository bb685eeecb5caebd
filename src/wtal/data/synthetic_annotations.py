"""Made-up annotations: what happens when in videos that do not exist."""

import numpy as np

from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.instances import Instances


def random_annotations(
    rng: np.random.Generator,
    *,
    n_train: int = 100,
    n_test: int = 50,
    n_classes: int = 10,
    duration_s: float = 120.0,
    action_s: float = 5.0,
    gap_s: float = 6.0,
    two_tags: float = 0.15,
    overlap: float = 0.3,
    background_only: float = 0.0,
) -> Annotations:
    """Videos full of actions, in splits "train" and "test", every class about equally often.

    `duration_s`, `action_s` and `gap_s` are medians of long-tailed (log-normal) lengths, so that close pairs of
    actions, which a low threshold merges, and far ones both occur. `two_tags`, `background_only`: share of videos
    with two classes or none. `overlap`: share of the second class's actions that overlap the one before.

    >>> made = random_annotations(np.random.default_rng(0), n_train=2, n_test=1, n_classes=3)
    >>> made.classes, list(made.videos)
    (('action 0', 'action 1', 'action 2'), ['train_00000', 'train_00001', 'test_00000'])
    """
    if n_classes < 1 or n_train < 0 or n_test < 0 or n_train + n_test < 1:
        raise InputError("wanted at least one class and one video")
    digits = len(str(n_classes - 1))
    videos = {}
    for split, n in (("train", n_train), ("test", n_test)):
        for i in range(n):
            tags = [] if rng.random() < background_only else [i % n_classes]
            if tags and n_classes > 1 and rng.random() < two_tags:
                tags.append(int((tags[0] + rng.integers(1, n_classes)) % n_classes))
            lasts = float(np.clip(_long_tailed(rng, duration_s, 0.4), 15.0, 20 * duration_s))
            instances = _actions(rng, tags, lasts, action_s, gap_s, overlap) if tags else Instances.empty()
            videos[f"{split}_{i:05d}"] = Video(split, round(lasts, 2), instances)
    return Annotations(tuple(f"action {i:0{digits}d}" for i in range(n_classes)), videos)


def _long_tailed(rng: np.random.Generator, median: float, spread: float) -> float:
    return float(median * np.exp(spread * rng.standard_normal()))


def _actions(
    rng: np.random.Generator, tags: list[int], lasts: float, action_s: float, gap_s: float, overlap: float
) -> Instances:
    """Actions and gaps in turn until the video is over; each tag occurs at least once."""
    segments: list[list[float]] = []
    class_ids: list[int] = []
    now = 0.3 * min(_long_tailed(rng, gap_s, 0.8), lasts / 4)
    turn = 0
    while True:
        length = min(_long_tailed(rng, action_s, 0.5), 0.3 * lasts)
        if now + length > lasts and turn >= len(tags):
            break
        class_id = tags[turn] if turn < len(tags) else int(rng.choice(tags))
        start = min(now, lasts - length)
        if class_ids and class_ids[-1] != class_id and rng.random() < overlap:
            before = segments[-1]
            start = max(0.0, before[1] - 0.5 * min(length, before[1] - before[0]))
        segments.append([round(start, 2), round(start + length, 2)])
        class_ids.append(class_id)
        now = start + length + _long_tailed(rng, gap_s, 0.8)
        turn += 1
    return Instances(segments, class_ids=class_ids)
