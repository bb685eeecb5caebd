"""`wtal formats`: the forms in which instances can be read and written, and from one into another."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wtal.cli.parse import described, plain_help
from wtal.errors import InputError
from wtal.formats import FORMATS, NAMES

if TYPE_CHECKING:
    Form = str
else:
    Form = Literal[tuple(NAMES)]


def main(arguments: Sequence[str]) -> None:
    """List the formats, or run the sub-command that the arguments name."""
    if not arguments:
        show()
        return
    tyro.extras.subcommand_cli_from_dict(
        {name: plain_help(command) for name, command in SUBCOMMANDS.items()},
        prog="wtal formats",
        description=described("Hand instances on: list the formats (also without arguments), convert.", "wtal formats"),
        args=list(arguments),
    )


def show() -> None:
    """List the formats, how their files end, and what they can hold."""
    from wtal.cli.table import print_table

    columns = ("scores", "several videos", "durations", "splits")
    rows = []
    for suffix, module in FORMATS.items():
        counts = "frames" if "frames" in module.HOLDS else "seconds"
        held = ("yes" if what in module.HOLDS else "–" for what in columns)
        rows.append((module.TITLE, module.__name__.rpartition(".")[2], suffix, counts, *held))
    print_table(("format", "name", "ends with", "counts", *columns), rows, left=range(8))
    print(
        "\nAll are read and written: wtal formats convert A B"
        "\nWhose .json a file is, is seen when it is read; to write one, name the format"
        "\n(--to) or use the whole ending. Several videos in a format for one: a folder."
    )


def convert(
    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="A")],
    target: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="B")],
    from_: Annotated[Form | None, tyro.conf.arg(name="from")] = None,
    to: Form | None = None,
    fps: float | None = None,
    media: str = "{name}.mp4",
    split: str = "test",
) -> None:
    """Read A, in the form of one tool, and write B, in that of another.

    Args:
        source: File of annotations or predictions, or a folder of files with one video each.
        target: File to write; a folder, for formats with one video a file.
        from_: The format of A; by default its ending or what is in it says so.
        to: The format of B; by default its ending says so, but for .json.
        fps: Frames in a second of the videos, for formats that count frames.
        media: Where the tool that reads B finds the videos; {name} stands for a video's name.
        split: The split of videos of which A does not say one, if B is ActivityNet JSON.
    """
    from rich.console import Console

    from wtal.formats import read, write
    from wtal.formats.form import FormatHints

    if fps is not None and not 0 < fps < math.inf:
        raise InputError(f"--fps must be above 0, got {fps}")
    if to is None and target.suffix.lower() == ".json" and target.with_suffix("").suffix.lower() not in _tools():
        names = ", ".join(name for name, module in NAMES.items() if module.KIND == "json")
        raise InputError(f"several formats end with .json: say which, --to with one of {names}")
    given = FormatHints(fps=fps, media=media)
    content = read(source, form=from_, given=given)
    videos = {name: replace(video, split=video.split or split) for name, video in content.videos.items()}
    unsplit = all(video.split == "" for video in content.videos.values())
    lost = write(target, replace(content, videos=videos), form=to, given=given)
    lost = [what for what in lost if not (unsplit and what.endswith("splits"))]
    total = sum(len(video.instances) for video in videos.values())
    kind = "predictions" if content.predicted else "annotations"
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    console.print(f"{total:,} {kind} of {len(content.classes):,} classes in {len(videos):,} videos → {target}")
    if lost:
        console.print(f"left out, since this format cannot hold it: {', '.join(lost)}")


SUBCOMMANDS: dict[str, Callable[..., None]] = {"list": show, "convert": convert}


def _tools() -> set[str]:
    """The endings that say whose .json a file is."""
    return {Path(suffix).with_suffix("").name for suffix in FORMATS if suffix.count(".") > 1}
