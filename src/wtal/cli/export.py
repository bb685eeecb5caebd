"""`wtal export`: a trained model as a folder to hand on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from wtal.cli.parse import run_command


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    run_command(export, "wtal export", arguments)


def export(
    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")],
    onnx: bool = False,
    push: Annotated[str | None, tyro.conf.arg(metavar="OWNER/NAME")] = None,
    public: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a trained model, or a detector with its teacher, as a folder that Localizer.load and wtal localize take.

    Args:
        run: A finished run, or its folder model.
        folder: Where to write weights, classes, recipe, scores and a card (README.md).
        onnx: Write the networks as ONNX graphs too, checked against torch.
        push: Upload the folder to the Hugging Face Hub under this name.
        public: Let all see a repository that --push makes; by default it is private.
        overwrite: Replace a folder that was exported before.
    """
    from wtal import export as exporting
    from wtal.errors import InputError

    if public and push is None:
        raise InputError("--public is for --push OWNER/NAME")
    names = exporting.export(run, folder, onnx=onnx, overwrite=overwrite)
    for name in names:
        print(f"{(folder / name).stat().st_size:>12,}  {folder / name}")
    if push is not None:
        from wtal.export.hub import push as upload

        print(upload(folder, push, public=public))
    print(f"how to use it, and what it can do:  {folder / 'README.md'}")
