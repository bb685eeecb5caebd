"""Numbers, instances and curves as the plain JSON that a page reads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from wtal.instances import Instances

Record = dict[str, Any]


def records(instances: Instances, classes: Sequence[str]) -> list[Record]:
    """What a page says of each of these instances in seconds.

    >>> records(Instances([[1.0, 2.5]], [0.5]), ["Run"])
    [{'start': 1.0, 'end': 2.5, 'label': 'Run', 'score': 0.5}]
    """
    rows = zip(instances.segments.tolist(), instances.scores.tolist(), instances.class_ids.tolist(), strict=True)
    return [
        # a contrast below 0 says no more to a person than 0 does
        {"start": rounded(start), "end": rounded(end), "label": classes[number], "score": rounded(max(score, 0.0))}
        for (start, end), score, number in rows
    ]


def curve(name: str, kind: str, label: str | None, values: Float[np.ndarray, " t"]) -> Record:
    """A curve with a value for each snippet."""
    return {"name": name, "kind": kind, "label": label, "values": [rounded(value, 4) for value in values.tolist()]}


def rounded(value: float | np.floating, digits: int = 3) -> float:
    """A number as short as a page needs it."""
    return round(float(value), digits)
