"""Candidates and fusion, against loops over thresholds, snippets and candidates in plain Python; and how they grow."""

from dataclasses import replace
from math import floor

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.real import activation_maps, seconds
from wtal.maps import ActivationMap
from wtal.propose import RELEASED, RSKP_THRESHOLDS


def straightforward(video: ActivationMap) -> list[tuple[int, float, float, float]]:
    """The released rule as one would first write it: (class, start, end, score) of each fused instance."""
    fused = []
    t = len(video.tcam)
    for label in range(video.tcam.shape[1]):
        if video.video_scores[label] < 0.16:
            continue
        curve = video.tcam[:, label]
        left = []
        for threshold in RSKP_THRESHOLDS:
            start = None
            for i in range(t + 1):
                if i < t and curve[i] > threshold:
                    start = i if start is None else start
                    continue
                if start is not None and i - start >= 2:
                    width = 0.0785 * (i - start) ** 0.9
                    flank = list(range(max(0, floor(start - width)), start))
                    flank += list(range(i + 1, min(t - 1, floor(i + width + 1))))
                    inner = np.mean(curve[start : i + 1])
                    outer = np.mean(curve[flank]) if flank else 0.0
                    left.append((inner - outer, start, i + 1, inner))
                start = None
        left.sort(key=lambda c: (-c[0], c[1], c[2]))
        while left:
            best = left[0]
            group, rest = [], []
            for candidate in left:
                shared = max(0, min(best[2], candidate[2]) - max(best[1], candidate[1]) + 1)
                near = shared / (candidate[2] - candidate[1] + 1) > 0.25
                (group if near or candidate is best else rest).append(candidate)
            top = max(c[3] for c in group)
            weights = [np.exp((c[3] - top) / 0.2) for c in group]
            total = sum(weights)
            score, start, end = (sum(w * c[k] for w, c in zip(weights, group, strict=True)) / total for k in range(3))
            fused.append((label, start, end, score))
            left = rest
    return fused


def _in_order(rows: list[tuple[int, float, float, float]]) -> np.ndarray:
    return np.array(sorted(rows, key=lambda row: [round(value, 6) for value in row])).reshape(-1, 4)


def run(console: Console) -> None:
    what, videos = activation_maps()
    ours = [RELEASED(video.tcam, video.video_scores) for video in videos]
    plain = [straightforward(video) for video in videos]
    for mine, theirs in zip(ours, plain, strict=True):
        found = mine.instances
        rows = list(zip(found.class_ids, found.starts, found.ends, found.scores, strict=True))
        np.testing.assert_allclose(_in_order(rows), _in_order(theirs), atol=1e-8)

    slow = seconds(lambda: [straightforward(video) for video in videos], repeats=2)
    fast = seconds(lambda: [RELEASED(video.tcam, video.video_scores) for video in videos])
    table = Table(title=f"candidates + fusion, {what}; the results are equal")
    for heading in ("", "seconds", "ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("loops in plain Python", f"{slow:.3f}", "1")
    table.add_row("wtal", f"{fast:.4f}", f"{slow / fast:.0f}×")
    console.print(table)

    video = max(videos, key=lambda v: len(v.tcam))
    longer = ActivationMap("ten times as long", np.tile(video.tcam, (10, 1)), video.video_scores)
    more = tuple(np.linspace(0.001, 0.04, 200).tolist())
    growth = Table(title="growth (the longest of these videos)")
    for heading in ("", "candidates", "milliseconds", "against one"):
        growth.add_column(heading, justify="right" if heading else "left")
    base = seconds(lambda: RELEASED(video.tcam, video.video_scores), repeats=20)
    finer = replace(RELEASED, cut=replace(RELEASED.cut, thresholds=more))
    for name, proposer, each in (
        (f"one video, {len(video.tcam)} snippets", RELEASED, video),
        ("length × 10", RELEASED, longer),
        ("thresholds × 10", finer, video),
    ):
        n = len(proposer(each.tcam, each.video_scores).candidates)
        took = seconds(lambda p=proposer, v=each: p(v.tcam, v.video_scores), repeats=10)
        growth.add_row(name, f"{n:,}", f"{1e3 * took:.2f}", f"{took / base:.1f}×")
    took = seconds(lambda: [RELEASED(video.tcam, video.video_scores) for _ in range(10)], repeats=10)
    growth.add_row("videos × 10", "", f"{1e3 * took:.2f}", f"{took / base:.1f}×")
    console.print(growth)
