"""`wtal localize`: instances by a trained run in videos or features, or in activation maps that any model has saved."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import tyro

from wtal.cli.parse import run_command
from wtal.cli.progress import at_video, showing
from wtal.errors import InputError
from wtal.propose import PRESETS, Combine, Preset, Proposer
from wtal.timebase import TimeBase
from wtal.typed import choices

if TYPE_CHECKING:
    from wtal.instances import Instances
    from wtal.localize import Localizer

T = TypeVar("T")
_DEFAULT = Path("predictions.json")
#: What --combine chooses among, by name.
_WAYS = choices(Combine)
if TYPE_CHECKING:
    Way = str
else:
    Way = Literal[tuple(_WAYS)]


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments, with the preset's or the run's values as the defaults of all settings."""
    settings, clock = _defaults(arguments)

    def localize(
        run: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[RUN]")] = None,
        videos: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="[VIDEO ...]")] = (),
        tcam: Path | None = None,
        features: Path | None = None,
        split: str | None = None,
        output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
        top: int = 20,
        extractor: str | None = None,
        weights: Path | None = None,
        flow_weights: Path | None = None,
        flow: Literal["tvl1", "dis"] | None = None,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        preset: Preset | None = None,  # noqa: ARG001  read before all else
        combine: Way | None = None,  # noqa: ARG001  read before all else
        proposer: Annotated[Proposer, tyro.conf.arg(name=""), tyro.conf.AvoidSubcommands] = settings,
        timebase: Annotated[TimeBase, tyro.conf.arg(name="")] = clock,
    ) -> None:
        """Find instances, in seconds: RUN VIDEO ..., RUN --features STORE, or --tcam FILE.

        Args:
            run: Folder that wtal train made; its model and settings are used.
            videos: Video files to find instances in; a table says what happens when.
            tcam: .npz file with names, lengths, tcam, video_scores and classes (see docs/how-to/plug-in.md).
            features: Store of the videos to find instances in.
            split: Only the store's videos of this split.
            output: ActivityNet JSON, or CSV if the name ends in .csv; by default predictions.json, but nothing is
                written for video files.
            top: Instances of a video file that the table shows, the most confident ones.
            extractor: What turns video files into features, if the run does not know it.
            weights: I3D's RGB weights, of a run that was trained with them.
            flow_weights: I3D's flow weights, of a run that was trained with them.
            flow: Optical flow for I3D, if the run does not know it.
            device: Where networks compute.
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
        if not videos and (unused := [name for name, value in asked.items() if value is not None]):
            raise InputError(f"--{unused[0].replace('_', '-')} is for video files, and none is given")
        if split is not None and features is None:
            raise InputError(f"--split {split} is for a store: --features STORE")
        if run is None:
            if tcam is not None:
                _with_maps(tcam, output or _DEFAULT, proposer, timebase)
            return
        if replace(timebase, offset_snippets=clock.offset_snippets) != clock:
            raise InputError(
                "--fps and --stride-frames are known to the store and the run; set them when those are made"
            )
        localizer = _localizer(run, device, None if timebase == clock else timebase.offset_snippets)
        if features is not None:
            _with_store(localizer, features, split, output or _DEFAULT, proposer)
        else:
            _with_videos(localizer, videos, asked, output, proposer, device=device, top=top)

    run_command(localize, "wtal localize", arguments)


def _with_maps(tcam: Path, output: Path, proposer: Proposer, timebase: TimeBase) -> None:
    from wtal.formats.maps import read_maps
    from wtal.localize import localize_maps

    maps = read_maps(tcam)
    with showing("localizing") as progress:
        found = localize_maps(maps.videos, proposer, timebase, progress=progress)
    _write(output, found, maps.classes)


def _localizer(run: Path, device: str, offset: float | None) -> "Localizer":
    from wtal.localize import Localizer

    localizer = Localizer.load(run, device=device)
    if offset is None:
        return localizer
    return replace(localizer, card=replace(localizer.card, offset_snippets=offset))


def _with_store(localizer: "Localizer", features: Path, split: str | None, output: Path, proposer: Proposer) -> None:
    from wtal.data.store import Store

    store = Store.open(features)
    with showing("localizing") as progress:
        found = localizer.store(store, split, proposer=proposer, progress=progress)
    _write(output, found, localizer.classes)


def _with_videos(
    localizer: "Localizer",
    videos: Sequence[Path],
    asked: dict[str, Any],
    output: Path | None,
    proposer: Proposer,
    *,
    device: str,
    top: int,
) -> None:
    from wtal.extract import find_videos
    from wtal.video.decode import probe
    from wtal.video.extractor import ExtractorOptions

    files = find_videos(videos)
    lengths = {name: probe(path).duration_s or 0.0 for name, path in files.items()}
    given = {name: value for name, value in asked.items() if value is not None}
    if given and "extractor" not in given and localizer.card.extraction is not None:
        given["extractor"] = localizer.card.extraction.extractor
    opened = localizer.open_extractor(ExtractorOptions(**given) if given else None, device=device)
    found: dict[str, Instances] = {}
    with showing("looking", note=at_video) as progress:
        for name, path in files.items():
            done = sum(lengths[other] for other in found)

            def of_all(step: str, seconds: float, _: float, detail: Mapping[str, Any], done: float = done) -> None:
                progress(step, done + seconds, sum(lengths.values()), detail)

            found[name] = localizer.video(path, opened, proposer=proposer, progress=of_all)
    for name, instances in found.items():
        _print_table(str(files[name]), instances, localizer.classes, top)
    if output is not None:
        _write(output, found, localizer.classes)


def _print_table(title: str, found: "Instances", classes: Sequence[str], top: int) -> None:
    """What happens when: the most confident instances, in the order of time."""
    import numpy as np

    from wtal.cli.table import print_table

    best = found[np.sort(np.argsort(-found.scores, kind="stable")[:top])]
    more = f" (the {len(best)} most confident of {len(found)})" if len(best) < len(found) else ""
    rows = []
    for row in np.lexsort((best.ends, best.starts)):
        start, end = best.segments[row]
        rows.append((_clock(start), _clock(end), classes[best.class_ids[row]], f"{best.scores[row]:.3f}"))
    if rows:
        print_table(("from", "to", "what", "score"), rows, title=f"{title}{more}", left=(2,))
    else:
        print(f"{title}: nothing found")


def _clock(seconds: float) -> str:
    """Seconds as a player shows them.

    >>> _clock(3723.41)
    '1:02:03.4'
    """
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:{minutes:02d}" if hours else f"{minutes}") + f":{rest / 10:04.1f}"


def _write(output: Path, found: "dict[str, Instances]", classes: Sequence[str]) -> None:
    """Write the instances and say what came out."""
    from rich.console import Console

    from wtal.formats import write_predictions

    write_predictions(output, found, classes)
    total = sum(map(len, found.values()))
    without = sum(not len(instances) for instances in found.values())
    Console(stderr=True).print(
        f"{total:,} instances in {len(found):,} videos"
        + (f" ({without:,} videos without any)" if without else "")
        + f" → {output}\nscore them:  wtal evaluate {output} GT.json",
        highlight=False,
        soft_wrap=True,
    )


def _defaults(arguments: Sequence[str]) -> tuple[Proposer, TimeBase]:
    """Where the settings start from, which must be known before the options are parsed."""
    proposer, clock = PRESETS["recommended"], TimeBase()
    run = next((given for given in arguments if _holds_model(Path(given))), None)
    if run is not None:
        from wtal.localize import read_card

        card = read_card(run)
        proposer, clock = card.proposer, TimeBase(offset_snippets=card.offset_snippets or 0.0)
    proposer = _chosen(arguments, "--preset", PRESETS) or proposer
    way = _chosen(arguments, "--combine", _WAYS)
    return (proposer.by(way) if way is not None else proposer), clock


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
