"""`wtal serve`: runs with their videos in a browser, live; and corrections, if asked for."""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from wtal.cli.parse import run_command
from wtal.cli.progress import showing
from wtal.errors import InputError

#: where corrections go if --edit names no file
CORRECTIONS = Path("corrections.json")


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    run_command(serve, "wtal serve", with_edit_file(arguments))


def with_edit_file(arguments: Sequence[str]) -> list[str]:
    """The arguments with a file after --edit, where none is named.

    >>> with_edit_file(["--edit", "runs/mine"])
    ['--edit', 'corrections.json', 'runs/mine']
    """
    given = list(arguments)
    if "--edit" in given:
        after = given.index("--edit") + 1
        if not given[after : after + 1] or not given[after].endswith(".json"):
            given.insert(after, str(CORRECTIONS))
    return given


def serve(
    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN ...]")],
    videos: Path | None = None,
    features: Path | None = None,
    edit: Annotated[Path | None, tyro.conf.arg(metavar="[FILE.json]")] = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    cache: Path | None = None,
) -> None:
    """Show runs in a browser: every video with what the model sees and finds, and the settings to play with.

    The videos that are most in doubt, or have most errors, come first. Nothing is written unless --edit is given;
    corrections then go to a file of their own, which wtal train --corrections learns from. Ctrl-C ends it.

    Args:
        runs: Folders that wtal train made.
        videos: Folder of the video files; without it, all but the pictures is shown.
        features: Store of the videos' features, if it is no longer where the runs found it.
        edit: Let viewers correct, and save to this file, by default corrections.json; its history goes beside it.
        host: Address to listen at. Any but this machine's own asks for --token.
        port: Port to listen at; 0: any that is free.
        token: Secret that viewers have to know; they open http://HOST:PORT/?token=SECRET once.
        cache: Folder for copies of videos in forms that browsers do not play; by default in the user's cache folder.
    """
    import uvicorn
    from rich.console import Console

    from wtal.corrections import Corrections
    from wtal.report.runs import run_names
    from wtal.serve.app import Media, application
    from wtal.serve.served import Served

    if not runs:
        raise InputError("wanted at least one folder of a run that wtal train made")
    corrections = None if edit is None else Corrections(edit)
    media = Media(videos, cache)
    folders = list(dict.fromkeys(run.resolve() for run in runs))
    with showing("localizing") as progress:
        served = [
            Served.open(folder, name, features, progress=progress)
            for folder, name in zip(folders, run_names(folders), strict=True)
        ]
    app = application(served, media=media, corrections=corrections, host=host, token=token)
    with _listening(host, port) as listener:
        at = listener.getsockname()[1]
        shown = f"http://{f'[{host}]' if ':' in host else host}:{at}/"
        console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
        count = sum(len(one.found) for one in served)
        console.print(f"{count:,} videos at {shown}" + ("?token=… with your secret" if token else ""))
        if edit is not None:
            console.print(f"corrections are saved to {edit}")
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
        )
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # which is how it is meant to end
            return


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        what = f"cannot listen at {host}, port {port}: {why}"
        raise InputError(f"{what}; choose another --port (0: a free one)") from error
