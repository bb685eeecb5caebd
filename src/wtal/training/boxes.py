"""What a detector is taught: the instances that its teachers find in the training videos, with weights.

They lie in RUN/boxes.json, in seconds, as any prediction file; a box's score is its weight.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from wtal.data.store import Store
from wtal.errors import InputError
from wtal.formats import read_predictions
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.pool import Pooling
from wtal.progress import Progress, silent, tracked
from wtal.training.config import BoxSettings
from wtal.training.videos import Videos


def find_boxes(
    teachers: Sequence[Localizer],
    videos: Videos,
    part: slice,
    settings: BoxSettings,
    pool: Pooling,
    *,
    corrected: Mapping[str, Instances] | None = None,
    progress: Progress = silent,
) -> dict[str, Instances]:
    """The boxes of these videos, in seconds: what the teachers find together of the classes that each is tagged with.

    Of `corrected` videos it is what people have said instead, in seconds too, each with weight 1.
    """
    store, tags = videos.store, videos.tags[part]
    offset = teachers[0].card.offset
    boxes = {}
    for number, name in enumerate(tracked(videos.names[part], "boxes", progress)):
        if corrected is not None and name in corrected:
            boxes[name] = corrected[name]
            continue
        features, classes = store.features(name), np.flatnonzero(tags[number])
        found = [
            # overlapping instances are doubtful at test, where one of them is right; as boxes, more of them teach more
            one.found(name, features, one.card.proposer.without_decay(), classes=classes).moved(
                one.card.offset - offset
            )
            for one in teachers
        ]
        clock = store.timebase(name).at(teachers[0].card.offset_snippets)
        boxes[name] = clock.instances_to_seconds(weighted(pool.agreed(found), settings.least_weight))
    return boxes


def read_boxes(path: Path, store: Store, split: str, *, offset_snippets: float | None = None) -> tuple[Instances, ...]:
    """The boxes of each of the split's videos, in snippets; `offset_snippets` is where the first snippet starts."""
    found = read_predictions(path, store.classes)
    missing = [name for name in store.names(split) if name not in found]
    if missing:
        raise InputError(f"{path} has no boxes of {len(missing)} training video(s), the first is {missing[0]}")
    clocks = {name: store.timebase(name).at(offset_snippets) for name in store.names(split)}
    return tuple(clock.instances_to_snippets(found[name]) for name, clock in clocks.items())


def weighted(found: Instances, least_weight: float) -> Instances:
    """Each instance with its score over the best one of its class, those of too little weight left out.

    >>> found = Instances([[0.0, 1.0], [2.0, 3.0], [5.0, 6.0]], [0.5, 0.25, 0.1], [0, 0, 1])
    >>> weighted(found, 0.6).scores.tolist()
    [1.0, 1.0]
    """
    kept = found[found.scores > 0]
    best: Float[np.ndarray, " c"] = np.zeros(int(kept.class_ids.max(initial=-1)) + 1)
    np.maximum.at(best, kept.class_ids, kept.scores)
    weights = kept.scores / best[kept.class_ids]
    return kept.scored(weights)[weights >= least_weight]
