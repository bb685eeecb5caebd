"""`wtal extract`: video files in, a store of features out."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wtal.cli.data import Tagging, print_findings, print_store
from wtal.video.extractor import ExtractorOptions
from wtal.video.snippets import Sampling

if TYPE_CHECKING:
    from wtal.extract import Progress


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    tyro.cli(extract, prog="wtal extract", args=list(arguments))


def extract(
    videos: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="VIDEO [VIDEO ...]")],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    tagging: Annotated[Tagging, tyro.conf.arg(name="")] = Tagging(),  # noqa: B008  frozen
    options: Annotated[ExtractorOptions, tyro.conf.arg(name="")] = ExtractorOptions(),  # noqa: B008  frozen
    sampling: Annotated[Sampling, tyro.conf.arg(name="")] = Sampling(),  # noqa: B008  frozen
    device: Literal["auto", "cpu", "cuda"] = "auto",
    workers: int = 2,
    dtype: Literal["float32", "float16"] = "float32",
    skip_bad: bool = False,
    overwrite: bool = False,
) -> None:
    """Read video files and write the features of their snippets as a store.

    Kill it and run it again: nothing is done twice. Run it again with more videos or other tags: only what is new is
    extracted.

    Args:
        videos: Video files, and folders of them.
        out: Folder to write the store to.
        tagging: Files that say what the videos show; the store then is of the videos that have tags there.
        options: What turns a snippet into a vector.
        sampling: How snippets lie on the video.
        device: Where the network computes; auto takes a GPU if there is one.
        workers: Threads that decode ahead of the network.
        dtype: Type of the stored features; float16 halves the space.
        skip_bad: Leave videos that cannot be read out, and list them, instead of stopping at the first.
        overwrite: Replace the store that is there, and drop unfinished work of other settings.
    """
    from wtal.extract import extract as run

    try:
        with progress_bar("extracting") as watch:
            findings = run(
                videos,
                out,
                options,
                sampling,
                given=tagging.given(),
                device=device,
                workers=workers,
                dtype=dtype,
                skip_bad=skip_bad,
                overwrite=overwrite,
                watch=watch,
            )
    except KeyboardInterrupt:
        print("stopped; what is done is kept: run the same command again to go on", file=sys.stderr)
        raise
    print_findings(findings)
    print_store(out)


@contextmanager
def progress_bar(what: str) -> "Iterator[Callable[[Progress], None]]":
    """A bar over seconds of video, with the time left and the video that is being worked on."""
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[note]}"),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, note="")

        def watch(at: "Progress") -> None:
            # headers may be wrong about lengths: the bar never runs over
            total = max(at.total_s, at.done_s)
            bar.update(task, completed=at.done_s, total=total, note=f"{at.done_s:.0f} of {total:.0f} s  {at.video}")

        yield watch
