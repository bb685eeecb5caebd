"""`wtal extract`: video files in, a store of features out."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import tyro

from wtal.cli.data import Tagging, print_findings, print_store
from wtal.cli.parse import run_command
from wtal.cli.progress import at_video, showing
from wtal.engine import EngineOptions
from wtal.video.extractor import ExtractorOptions
from wtal.video.snippets import Sampling


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    run_command(extract, "wtal extract", arguments)


def extract(
    videos: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="VIDEO [VIDEO ...]")],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    tagging: Annotated[Tagging, tyro.conf.arg(name="")] = Tagging(),  # noqa: B008  frozen
    options: Annotated[ExtractorOptions, tyro.conf.arg(name="")] = ExtractorOptions(),  # noqa: B008  frozen
    sampling: Annotated[Sampling, tyro.conf.arg(name="")] = Sampling(),  # noqa: B008  frozen
    device: Literal["auto", "cpu", "cuda"] = "auto",
    workers: int = 2,
    threads: int | None = None,
    dtype: Literal["float32", "float16"] = "float32",
    skip_bad: bool = False,
    overwrite: bool = False,
    where: Annotated[EngineOptions, tyro.conf.arg(name="")] = EngineOptions(),  # noqa: B008  frozen
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
        threads: Threads of the network on the processor; by default all. Beside other work, fewer are faster.
        dtype: Type of the stored features; float16 halves the space.
        skip_bad: Leave videos that cannot be read out, and list them, instead of stopping at the first.
        overwrite: Replace the store that is there, and drop unfinished work of other settings.
        where: Where the work is done.
    """
    from wtal.extract import extract as run

    if threads is not None:
        use_threads(threads)
    try:
        with showing("extracting", note=at_video) as progress:
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
                engine=where.open(),
                progress=progress,
            )
    except KeyboardInterrupt:
        print("stopped; what is done is kept: run the same command again to go on", file=sys.stderr)
        sys.exit(130)
    print_findings(findings)
    print_store(out)


def use_threads(number: int) -> None:
    """Let networks compute with so many threads of the processor."""
    from wtal.errors import InputError

    if number < 1:
        raise InputError(f"--threads must be 1 or more, got {number}")
    with suppress(ModuleNotFoundError):  # whoever needs it will say what to install
        import torch

        torch.set_num_threads(number)
