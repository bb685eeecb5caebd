"""`wtal localize`: instances from activation maps that any model has saved."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from wtal.errors import InputError
from wtal.propose import PRESETS, Proposer
from wtal.timebase import TimeBase


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments, with the preset's values as the defaults of all settings."""
    preset = _preset(arguments)

    def localize(
        tcam: Path,
        output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("predictions.json"),
        preset: Literal["paper", "released"] = "paper",  # noqa: ARG001  read before all else
        proposer: Annotated[Proposer, tyro.conf.arg(name="")] = PRESETS[preset],
        timebase: Annotated[TimeBase, tyro.conf.arg(name="")] = TimeBase(),  # noqa: B008  frozen
    ) -> None:
        """Cut, score and fuse activation maps into instances, and write them in seconds.

        Args:
            tcam: .npz file with names, lengths, tcam, video_scores and classes (see docs/how-to/plug-in.md).
            output: ActivityNet JSON, or CSV if the name ends in .csv.
            preset: Where the settings below start from: the paper's, or those of the authors' released code.
            proposer: How maps become instances.
            timebase: How snippets lie on the video's clock.
        """
        run(tcam, output, proposer, timebase)

    tyro.cli(localize, prog="wtal localize", args=list(arguments))


def run(tcam: Path, output: Path, proposer: Proposer, timebase: TimeBase) -> None:
    """Localize the maps of one file and say what came out."""
    from rich.console import Console
    from rich.progress import track

    from wtal.formats import write_predictions
    from wtal.formats.tcam import read_tcams
    from wtal.localize import localize_maps

    console = Console(stderr=True)
    maps = read_tcams(tcam)
    found = localize_maps(
        maps.videos,
        proposer,
        timebase,
        track=lambda videos: track(videos, "Localizing", console=console, transient=True),
    )
    write_predictions(output, found, maps.classes)
    total = sum(map(len, found.values()))
    without = sum(not len(instances) for instances in found.values())
    console.print(
        f"{total:,} instances in {len(found):,} videos"
        + (f" ({without:,} videos without any)" if without else "")
        + f" → {output}\nscore them:  wtal evaluate {output} GT.json",
        highlight=False,
        soft_wrap=True,
    )


def _preset(arguments: Sequence[str]) -> str:
    """The preset, which must be known before the other options get their defaults."""
    for here, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name = following if here == "--preset" else here.removeprefix("--preset=") if "--preset=" in here else None
        if name is not None:
            if name not in PRESETS:
                raise InputError(f"--preset is {' or '.join(PRESETS)}, got {name!r}")
            return name
    return "paper"
