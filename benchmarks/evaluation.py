"""mAP at ten thresholds: seconds at scale, growth with size, and the ratio to a straightforward pandas form."""

import time

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from wtal.annotations import Annotations, Video
from wtal.evaluate import PROTOCOLS, score
from wtal.instances import Instances

N_CLASSES = 200
PREDICTIONS_PER_VIDEO = 100
TIOU = PROTOCOLS["activitynet13"].tiou


def generated(n_videos: int, seed: int = 0) -> tuple[dict[str, Instances], Annotations]:
    """Predictions and truth: up to 8 instances of 1 or 2 classes per video; half the predictions are near one."""
    rng = np.random.default_rng(seed)
    classes = tuple(f"class {number:03d}" for number in range(N_CLASSES))
    videos, predictions = {}, {}
    for number in range(n_videos):
        own = rng.choice(N_CLASSES, rng.integers(1, 3), replace=False)
        n_truth = int(rng.integers(1, 9))
        starts = rng.uniform(0, 180, n_truth)
        truth = Instances(
            np.column_stack([starts, starts + rng.gamma(2.0, 8.0, n_truth) + 0.5]), class_ids=rng.choice(own, n_truth)
        )
        copied = rng.integers(n_truth, size=PREDICTIONS_PER_VIDEO // 2)
        lengths = truth.lengths[copied]
        near = truth.segments[copied] + rng.normal(0, 0.15, (len(copied), 2)) * lengths[:, None]
        far_starts = rng.uniform(0, 200, PREDICTIONS_PER_VIDEO - len(copied))
        far = np.column_stack([far_starts, far_starts + rng.gamma(2.0, 8.0, len(far_starts)) + 0.5])
        segments = np.sort(np.concatenate([near, far]), axis=1) + np.array([0.0, 1e-3])
        labels = np.concatenate([truth.class_ids[copied], rng.choice(own, len(far))])
        labels = np.where(rng.random(len(labels)) < 0.1, rng.integers(N_CLASSES, size=len(labels)), labels)
        name = f"video {number:06d}"
        videos[name] = Video("validation", None, truth)
        predictions[name] = Instances(segments, rng.random(len(segments)), labels)
    return predictions, Annotations(classes, videos)


def straightforward(predictions: dict[str, Instances], annotations: Annotations) -> list[float]:
    """The same in the manner of the field's evaluator: data frames, and a Python loop over all predictions."""
    found = _frame(predictions)
    truth = _frame({name: video.instances for name, video in annotations.videos.items()})
    found_of = dict(list(found.groupby("label")))
    ap = []
    for label, truth_of_class in truth.groupby("label"):
        taken = np.zeros((len(TIOU), len(truth_of_class)), bool)
        truth_of_class = truth_of_class.reset_index(drop=True)
        truth_of = dict(list(truth_of_class.groupby("video")))
        ranked = found_of.get(label, found.iloc[:0]).sort_values("score", ascending=False)
        right = np.zeros((len(TIOU), len(ranked)), bool)
        for rank, prediction in enumerate(ranked.itertuples()):
            rows = truth_of.get(prediction.video)
            if rows is None:
                continue
            starts, ends = rows["start"].to_numpy(), rows["end"].to_numpy()
            shared = np.minimum(ends, prediction.end) - np.maximum(starts, prediction.start)
            shared = shared.clip(0)
            tiou = shared / ((ends - starts) + (prediction.end - prediction.start) - shared)
            for t, threshold in enumerate(TIOU):
                for place in tiou.argsort()[::-1]:
                    if tiou[place] < threshold:
                        break
                    if not taken[t, rows.index[place]]:
                        taken[t, rows.index[place]] = True
                        right[t, rank] = True
                        break
        precision = right.cumsum(axis=1) / np.arange(1, len(ranked) + 1)
        envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        ap.append((envelope * right).sum(axis=1) / len(truth_of_class))
    return (100 * np.mean(ap, axis=0)).tolist()


def _frame(instances: dict[str, Instances]) -> pd.DataFrame:
    names = np.repeat(np.array(list(instances), object), [len(each) for each in instances.values()])
    joined = Instances.concat(list(instances.values()))
    return pd.DataFrame(
        {
            "video": names,
            "label": joined.class_ids,
            "start": joined.starts,
            "end": joined.ends,
            "score": joined.scores,
        }
    )


def run(console: Console) -> None:
    """Print the table; fail if the two forms disagree."""
    score(*generated(2), protocol="activitynet13")  # compile
    table = Table(title="mAP at ten thresholds, 200 classes")
    for heading in ("videos", "predictions", "wtal", "per prediction", "pandas and loops", "ratio"):
        table.add_column(heading, justify="right")
    for n_videos in (50, 500, 5000):
        predictions, annotations = generated(n_videos)
        n = sum(map(len, predictions.values()))
        seconds = []
        for _ in range(3):
            begun = time.perf_counter()
            measured = score(predictions, annotations, protocol="activitynet13")
            seconds.append(time.perf_counter() - begun)
        ours = min(seconds)
        cells = [f"{n_videos}", f"{n}", f"{ours:.3f} s", f"{1e6 * ours / n:.1f} µs", "", ""]
        if n_videos == 500:
            begun = time.perf_counter()
            reference = straightforward(predictions, annotations)
            theirs = time.perf_counter() - begun
            np.testing.assert_allclose(measured.map, reference, atol=1e-9)
            cells[4:] = [f"{theirs:.2f} s", f"{theirs / ours:.0f}×"]
        table.add_row(*cells)
    console.print(table)


if __name__ == "__main__":
    run(Console())
