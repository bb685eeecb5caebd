"""From a folder of videos and a CSV of tags to a detector, its score on held-out videos, and a timeline.

    python examples/03_my_own_videos.py              # draws clips of its own; about a minute
    python examples/03_my_own_videos.py CLIPS        # trimmed clips v_CLASS_gGG_cCC.avi, as UCF101 names them

Trimmed clips are only needed to know the truth: they are joined into untrimmed videos, actions among other things that
no tag names. Clips of one group (gGG) are from one recording, so no group is in both training and test videos, be it of
an action or of what is around it. All clips of a video go through one encoder, one after the other, without a gap.
"""

import argparse
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np

from wtal.annotations import Annotations, Video
from wtal.cli import main as wtal
from wtal.data import Store
from wtal.figures.timeline import draw_timeline
from wtal.formats import write_annotations
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.maps import mean_map
from wtal.video.decode import Geometry, read_pictures

RECIPE = Path(__file__).resolve().parents[1] / "recipes" / "my-videos.yaml"
#: the classes that are tagged; clips of all others are what is around them
ACTIONS = ("Archery", "BalanceBeam", "BaseballPitch", "BasketballDunk")
FPS, SIZE = 25, (320, 240)


@dataclass(frozen=True)
class Clip:
    """A trimmed clip of one class; clips of one group come from one recording."""

    path: Path
    label: str
    group: str


def read_clips(folder: Path) -> list[Clip]:
    """The clips of a folder, by their names."""
    named = ((path, re.fullmatch(r"v_(\w+)_g(\d+)_c\d+", path.stem)) for path in sorted(folder.iterdir()))
    return [Clip(path, match[1], match[2]) for path, match in named if match]


def split_by_group(clips: Sequence[Clip], test_share: float = 1 / 3) -> dict[str, list[Clip]]:
    """Clips for training and for test, such that no recording is in both; the last groups of a class are for test."""
    out: dict[str, list[Clip]] = {"train": [], "test": []}
    for label in sorted({clip.label for clip in clips}):
        groups = sorted({clip.group for clip in clips if clip.label == label})
        held_out = set(groups[len(groups) - round(len(groups) * test_share) :])
        for clip in clips:
            if clip.label == label:
                out["test" if clip.group in held_out else "train"].append(clip)
    return out


def storyboard(rng: np.random.Generator, clips: Sequence[Clip], labels: Sequence[str], n_context: int) -> list[Clip]:
    """Clips in random order: one or two of each label, and others that are not tagged."""
    chosen = []
    for label in labels:
        of_class = [clip for clip in clips if clip.label == label]
        chosen += [of_class[i] for i in rng.permutation(len(of_class))[: rng.integers(1, 3)]]
    others = [clip for clip in clips if clip.label not in ACTIONS]
    chosen += [others[i] for i in rng.permutation(len(others))[:n_context]]
    return [chosen[i] for i in rng.permutation(len(chosen))]


def join(path: Path, clips: Sequence[Clip]) -> Instances:
    """Write the clips as one video; what comes out is where the actions are, in seconds."""
    found: list[tuple[float, float, int]] = []
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"  # the encoder scales what differs
        count = 0
        for clip in clips:
            start = count
            for picture in read_pictures(clip.path, fps=FPS, geometry=Geometry(SIZE[1], None)):
                frame = av.VideoFrame.from_ndarray(picture.pixels, format="rgb24")
                frame.pts, count = count, count + 1
                container.mux(stream.encode(frame))
            if clip.label in ACTIONS:
                label = ACTIONS.index(clip.label)
                joins_on = found and found[-1][1:] == (start / FPS, label)  # two clips of one class are one instance
                first = found.pop()[0] if joins_on else start / FPS
                found.append((first, count / FPS, label))
        container.mux(stream.encode())
    return Instances([row[:2] for row in found], None, [row[2] for row in found])


