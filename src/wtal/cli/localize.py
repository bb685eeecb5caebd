"""`wtal localize`: instances by a trained run in videos or features, or in activation maps that any model has saved."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import tyro

from wtal.cli import said
from wtal.cli.extract import use_threads
from wtal.cli.found import Output, Wanted, print_found, write_found
from wtal.cli.parse import run_command
from wtal.cli.progress import at_video, showing
from wtal.engine import Engine, EngineOptions
from wtal.errors import InputError, some
from wtal.formats import NAMES
from wtal.propose import PRESETS, Combine, Preset, Proposer
from wtal.timebase import TimeBase
from wtal.typed import choices

if TYPE_CHECKING:
    from wtal.localize import Localizer
    from wtal.looking import Journal, Seen
    from wtal.video.extractor import Extractor
    from wtal.video.snippets import Sampling

T = TypeVar("T")
_DEFAULT = Path("predictions.json")
#: What --combine chooses among, by name.
_WAYS = choices(Combine)
if TYPE_CHECKING:
    Way = str
    Form = str
else:
    Way = Literal[tuple(_WAYS)]
    Form = Literal[tuple(NAMES)]


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments, with the preset's or the run's values as the defaults of all settings."""
    settings, clock, whose = _defaults(arguments)

    def localize(
        run: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[RUN]")] = None,
        videos: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="[VIDEO ...]")] = (),
        tcam: Path | None = None,
        features: Path | None = None,
        split: str | None = None,
        output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
        form: Form | None = None,
        everything: Annotated[bool, tyro.conf.arg(name="all")] = False,
        precision: float | None = None,
        top: int = 20,
        skip_bad: bool = False,
        extractor: str | None = None,
        weights: Path | None = None,
        flow_weights: Path | None = None,
        flow: Literal["tvl1", "dis"] | None = None,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        threads: int | None = None,
        where: Annotated[EngineOptions, tyro.conf.arg(name="")] = EngineOptions(),  # noqa: B008  frozen
        preset: Preset | None = None,  # noqa: ARG001  read before all else
        combine: Way | None = None,  # noqa: ARG001  read before all else
        proposer: Annotated[Proposer, tyro.conf.arg(name=""), tyro.conf.AvoidSubcommands] = settings,
        timebase: Annotated[TimeBase, tyro.conf.arg(name="")] = clock,
    ) -> None:
        """Find instances, in seconds: RUN VIDEO ..., RUN --features STORE, or --tcam FILE.

        What comes out is a decision: instances that stand out, overlap little, and are more likely of their class than
        not, with that probability as confidence. It speaks of the class, not of the times. mAP is measured on the
        ranked list of all that may be instances: --all.

        Args:
            run: Folder that wtal train made; its model and settings are used.
            videos: Video files and folders of them; a table says what happens when.
            tcam: .npz file with names, lengths, tcam, video_scores and classes, as wtal.formats.maps says.
            features: Store of the videos to find instances in.
            split: Only the store's videos of this split.
            output: File to write, in the form that its ending says, or .html for a page to watch video files in. By
                default predictions.json, but nothing is written for video files. Of these each is kept when it is done:
                the same command goes on after Ctrl-C, and looks at new videos alone.
            form: The form, whatever the ending; with -o FOLDER, a file for each video.
            everything: Give the ranked list instead of a decision.
            precision: Decide such that this share of instances has the right class, such as 0.9.
            top: Instances of a video file that the table shows, the best ones.
            skip_bad: Leave video files out that cannot be read, name them at the end, and end with exit code 1.
            extractor: What turns video files into features, if the run does not know it.
            weights: I3D's RGB weights, of a run that was trained with them.
            flow_weights: I3D's flow weights, of a run that was trained with them.
            flow: Optical flow for I3D, if the run does not know it.
            device: Where networks compute.
            threads: Threads of the networks on the processor; by default all. Beside other work, fewer are faster.
            where: Where the work is done; of --tcam it is here.
            preset: Where the settings below start from: those that we recommend, the paper's, or those of the authors'
                released code. By default a run's own, or with --tcam the recommended ones.
            combine: How candidates become instances; --combine.* are the settings of the way that is chosen. Fusion
                and NMS keep the groups of what they replace.
            proposer: How maps become instances.
            timebase: How snippets lie on the video's clock; with a run only the offset can be set.
        """
        inputs = [bool(videos), features is not None, tcam is not None]
        if sum(inputs) != 1 or (run is None) != (tcam is not None):
            raise InputError("wanted one of: RUN VIDEO ..., or RUN --features STORE, or --tcam FILE without a run")
        asked = {"extractor": extractor, "weights": weights, "flow_weights": flow_weights, "flow": flow}
        for_videos = {**asked, "skip_bad": skip_bad or None}
        if not videos and (unused := [name for name, value in for_videos.items() if value is not None]):
            raise InputError(f"--{unused[0].replace('_', '-')} is for video files, and none is given")
        if split is not None and features is None:
            raise InputError(f"--split {split} is for a store: --features STORE")
        if everything and precision is not None:
            raise InputError("--precision is of a decision, and --all gives everything: leave one of them out")
        if form is not None and output is None:
            raise InputError(f"--form {form} is of what is written: name it with -o")
        sink = Output(output or _DEFAULT, form)
        if sink.page and not videos:
            raise InputError(f"{sink.path} is a page of video files; that of a store: wtal view RUN --features STORE")
        if threads is not None:
            use_threads(threads)
        if run is None:
            if tcam is not None:
                write_found(sink, *_with_maps(tcam, proposer, timebase), Wanted(everything, precision, None))
            return
        if replace(timebase, offset_snippets=clock.offset_snippets) != clock:
            raise InputError(
                "--fps and --stride-frames are known to the store and the run; set them when those are made"
            )
        localizer = _localizer(run, device, None if timebase == clock else timebase.offset_snippets)
        choice, engine = Wanted(everything, precision, localizer.confidence(proposer)), where.open()
        if features is not None:
            write_found(sink, _with_store(localizer, features, split, proposer, engine), localizer.classes, choice)
        else:
            _with_videos(
                localizer,
                run,
                videos,
                asked,
                sink if output else None,
                proposer,
                choice,
                device=device,
                top=top,
                skip_bad=skip_bad,
                engine=engine,
            )

    localize.__doc__ = (localize.__doc__ or "").replace(
        "Args:", f"Settings have the values of {whose}.\n\n        Args:", 1
    )
    run_command(localize, "wtal localize", arguments)


