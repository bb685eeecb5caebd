"""`wtal localize`: instances from a trained run and features, or from activation maps that any model has saved."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from wtal.errors import InputError
from wtal.propose import PRESETS, Proposer
from wtal.timebase import TimeBase

if TYPE_CHECKING:
    from wtal.instances import Instances


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments, with the preset's or the run's values as the defaults of all settings."""
    settings, clock = _defaults(arguments)

    def localize(
        run: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[RUN]")] = None,
        tcam: Path | None = None,
        features: Path | None = None,
        split: str | None = None,
        output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("predictions.json"),
        device: Literal["auto", "cpu", "cuda"] = "auto",
        preset: Literal["paper", "released"] | None = None,  # noqa: ARG001  read before all else
        proposer: Annotated[Proposer, tyro.conf.arg(name="")] = settings,
        timebase: Annotated[TimeBase, tyro.conf.arg(name="")] = clock,
    ) -> None:
        """Find instances and write them in seconds: RUN --features STORE, or --tcam FILE.

        Args:
            run: Folder that wtal train made; its model and settings are used.
            tcam: .npz file with names, lengths, tcam, video_scores and classes (see docs/how-to/plug-in.md).
            features: Store of the videos to find instances in.
            split: Only the store's videos of this split.
            output: ActivityNet JSON, or CSV if the name ends in .csv.
            device: Where the run's model computes.
            preset: Where the settings below start from: the paper's, or those of the authors' released code. By
                default a run's own, else the paper's.
            proposer: How maps become instances.
            timebase: How snippets lie on the video's clock; of a store's videos only the offset can be set.
        """
        if (run is None) == (tcam is None):
            got = "both" if run else "neither"
            raise InputError(f"wanted either a trained RUN with --features STORE, or --tcam FILE; got {got}")
        if (run is None) != (features is None):
            needs = f"{run} needs --features STORE" if run else f"--features {features} needs a trained RUN"
            raise InputError(f"{needs}: wtal localize RUN --features STORE")
        if run is not None and features is not None:
            if replace(timebase, offset_snippets=clock.offset_snippets) != clock:
                raise InputError("--fps and --stride-frames are known to the store; set them when it is converted")
            offset = None if timebase == clock else timebase.offset_snippets
            _with_model(run, features, split, output, device, proposer, offset)
        elif tcam is not None:
            _with_maps(tcam, output, proposer, timebase)

    tyro.cli(localize, prog="wtal localize", args=list(arguments))


def _with_maps(tcam: Path, output: Path, proposer: Proposer, timebase: TimeBase) -> None:
    from wtal.formats.tcam import read_tcams
    from wtal.localize import localize_maps

    maps = read_tcams(tcam)
    _write(output, localize_maps(maps.videos, proposer, timebase, track=_track), maps.classes)


def _with_model(
    run: Path, features: Path, split: str | None, output: Path, device: str, proposer: Proposer, offset: float | None
) -> None:
    from wtal.data.store import Store
    from wtal.localize import Localizer

    store = Store.open(features)
    localizer = Localizer.load(run, device=device)
    if offset is not None:
        localizer = replace(localizer, card=replace(localizer.card, offset_snippets=offset))
    _write(output, localizer.store(store, split, proposer=proposer, track=_track), localizer.classes)


def _track(videos: Iterable[Any]) -> Iterable[Any]:
    from rich.console import Console
    from rich.progress import track

    return track(videos, "Localizing", console=Console(stderr=True), transient=True)


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
    proposer, clock = PRESETS["paper"], TimeBase()
    run = next((given for given in arguments if (Path(given) / "model" / "model.json").is_file()), None)
    if run is not None:
        from wtal.localize import read_card

        card = read_card(run)
        proposer, clock = card.proposer, TimeBase(offset_snippets=card.offset_snippets or 0.0)
    for here, following in pairwise([*arguments, ""]):
        name = following if here == "--preset" else here.removeprefix("--preset=") if "--preset=" in here else None
        if name is not None:
            if name not in PRESETS:
                raise InputError(f"--preset is {' or '.join(PRESETS)}, got {name!r}")
            proposer = PRESETS[name]
    return proposer, clock
