"""The command line: `wtal COMMAND …`, one small module per command, loaded only when it is the one that runs."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from wtal.machine import prepare_torch

#: Commands in the order in which one meets them: what each does, shown by `wtal --help`.
COMMANDS = {
    "demo": "See the method at work on generated data; ends with a picture.",
    "data": "Convert published feature sets, check and mend them, generate synthetic ones.",
    "extract": "Turn video files into a store of features; resumable.",
    "weights": "Tell where I3D's weights are published; check a file of them.",
    "train": "Train on tagged videos by a recipe; resumable.",
    "localize": "Find instances in a video, in features, or in anybody's activation maps.",
    "calibrate": "Fit a run's confidence to tagged videos that it has not learned from.",
    "tune": "Choose test-time settings on videos whose instances are known.",
    "evaluate": "Score predictions: mAP by the field's protocols, per class, and why.",
    "formats": "Predictions and annotations into the form of another tool, and back.",
    "export": "A trained model as a folder to hand on: card, weights, ONNX, the Hub.",
    "view": "A page with the video, what was found when, and what the model sees.",
    "report": "One page about a run, or several side by side: scores, curves, errors, videos.",
    "serve": "Runs with their videos in a browser, live; correct what is wrong.",
    "paper": "One of the paper's tables or figures, from training to the page.",
    "completion": "A script with which your shell completes all of this.",
    "help": "The options of a command, such as wtal help train.",
}
#: the extras that all of a command needs, so that a hint names them at once; others depend on its options
_EXTRAS = {
    "demo": ("train", "report"),
    "train": ("train",),
    "calibrate": ("train",),
    "tune": ("train",),
    "export": ("train",),
    "report": ("report",),
    "view": ("train",),
    "serve": ("serve",),
    "paper": ("train", "report"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name; a user's error ends it with one clear line and exit code 2."""
    prepare_torch()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    command, *rest = given or ["--help"]
    if command in ("-h", "--help"):
        print(_help())
    elif command in ("-V", "--version"):
        from wtal import __version__

        print(f"wtal {__version__}")
    elif command not in COMMANDS:
        from wtal.errors import did_you_mean

        sys.exit(_complaint(f"unknown command {command!r}{did_you_mean(command, COMMANDS)}\n{_help()}"))
    else:
        _run(command, rest)


def _run(command: str, arguments: Sequence[str]) -> None:
    from wtal.errors import InputError, MissingExtraError, missing_extra

    try:
        with data_warnings_on_stderr():
            import_module(f"wtal.cli.{command}").main(arguments)
    except InputError as error:
        sys.exit(_complaint(str(error)))
    except BrokenPipeError:
        # the reader of our output (head, less) has gone; that is no error of ours
        sys.stderr.close()
    except (Exception, KeyboardInterrupt) as error:
        if _by_ctrl_c(error):
            print("interrupted", file=sys.stderr)
            sys.exit(130)
        missing = missing_extra(error) if isinstance(error, ImportError) else None
        if missing is None:
            raise
        whole = _EXTRAS.get(command, ())
        if not whole or missing.package != "scipy":  # which comes with each of those
            whole = (*whole, *missing.extras)
        sys.exit(_complaint(str(MissingExtraError(missing.package, *whole))))


def _by_ctrl_c(error: BaseException | None) -> bool:
    """Whether Ctrl-C is what began it: inside a library that is being loaded it comes out as any kind of error."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def data_warnings_on_stderr() -> Iterator[None]:
    """Show what is odd in the data as one plain line each, without the place in our code that noticed it."""
    import warnings

    from wtal.errors import DataWarning

    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, DataWarning):
            print(f"warning: {said(str(message))}", file=sys.stderr)
        else:
            usual(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show
        yield


def said(text: str) -> str:
    """A message of the library as a terminal takes it, whatever the names in it are made of."""
    from wtal.cli.table import printable
    from wtal.errors import as_options

    return "\n".join(map(printable, as_options(text).split("\n")))


def _complaint(text: str) -> int:
    print(f"wtal: {said(text)}", file=sys.stderr)
    return 2


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "usage: wtal COMMAND [options]        (wtal COMMAND --help for the options)",
            "",
            "Find when actions happen in untrimmed videos, learned from tags alone.",
            "",
            "commands:",
            *lines,
        ]
    )
