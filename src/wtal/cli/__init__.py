"""The command line: `wtal COMMAND …`, one small module per command, loaded only when it is the one that runs."""

import sys
from collections.abc import Sequence
from importlib import import_module

#: Commands in the order in which one meets them: what each does, shown by `wtal --help`.
COMMANDS = {
    "demo": "See the method at work on generated data; ends with a picture.",
    "data": "Convert published feature sets, check them, generate synthetic ones.",
    "extract": "Turn video files into a store of features; resumable.",
    "weights": "Tell where I3D's weights are published; check a file of them.",
    "train": "Train on tagged videos by a recipe; resumable.",
    "localize": "Find instances in a video, in features, or in anybody's activation maps.",
    "tune": "Choose test-time settings on videos whose instances are known.",
    "evaluate": "Score predictions: mAP by the field's protocols, per class, and why.",
    "report": "One page about a run, or several side by side: scores, curves, errors, videos.",
    "paper": "One of the paper's tables or figures, from training to the page.",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name; a user's error ends it with one clear line and exit code 2."""
    from wtal.errors import InputError, MissingExtraError, did_you_mean

    command, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if command in ("-h", "--help"):
        print(_help())
        return
    if command == "--version":
        from wtal import __version__

        print(f"wtal {__version__}")
        return
    if command not in COMMANDS:
        sys.exit(_complaint(f"unknown command {command!r}{did_you_mean(command, COMMANDS)}\n{_help()}"))
    try:
        import_module(f"wtal.cli.{command}").main(rest)
    except (InputError, MissingExtraError) as error:
        sys.exit(_complaint(str(error)))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # the reader of our output (head, less) has gone; that is no error of ours
        sys.stderr.close()


def _complaint(text: str) -> int:
    print(f"wtal: {text}", file=sys.stderr)
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
