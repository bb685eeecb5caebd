"""Mean average precision in the most obvious way: lists, loops and no cleverness."""

from fractions import Fraction
from math import floor


def tiou(a, b):
    shared = max(0.0, min(a[1], b[1]) - max(a[0], b[0]))
    union = (a[1] - a[0]) + (b[1] - b[0]) - shared
    return shared / union if shared else 0.0


def on_grid(segment, *, cut):
    """Whole snippets of 16/25 seconds by exact fractions: cut down for predictions, rounded for truth."""
    exact = [Fraction(bound) * 25 / 16 for bound in segment]
    return [floor(bound) if cut else round(bound) for bound in exact]


def interpolated_ap(right, n_truth):
    """The area under the precision envelope, summed recall step by recall step."""
    points = [(sum(right[:k]) / n_truth, sum(right[:k]) / k) for k in range(1, len(right) + 1)]
    area, recall_before = 0.0, 0.0
    for recall in sorted({recall for recall, _ in points}):
        area += (recall - recall_before) * max(p for r, p in points if r >= recall)
        recall_before = recall
    return area


def mean_ap(predictions, truth, thresholds):
    """Percent at each threshold; both arguments are lists of (video, label, segment, score)."""
    result = []
    for threshold in thresholds:
        per_class = []
        for label in sorted({row[1] for row in truth}):
            ranked = sorted(
                (row for row in predictions if row[1] == label),
                key=lambda row: (-row[3], row[2][0], row[2][1], row[0]),
            )
            free = sorted((row for row in truth if row[1] == label), key=lambda row: row[2])
            n_truth = len(free)
            right = []
            for video, _, segment, _ in ranked:
                reachable = [row for row in free if row[0] == video and tiou(segment, row[2]) >= threshold]
                right.append(bool(reachable))
                if reachable:
                    free.remove(max(reachable, key=lambda row: tiou(segment, row[2])))
            per_class.append(interpolated_ap(right, n_truth))
        result.append(100 * sum(per_class) / len(per_class))
    return result


def rows(instances_by_video):
    return [
        (video, label, tuple(segment), score)
        for video, found in instances_by_video.items()
        for segment, score, label in zip(
            found.segments.tolist(), found.scores.tolist(), found.class_ids.tolist(), strict=True
        )
    ]