def _with_maps(tcam: Path, proposer: Proposer, timebase: TimeBase) -> "tuple[dict[str, Seen], Sequence[str]]":
    from wtal.formats.maps import read_maps
    from wtal.localize import localize_maps
    from wtal.looking import Seen

    maps = read_maps(tcam)
    with showing("localizing") as progress:
        found = localize_maps(maps.videos, proposer, timebase, progress=progress)
    seen = {name: Seen(one, timebase, len(maps.videos[name][0].tcam)) for name, one in found.items()}
    return seen, maps.classes


def _localizer(run: Path, device: str, offset: float | None) -> "Localizer":
    from wtal.localize import Localizer

    localizer = Localizer.load(run, device=device)
    if offset is None:
        return localizer
    return replace(localizer, card=replace(localizer.card, offset_snippets=offset))


def _with_store(
    localizer: "Localizer", features: Path, split: str | None, proposer: Proposer, engine: Engine
) -> "dict[str, Seen]":
    from wtal.data.store import Store
    from wtal.looking import Seen

    store = Store.open(features)
    with showing("localizing") as progress:
        found = localizer.store(store, split, proposer=proposer, engine=engine, progress=progress)
    offset = localizer.card.offset_snippets
    return {
        name: Seen(one, store.timebase(name).at(offset), store.length(name), store.duration_s(name))
        for name, one in found.items()
    }


def _with_videos(
    localizer: "Localizer",
    run: Path,
    videos: Sequence[Path],
    asked: dict[str, Any],
    output: Output | None,
    proposer: Proposer,
    choice: Wanted,
    *,
    device: str,
    top: int,
    skip_bad: bool,
    engine: Engine,
) -> None:
    from wtal.extract import find_videos
    from wtal.looking import Seen, look
    from wtal.video.extractor import ExtractorOptions

    files = find_videos(videos)
    if output is not None:
        output.check(files)
    given = {name: value for name, value in asked.items() if value is not None}
    if given and "extractor" not in given and localizer.card.extraction is not None:
        given["extractor"] = localizer.card.extraction.extractor
    opened = localizer.open_extractor(ExtractorOptions(**given) if given else None, device=device)
    if output is not None and output.page:
        _write_page(localizer, run, files, opened, output.path, proposer, choice, skip_bad=skip_bad)
        return
    journal = None if output is None else _journal(output.path, localizer, run, proposer, asked)
    found: dict[str, Seen] = {}
    broken: dict[str, InputError] = {}
    stopped = False
    try:
        with showing("looking", note=at_video) as progress:
            for name, seen in look(
                localizer,
                files,
                opened,
                proposer=proposer,
                journal=journal,
                skip_bad=skip_bad,
                engine=engine,
                progress=progress,
            ):
                if isinstance(seen, InputError):
                    broken[name] = seen
                else:
                    found[name] = seen
    except KeyboardInterrupt:
        stopped = True
    finally:  # what is done is given, whatever happened to the rest
        cut = None if localizer.teachers else proposer.cut
        for name, seen in found.items():
            print_found(str(files[name]), seen, choice(seen.instances), localizer.classes, top, cut)
        if output is not None and found:
            write_found(output, found, localizer.classes, choice)
        elif found:
            print(choice.said(), file=sys.stderr)
    if stopped:
        kept = "; the same command goes on from there" if journal is not None else ""
        print(f"stopped; {len(found)} of {len(files)} videos are done{kept}", file=sys.stderr)
        sys.exit(130)
    _end_with(broken, files)


