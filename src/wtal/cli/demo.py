"""`wtal demo`: the method on generated activation curves whose truth is known, with a picture at the end."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    import numpy as np

    from wtal.instances import Instances


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    tyro.cli(demo, prog="wtal demo", args=list(arguments))


def demo(
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("demo-output"), seed: int = 0, videos: int = 200
) -> None:
    """See fusion, pseudo labels and evaluation at work on generated curves; ends with a picture.

    Args:
        output: Folder for the picture, the predictions and the truth.
        seed: Seed of the generator.
        videos: How many videos to generate.
    """
    from importlib.util import find_spec

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from wtal.annotations import Annotations, Video
    from wtal.errors import MissingExtraError
    from wtal.evaluate import score
    from wtal.formats import write_annotations, write_predictions
    from wtal.propose import PAPER
    from wtal.pseudo.linpro import label_video
    from wtal.report.timeline import draw_timeline
    from wtal.timebase import TimeBase

    if find_spec("matplotlib") is None:  # said now, not after the work is done
        raise MissingExtraError("matplotlib", "report")
    console = Console()
    rng, clock = np.random.default_rng(seed), TimeBase()
    made = {f"generated_{number:03d}": generate(rng) for number in range(videos)}
    truth = Annotations(
        ("Action",),
        {
            name: Video("test", len(curve) * clock.snippet_s, clock.instances_to_seconds(actions))
            for name, (curve, actions) in made.items()
        },
    )
    write_annotations(output / "truth.json", truth)
    table = Table(title=f"{videos} generated videos: mAP at tIoU", caption="wtal evaluate scores such files")
    for heading in ("", "0.3", "0.5", "0.7", "average 0.1:0.7"):
        table.add_column(heading, justify="right" if heading else "left")
    levels = tuple(np.linspace(0.05, 0.95, 19).round(2).tolist())
    ways = {
        "NMS": replace(PAPER, thresholds=levels, combine="nms", overlap_threshold=0.5),
        "Gaussian fusion": replace(PAPER, thresholds=levels),
    }
    for name, proposer in ways.items():
        found = {
            video: clock.instances_to_seconds(proposer(curve, np.ones(1)).instances)
            for video, (curve, _) in made.items()
        }
        write_predictions(output / f"{name.split()[-1].lower()}.json", found, truth.classes)
        result = score(found, truth, protocol="thumos14")
        at = dict(zip(result.tiou, result.map, strict=True))
        table.add_row(name, *[f"{at[t]:.1f}" for t in (0.3, 0.5, 0.7)], f"{result.average['0.1:0.7']:.1f}")
    console.print(table)

    curve, actions = next(iter(made.values()))
    fused = ways["Gaussian fusion"](curve, np.ones(1))
    labels = label_video(fused.instances, len(curve), 1, rows="mean")
    picture = output / "method.png"
    draw_timeline(
        picture,
        title="One generated video: candidates of many thresholds, fused, then turned into snippet labels",
        truth=actions,
        curves={"activation": curve[:, 0], "pseudo labels\n(LinPro)": labels.values[:, 0]},
        segments={
            "candidates": fused.candidates.instances,
            "NMS": ways["NMS"](curve, np.ones(1)).instances,
            "fused": fused.instances,
        },
    )
    console.print(f"picture: {picture}", highlight=False, soft_wrap=True)


def generate(rng: "np.random.Generator") -> "tuple[np.ndarray, Instances]":
    """An activation curve (t, 1) as weakly trained models give it, and the actions under it.

    Only a part of each action is salient, so that high thresholds cut actions short; what lies around is half active,
    so that low thresholds run over. No single threshold is right, which is why combining many pays.
    """
    import numpy as np

    from wtal.instances import Instances

    n = int(rng.integers(3, 7))
    lengths, gaps = rng.uniform(6, 24, n), rng.uniform(6, 20, n + 1)
    starts = np.cumsum(gaps[:-1]) + np.cumsum(np.concatenate([[0.0], lengths[:-1]]))
    t = int(starts[-1] + lengths[-1] + gaps[-1])
    centres = np.arange(t) + 0.5
    curve = np.zeros(t)
    for start, length in zip(starts, lengths, strict=True):
        salient = start + length * rng.uniform(0.3, 0.7)
        near = np.exp(-0.5 * ((centres - salient) / (0.35 * length)) ** 2)
        inside = (centres >= start) & (centres < start + length)
        curve = np.maximum(curve, rng.uniform(0.6, 1.0) * np.where(inside, 0.35 + 0.65 * near, 0.5 * near))
    for bump in rng.uniform(0, t, n):  # context that looks like the action for a moment
        curve = np.maximum(curve, rng.uniform(0.3, 0.8) * np.exp(-0.5 * ((centres - bump) / 1.5) ** 2))
    curve = np.convolve(curve + 0.25 * rng.standard_normal(t), [0.25, 0.5, 0.25], mode="same")
    return np.clip(curve, 0.0, 1.0)[:, None], Instances(np.column_stack([starts, starts + lengths]))
