"""The list of all runs' videos: sorted, searched, paged. Rows are made once; a request only picks and joins them."""

import json
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from wtal.annotations import Annotations
from wtal.errors import DataWarning, InputError
from wtal.evaluate import prepare, video_precision
from wtal.evaluate.doubt import doubts, wrong_instances
from wtal.serve.served import Served

Sort = Literal["doubt", "errors", "name"]
#: rows of one page at most
MOST = 500


class Catalogue:
    """The videos of some runs.

    Args:
        runs: What is served.
    """

    def __init__(self, runs: Sequence[Served]) -> None:
        rows = [row for one in runs for row in rows_of(one)]
        self._names = [row["name"] for row in rows]
        # without the last entry, which changes while one works
        self._texts = [json.dumps(row, ensure_ascii=False, separators=(",", ":"))[:-1].encode() for row in rows]
        self._sought = [" ".join([row["run"], row["name"], *(row["tags"] or ())]).casefold() for row in rows]
        last = (row["name"] for row in rows), (row["run"] for row in rows)
        ties = list(zip(*last, strict=True))
        keys: dict[Sort, list[float]] = {
            "doubt": [-row["doubt"] for row in rows],
            "errors": [1.0 if row["errors"] is None else -row["errors"] for row in rows],
            "name": [0.0] * len(rows),
        }
        self._orders = {
            sort: sorted(range(len(rows)), key=lambda number, key=key: (key[number], ties[number]))  # type: ignore[misc]
            for sort, key in keys.items()
        }

    def page(self, query: str, sort: str, offset: int, limit: int, corrected: Collection[str]) -> bytes:
        """Part of the list as JSON: {"total", "videos"}.

        Args:
            query: Words that all have to be in the run's or video's name or tags.
            sort: `doubt` or `errors`, the most first, or `name`.
            offset: How many videos to skip.
            limit: How many to give at most.
            corrected: Videos of which corrections are saved.
        """
        if sort not in get_args(Sort):
            raise InputError(f"sort is one of {', '.join(get_args(Sort))}, got {sort!r}")
        if offset < 0 or not 1 <= limit <= MOST:
            raise InputError(f"offset is 0 or more and limit 1 to {MOST}, got {offset} and {limit}")
        chosen = self._orders[sort]  # type: ignore[index]
        if words := query.casefold().split():
            chosen = [number for number in chosen if all(word in self._sought[number] for word in words)]
        rows = b",".join(
            self._texts[n] + (b',"corrected":true}' if self._names[n] in corrected else b',"corrected":false}')
            for n in chosen[offset : offset + limit]
        )
        return b'{"total":%d,"videos":[%s]}' % (len(chosen), rows)


def rows_of(one: Served) -> list[dict[str, Any]]:
    """What the list says of each video of a run."""
    store = one.store
    tags = {name: store.records[name].tags for name in one.found}
    number = {label: i for i, label in enumerate(store.classes)}
    unsure = doubts(one.found, {name: [number[tag] for tag in tags[name] if tag in number] for name in tags})
    precision, wrong = _measured(one)
    return [
        {
            "run": one.name,
            "name": name,
            "duration": round(store.duration_s(name), 3),
            "tags": list(tags[name]) or None,
            "found": len(found),
            "ap": precision.get(name),
            "doubt": unsure[name],
            "errors": wrong.get(name),
        }
        for name, found in one.found.items()
    ]


def _measured(one: Served) -> tuple[dict[str, float], dict[str, int]]:
    """Average precision in percent within each video whose truth is known, and the number of its errors."""
    known = {} if one.truth is None else {n: v for n, v in one.truth.videos.items() if n in one.found}
    if one.truth is None or not any(len(video.instances) for video in known.values()):
        return {}, {}
    truth = Annotations(one.truth.classes, {name: replace(video, split="all") for name, video in known.items()})
    found = {name: one.found[name] for name in known}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        case = prepare(found, truth, protocol=one.run.recipe.test.protocols[0], split="all")
    if not len(case.truth):
        return {}, {}
    return {name: float(np.round(ap, 1)) for name, ap in video_precision(case).items()}, wrong_instances(case)
