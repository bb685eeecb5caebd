"""`wtal view`: a page with videos and what a run finds in them, beside what it sees."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from wtal.cli.parse import run_command
from wtal.cli.progress import at_video, showing
from wtal.errors import InputError

if TYPE_CHECKING:
    from wtal.localize import Localizer
    from wtal.view.records import Record

#: videos of a store that a page shows if none is named: more make it slow to open
MOST = 20


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    run_command(view, "wtal view", arguments)


def view(
    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
    shown: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="[VIDEO ...]")] = (),
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("view.html"),
    embed: bool = False,
    features: Path | None = None,
    split: str | None = None,
    videos: Path | None = None,
    truth: Path | None = None,
    extractor: str | None = None,
    weights: Path | None = None,
    flow_weights: Path | None = None,
    flow: Literal["tvl1", "dis"] | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """Write a page to watch: the video, what was found when, what it was made from, and what the model sees.

    VIDEOs are files, or names in the store that --features gives. Without any, the test videos of the run's own data
    set are shown. The page is one file that needs no network; it links to the videos, or has them inside (--embed).

    Args:
        run: Folder that wtal train made.
        shown: Video files and folders of them, or names of videos in the store.
        output: The page to write; open it in any browser.
        embed: Put the videos into the page, as copies that browsers play where they would not play the file (.avi).
        features: Store of the videos' features; by default the run's own data set, where no files are given.
        split: Only the store's videos of this split; by default those that were tested on, if there are any.
        videos: Folder with the files of the store's videos, to play them.
        truth: The true instances of video files, in any form that wtal reads; a store has its own.
        extractor: What turns video files into features, if the run does not know it.
        weights: I3D's RGB weights, of a run that was trained with them.
        flow_weights: I3D's flow weights, of a run that was trained with them.
        flow: Optical flow for I3D, if the run does not know it.
        device: Where networks compute.
    """
    import sys

    from wtal.localize import Localizer
    from wtal.view import write_page

    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{output} must end with .html: a page is written")
    files = [Path(one) for one in shown] if features is None and shown else []
    asked = {"extractor": extractor, "weights": weights, "flow_weights": flow_weights, "flow": flow}
    given = {name: value for name, value in asked.items() if value is not None}
    idle = {"--split": split, "--videos": videos} if files else {"--truth": truth, **given}
    for option, value in idle.items():
        if value is not None:
            kind = "names in a store" if files else "video files"
            raise InputError(f"--{option.lstrip('-').replace('_', '-')} is for {kind}, and none are given")
    localizer = Localizer.load(run, device=device)
    if files:
        made = of_files(localizer, run, files, output, given, embed=embed, truth=truth, device=device)
    else:
        made = _of_store(localizer, run, shown, features, split, output, videos, embed=embed)
    write_page(output, made)
    print(
        f"{output}: {len(made)} video{'s' * (len(made) != 1)}, {_size(output)}; open it in a browser", file=sys.stderr
    )
    unplayed = [one["name"] for one in made if one["video"]["url"] and one["video"]["type"] is None]
    if unplayed:
        print(
            f"browsers do not play the file of {unplayed[0]}"
            + (f" and {len(unplayed) - 1} more" if unplayed[1:] else "")
            + ": with --embed the page has a copy that they do play",
            file=sys.stderr,
        )


def of_files(
    localizer: "Localizer",
    run: Path,
    places: Sequence[Path],
    page: Path,
    given: Mapping[str, Any],
    *,
    embed: bool,
    truth: Path | None,
    device: str,
) -> "list[Record]":
    """The payloads of video files."""
    from wtal.extract import find_videos
    from wtal.formats import read
    from wtal.video.extractor import ExtractorOptions
    from wtal.view.build import payloads_of_files

    missing = next((place for place in places if not place.exists()), None)
    if missing is not None:
        raise InputError(f"{missing} is not there; if it is the name of a video in a store, say --features STORE")
    files = find_videos(places)
    known = None if truth is None else read(truth, localizer.classes)
    if given and "extractor" not in given and localizer.card.extraction is not None:
        given = {**given, "extractor": localizer.card.extraction.extractor}
    options = ExtractorOptions(**given) if given else None
    opened = localizer.open_extractor(options, device=device)
    with showing("looking", note=at_video) as progress:
        return payloads_of_files(
            localizer, files, opened, page, run=run.name, embed=embed, truth=known, progress=progress
        )


def _of_store(
    localizer: "Localizer",
    run: Path,
    names: Sequence[str],
    features: Path | None,
    split: str | None,
    page: Path,
    videos: Path | None,
    *,
    embed: bool,
) -> "list[Record]":
    import sys

    from wtal.extract import find_videos
    from wtal.training.run import Run
    from wtal.view.build import payloads_of_store, store_of
    from wtal.view.taught import Taught

    if embed and videos is None:
        raise InputError("--embed needs the video files: --videos FOLDER")
    folder = Run(run)
    store = store_of(folder, features)
    chosen = list(names)
    if not chosen:
        tested = split or (folder.recipe.test_split if folder.begun else None)
        chosen = list(store.names(tested if tested and (split or store.has_split(tested)) else None))
        if len(chosen) > MOST:
            print(f"the first {MOST} of {len(chosen)} videos; name others to see them", file=sys.stderr)
            chosen = chosen[:MOST]
    files = {} if videos is None else find_videos([videos])
    with showing("looking") as progress:
        return payloads_of_store(
            localizer,
            store,
            chosen,
            page,
            run=run.name,
            embed=embed,
            files=files,
            taught=Taught(run, localizer.classes),
            progress=progress,
        )


def _size(path: Path) -> str:
    mega = path.stat().st_size / 1e6
    return f"{mega:.1f} MB" if mega >= 0.1 else f"{1000 * mega:.0f} kB"
