"""The list of all runs' videos: sorted, searched, paged. Rows are made once; a request only picks and joins them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from wtal.annotations import Annotations
from wtal.decide import decide
from wtal.errors import InputError
from wtal.evaluate import prepare, video_precision
from wtal.evaluate.doubt import doubts, errors
from wtal.instances import Instances
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
        words = ([row["run"], row["name"], row["split"], *(row["tags"] or ())] for row in rows)
        self._sought = [" ".join(some).casefold() for some in words]
        ties = [(row["name"], row["run"]) for row in rows]
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
            query: Words that all have to be in the run's or video's name, its split or tags.
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
        for word in query.casefold().split():
            chosen = [number for number in chosen if word in self._sought[number]]
        rows = b",".join(
            self._texts[n] + (b',"corrected":true}' if self._names[n] in corrected else b',"corrected":false}')
            for n in chosen[offset : offset + limit]
        )
        return b'{"total":%d,"videos":[%s]}' % (len(chosen), rows)


def rows_of(one: Served) -> list[dict[str, Any]]:
    """What the list says of each video of a run."""
    store, confidence = one.store, one.localizer.confidence()
    decided = {name: decide(found, confidence) for name, found in one.found.items()}
    unsure = doubts(decided, store.tag_ids())
    precision, wrong = _measured(one, {name: decision.instances for name, decision in decided.items()})
    return [
        {
            "run": one.name,
            "name": name,
            "split": store.records[name].split,
            "duration": round(store.duration_s(name), 3),
            "tags": list(store.records[name].tags) or None,
            "found": len(decision),
            "ap": precision.get(name),
            "doubt": unsure[name],
            "errors": wrong.get(name),
        }
        for name, decision in decided.items()
    ]


def _measured(one: Served, decided: Mapping[str, Instances]) -> tuple[dict[str, float], dict[str, int]]:
    """Average precision in percent within each video whose truth is known, and the errors of what is decided for."""
    known = {} if one.truth is None else {n: v for n, v in one.truth.videos.items() if n in one.found}
    if one.truth is None or not any(len(video.instances) for video in known.values()):
        return {}, {}
    truth = Annotations(one.truth.classes, {name: replace(video, split="all") for name, video in known.items()})
    protocol = one.run.recipe.test.protocols[0]
    ranked, chosen = (
        prepare({name: found[name] for name in known}, truth, protocol=protocol, split="all")
        for found in (one.found, decided)
    )
    return {name: float(np.round(ap, 1)) for name, ap in video_precision(ranked).items()}, errors(chosen)