def make_videos(clips: Sequence[Clip], out: Path, *, n_train: int, n_test: int, n_context: int, seed: int) -> None:
    """Untrimmed videos in OUT/videos, their tags in OUT/tags.csv, and the truth, for scoring, in OUT/gt.json."""
    rng = np.random.default_rng(seed)
    (out / "videos").mkdir(parents=True, exist_ok=True)
    truth, rows = {}, []
    for split, n in (("train", n_train), ("test", n_test)):
        mine = split_by_group(clips)[split]
        for number in range(n):
            name = f"{split}_{number:03d}"
            first, second = ACTIONS[number % len(ACTIONS)], ACTIONS[rng.integers(len(ACTIONS))]
            board = storyboard(rng, mine, sorted({first, second}), n_context)
            found = join(out / "videos" / f"{name}.mp4", board)
            truth[name] = Video(split, None, found)
            rows += [(f"{name}.mp4", ACTIONS[label], split) for label in sorted(set(found.class_ids.tolist()))]
    write_annotations(out / "gt.json", Annotations(ACTIONS, truth))
    with (out / "tags.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("video", "label", "split"), *rows])


def draw_clips(folder: Path) -> None:
    """Clips for those who have none: four kinds of motion, and two kinds of stillness around them."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = (*ACTIONS, "Noise", "Wall")
    for kind in kinds:
        for group in range(1, 7):
            rng = np.random.default_rng([kinds.index(kind), group])
            with av.open(str(folder / f"v_{kind}_g{group:02d}_c01.mp4"), "w") as container:
                stream = container.add_stream("libx264", rate=FPS)
                stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
                for index, pixels in enumerate(_drawn(kind, rng, n=int(rng.integers(40, 70)))):
                    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                    frame.pts = index
                    container.mux(stream.encode(frame))
                container.mux(stream.encode())


def _drawn(kind: str, rng: np.random.Generator, n: int) -> Iterator[np.ndarray]:
    y, x = np.mgrid[:240, :320]
    ground, colour = rng.integers(30, 120, 3), rng.integers(130, 255, 3)
    phase = rng.random() * 6
    for t in np.arange(n) / FPS:
        if kind == "Archery":  # stripes that pass by
            mask = np.sin((x + 60 * t) / 12 + phase) > 0
        elif kind == "BalanceBeam":  # a disc that goes up and down
            mask = (x - 160) ** 2 + (y - 120 - 70 * np.sin(4 * t + phase)) ** 2 < 45**2
        elif kind == "BaseballPitch":  # a board that shifts
            mask = ((x + 20 * t).astype(int) // 40 + y // 40) % 2 == 0
        elif kind == "BasketballDunk":  # rings that spread
            mask = np.sin(np.hypot(x - 160, y - 120) / 8 - 6 * t + phase) > 0
        elif kind == "Noise":
            mask = rng.random((24, 32)).repeat(10, 0).repeat(10, 1) > 0.8
        else:
            mask = y > 160
        yield np.where(mask[..., None], colour, ground).astype(np.uint8)


def run(clips: Path | None, out: Path, *, n_train: int, n_test: int, n_context: int, options: Sequence[str]) -> None:
    """All of it: videos, features, training, a table for one held-out video, its timeline."""
    if clips is None:
        draw_clips(out / "clips")
    if not (out / "tags.csv").exists():
        make_videos(
            read_clips(clips or out / "clips"), out, n_train=n_train, n_test=n_test, n_context=n_context, seed=0
        )
    trained, store = out / "run", out / "store"
    data = ["--videos", out / "videos", "--tags", out / "tags.csv", "--gt", out / "gt.json", "--data", store]
    wtal(["train", str(RECIPE), *map(str, data), "--run", str(trained), "--resume", *options])

    video = out / "videos" / "test_000.mp4"
    wtal(["localize", str(trained), str(video), "-o", str(out / "found.json")])
    draw(trained, Store.open(store), video.stem, out / "timeline.png")
    print(f"the same as a picture: {out / 'timeline.png'}")


def draw(trained: Path, store: Store, name: str, path: Path) -> None:
    """The timeline of one held-out video: the model's curve, what it finds, and the truth behind both."""
    localizer, clock = Localizer.load(trained), store.timebase(name)
    truth = store.truth().videos[name].instances
    label = int(truth.class_ids[0])
    found = mean_map(localizer.maps(name, store.features(name)))
    instances = localizer.card.proposer(found.tcam, found.video_scores).instances.of_class(label)
    mine = truth.of_class(label)
    draw_timeline(
        path,
        title=f"{name}: {store.classes[label]}, learned from tags alone",
        curves={"activation": found.tcam[:, label]},
        segments={"found": instances},
        truth=clock.instances_to_snippets(mine),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", type=Path, nargs="?", help="folder of trimmed clips; by default some are drawn")
    parser.add_argument("-o", "--out", type=Path, default=Path("my-own-videos"))
    parser.add_argument("--train-videos", type=int, help="by default 20, and 6 of drawn clips")
    parser.add_argument("--test-videos", type=int, help="by default 10, and 2 of drawn clips")
    given, rest = parser.parse_known_args()
    real = given.clips is not None
    run(
        given.clips,
        given.out,
        n_train=given.train_videos or (20 if real else 6),
        n_test=given.test_videos or (10 if real else 2),
        n_context=3,
        options=rest,  # of wtal train, such as --seed 1 or --threads 1
    )
