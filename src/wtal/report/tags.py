"""Found classes against the tags that videos carry, and how far confidence holds: what tags alone can tell."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from wtal.figures.page import PageBlock, Plot, Text
from wtal.figures.plots import Line, calibration_plot
from wtal.figures.table import Cell, Column, Measure, Table, count
from wtal.report.decided import Decided
from wtal.report.measures import Measurements

#: videos in the table of the most doubtful ones
MOST_DOUBTFUL = 12
#: a share of fewer instances than this is noise
ENOUGH_INSTANCES = 10


def found_classes(measures: Measurements) -> list[PageBlock]:
    """Which tags are found, which are missed, and what is found instead."""
    known = {name: one for name, one in measures.decided.items() if one.tagged}
    if not known:
        return []
    store = measures.loaded.store
    assert store is not None
    first = next(iter(known.values()))
    blocks: list[PageBlock] = [
        Text(
            f"A class counts as found in a video if the decision for the video has an instance of it; {_videos(first)} "
            "Tags say nothing of times, so this says whether the right things are found, not where."
        )
    ]
    shown = [
        c
        for c in range(len(store.classes))
        if any(_of_class(one, c)[0] + _of_class(one, c)[1] for one in known.values())
    ]
    rows: list[list[Cell]] = []
    for c in (None, *shown):
        rows.append(["all together" if c is None else store.classes[c], count(_of_class(first, c)[0])])
        for one in known.values():
            carried, found, right = _of_class(one, c)
            rows[-1] += [count(found), _percent(right, found), _percent(right, carried)]
    columns = [Column("class"), Column("videos with the tag")]
    for name in known:
        columns += [Column(head, name if len(known) > 1 else "") for head in ("videos found in", "precision", "recall")]
    note = (
        "Precision: of the videos in which the class is found, the share that carry its tag, %. Recall: of those that "
        "carry it, the share in which it is found, %."
    )
    blocks.append(
        Table(
            "found-classes",
            "Found classes against tags",
            tuple(columns),
            tuple(map(tuple, rows)),
            note,
            strong=frozenset({0}),
        )
    )
    blocks += [_confusion(first, store.classes), _doubtful(first, store.classes)]
    return blocks


def _videos(one: Decided) -> str:
    what = "training videos, each by a model that was trained without it" if one.held_out else "test videos"
    return f"{len(one.tagged)} tagged {what}."


def _of_class(one: Decided, label: int | None) -> tuple[int, int, int]:
    """In how many tagged videos a class, or all of them together, is carried, is found, and is both."""
    carried = found = right = 0
    for tags, classes in one.tagged.values():
        tags, classes = (tags, classes) if label is None else (tags & {label}, classes & {label})
        carried, found, right = carried + len(tags), found + len(classes), right + len(tags & classes)
    return carried, found, right


def _percent(part: int, whole: int) -> Measure | None:
    return Measure((100 * part / whole,), digits=0) if whole else None


def _confusion(one: Decided, classes: Sequence[str]) -> Table:
    """What is found in videos of a tag that do not carry it."""
    rows: list[tuple[Cell, ...]] = []
    for label in sorted({label for tags, _ in one.tagged.values() for label in tags}):
        mine = [(tags, found) for tags, found in one.tagged.values() if label in tags]
        missed = sum(label not in found for _, found in mine)
        instead = Counter(other for tags, found in mine for other in sorted(found - tags))
        said = ", ".join(f"{classes[other]} ({n})" for other, n in instead.most_common(4))
        rows.append((classes[label], count(len(mine)), count(missed), said or "nothing"))
    columns = ("tag", "videos", "not found in", "found besides, though no tag says so (videos)")
    return Table("confusion", "What is taken for what", tuple(map(Column, columns)), tuple(rows))


def _doubtful(one: Decided, classes: Sequence[str]) -> Table:
    names = one.doubtful_first()[:MOST_DOUBTFUL]
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        decision, tags = one.videos[name], set(one.tags[name])
        found = list(dict.fromkeys(decision.instances.class_ids.tolist()))
        surest = (
            None if decision.confidence is None or not len(decision) else f"{100 * decision.confidence.max():.0f} %"
        )
        wrong = [classes[c] for c in found if tags and c not in tags]
        missed = [classes[c] for c in sorted(tags - set(found))]
        said = [f"not found: {', '.join(missed)}"] * bool(missed) + [f"no such tag: {', '.join(wrong)}"] * bool(wrong)
        rows.append((name, ", ".join(classes[c] for c in found) or "nothing", surest, "; ".join(said) or None))
    columns = ("video", "found", "surest", "against its tags")
    return Table(
        "doubtful", "The most doubtful videos", tuple(map(Column, columns)), tuple(rows), "Look at these first."
    )


def confidence(measures: Measurements) -> list[PageBlock]:
    """What the confidence says and what comes true."""
    lines, blocks = [], []
    for number, (name, one) in enumerate(measures.decided.items()):
        checked = one.reliability
        if checked is None or one.confidence is None:
            continue
        enough = checked.n >= min(ENOUGH_INSTANCES, int(checked.n.max()))
        lines.append(
            Line(name, checked.mean[enough].tolist(), (100 * checked.share[enough]).tolist(), number, marker="o")
        )
        rows: list[tuple[Cell, ...]] = [
            (f"{100 * mean:.0f} %", Measure((100 * share,), digits=0), count(int(n)))
            for mean, share, n in zip(checked.mean, checked.share, checked.n, strict=True)
        ]
        which = f" of {name}" if len(measures.decided) > 1 else ""
        said = (
            f"Fitted to {one.confidence.source} ({one.confidence.videos} videos). Here each video's confidence is of a "
            f"fit to the other videos (cross-validated); mean error {checked.error:.1f} points."
        )
        heads = tuple(map(Column, ("confidence", "class is right, %", "instances")))
        blocks.append(
            Table(f"reliability-{number + 1}", f"Confidence{which} and what comes true", heads, tuple(rows), said)
        )
    if not lines:
        return []
    figure = calibration_plot(lines, x="confidence", y="instances whose class is right, %")
    caption = (
        "On the dashed line a confidence of 80 % is right in 80 of 100 cases; bins of at least "
        f"{ENOUGH_INSTANCES} instances. Right means that the video carries the tag: it speaks of the class, not of the "
        "times."
    )
    return [Plot("reliability", figure, caption), *blocks]


def precision_recall_of_tags(one: Decided) -> tuple[float, float] | None:
    """Precision and recall over all classes and videos, in percent; None if there is nothing to compare."""
    carried, found, right = _of_class(one, None)
    return (100 * right / found, 100 * right / carried) if carried and found else None


def n_instances(one: Decided) -> int:
    """How many instances are decided for."""
    return int(np.sum([len(decision) for decision in one.videos.values()]))
