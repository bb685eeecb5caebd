"""LinPro labels against one full-length scipy.optimize.linprog per video and class; and how they grow."""

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import linprog

from benchmarks.real import activation_maps, seconds
from wtal.instances import Instances
from wtal.propose import RELEASED
from wtal.pseudo.candidates import QUARTER
from wtal.pseudo.linpro import make_all_targets, make_targets


def straightforward(found: Instances, n_snippets: int) -> float:
    """‖g‖₁ of Eq. 6 solved as it stands, a variable per snippet: one class of one video; NaN where infeasible."""
    centres = np.arange(n_snippets) + 0.5
    start, end = found.starts[:, None], found.ends[:, None]
    width = QUARTER.width(end - start)
    inside = (start <= centres) & (centres < end)
    flank = (start - width <= centres) & (centres < end + width) & ~inside
    solved = linprog(
        np.ones(n_snippets), A_eq=inside.astype(float) - flank, b_eq=found.scores, bounds=(0, None), method="highs"
    )
    return float(solved.fun) if solved.status == 0 else np.nan


def run(console: Console) -> None:
    what, videos = activation_maps()
    jobs = []
    for video in videos:
        found = RELEASED(video.tcam, video.video_scores).instances
        jobs += [(found.of_class(label), len(video.tcam)) for label in np.unique(found.class_ids)]
    n_classes = videos[0].tcam.shape[1]
    ours = make_all_targets(jobs, n_classes, rows="sum")
    theirs = [straightforward(*job) for job in jobs]
    exact = ["elastic" not in labels.status.values() for labels in ours]
    sums = np.array([labels.values.sum() for labels in ours])
    np.testing.assert_allclose(sums[exact], np.array(theirs)[exact], atol=1e-5)

    table = Table(title=f"LinPro labels of {len(jobs)} videos × classes, {what}; the ℓ₁ norms are equal")
    for heading in ("", "seconds", "ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    slow = seconds(lambda: [straightforward(*job) for job in jobs], repeats=2)
    table.add_row("scipy linprog at full length", f"{slow:.3f}", "1")
    for name, options in (
        ("wtal, vertex", {"solution": "vertex"}),
        ("wtal, least norm", {}),
    ):
        took = seconds(lambda options=options: make_all_targets(jobs, n_classes, rows="sum", **options))
        table.add_row(name, f"{took:.3f}", f"{slow / took:.1f}×")
    console.print(table)

    growth = Table(title="growth: 20 instances in a video of so many snippets; then more instances and videos")
    for heading in ("", "scipy ms", "wtal ms", "ratio"):
        growth.add_column(heading, justify="right" if heading else "left")
    rng = np.random.default_rng(0)
    for n_snippets, n_instances in ((1_000, 20), (10_000, 20), (100_000, 20), (10_000, 200)):
        starts = np.sort(rng.uniform(0, 0.95 * n_snippets, n_instances))
        segments = np.column_stack([starts, starts + rng.uniform(0.01, 0.04, n_instances) * n_snippets])
        found = Instances(segments, rng.uniform(0.1, 0.9, n_instances), unit="snippets")
        slow = seconds(lambda f=found, n=n_snippets: straightforward(f, n), repeats=1)
        fast = seconds(lambda f=found, n=n_snippets: make_targets(f, n, 1, rows="sum"))
        growth.add_row(
            f"{n_snippets:,} snippets, {n_instances} instances",
            f"{1e3 * slow:.1f}",
            f"{1e3 * fast:.2f}",
            f"{slow / fast:.0f}×",
        )
    one = seconds(lambda: make_all_targets(jobs[:10], n_classes, rows="sum"))
    ten = seconds(lambda: make_all_targets(jobs[:10] * 10, n_classes, rows="sum"))
    growth.add_row("videos × 10", "", f"{1e3 * one:.1f} → {1e3 * ten:.1f}", f"grows {ten / one:.1f}×")
    console.print(growth)