def _end_with(broken: Mapping[str, InputError], files: Mapping[str, Path]) -> None:
    """Name the files that were left out; the exit code says that there are some."""
    for error in broken.values():
        print(f"left out: {said(str(error))}", file=sys.stderr)
    if broken:
        print(f"{len(broken)} of {len(files)} files cannot be read and are left out", file=sys.stderr)
        sys.exit(1)


def _write_page(
    localizer: "Localizer",
    run: Path,
    files: Mapping[str, Path],
    opened: "tuple[Extractor, Sampling]",
    page: Path,
    proposer: Proposer,
    choice: Wanted,
    *,
    skip_bad: bool,
) -> None:
    """Write a page with the videos and what is found in them; its slider begins where the decision is."""
    from wtal.looking import left_out
    from wtal.view import write_page
    from wtal.view.build import payloads_of_files

    made: list[dict[str, Any]] = []
    broken: dict[str, InputError] = {}
    with showing("looking", note=at_video) as progress:
        for name, path in files.items():
            try:
                made += payloads_of_files(
                    localizer, {name: path}, opened, page, run=run.name, proposer=proposer, progress=progress
                )
            except InputError as error:
                broken[name] = left_out(error, skip_bad)
    if made:
        write_page(page, [{**one, "least": choice.least if choice.confidence else 0.0} for one in made])
        print(f"{page}: {len(made)} videos; open it in a browser\n{choice.said()}", file=sys.stderr)
    _end_with(broken, files)


def _journal(
    output: Path, localizer: "Localizer", run: Path, proposer: Proposer, asked: Mapping[str, Any]
) -> "Journal":
    """What is kept beside the output of videos that are done; the settings say whether it is still of use."""
    import hashlib
    import json

    from wtal.card import model_folder
    from wtal.looking import Journal
    from wtal.typed import plain

    weights = hashlib.blake2b(digest_size=16)
    for path in sorted(model_folder(run).rglob("model.safetensors")):
        weights.update(path.read_bytes())
    card = plain(replace(localizer.card, calibration=None))  # another confidence needs no second look
    described = hashlib.blake2b(json.dumps(card, sort_keys=True).encode(), digest_size=16)
    settings = {
        "weights": weights.hexdigest(),
        "model": described.hexdigest(),
        "settings": plain(proposer),
        "extractor": {name: None if value is None else str(value) for name, value in asked.items()},
    }
    journal = Journal(output.with_name(f".{output.name}.done"), settings)
    if journal.changed:
        print(f"since {output} was made, other settings: {some(journal.changed)}; all videos anew", file=sys.stderr)
    return journal


def _defaults(arguments: Sequence[str]) -> tuple[Proposer, TimeBase, str]:
    """Where the settings start from, which must be known before the options are parsed, and whose they are."""
    proposer, clock = PRESETS["recommended"], TimeBase()
    whose = "the preset recommended; a RUN has its own: wtal localize RUN --help shows them"
    run = next((given for given in arguments if _holds_model(Path(given))), None)
    if run is not None:
        from wtal.card import read_card

        card = read_card(run)
        proposer, clock = card.proposer, TimeBase(offset_snippets=card.offset_snippets or 0.0)
        whose = f"the run {run}; wtal localize --help shows those of --tcam"
    if (preset := _chosen(arguments, "--preset", {name: name for name in PRESETS})) is not None:
        proposer, whose = PRESETS[preset], f"the preset {preset}"
    way = _chosen(arguments, "--combine", _WAYS)
    return (proposer.by(way) if way is not None else proposer), clock, whose


def _holds_model(folder: Path) -> bool:
    return (folder / "model.json").is_file() or (folder / "model" / "model.json").is_file()


def _chosen(arguments: Sequence[str], option: str, known: Mapping[str, T]) -> T | None:
    """What the option names, if it is given: the last one counts."""
    found = None
    for here, following in pairwise([*arguments, ""]):
        given, joined, value = here.partition("=")
        name = None if given != option else value if joined else following
        if name is not None and name not in known:
            raise InputError(f"{option} is {' or '.join(known)}, got {name!r}")
        found = found if name is None else known[name]
    return found
