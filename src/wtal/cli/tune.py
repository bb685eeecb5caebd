"""`wtal tune`: choose the test-time settings of trained runs on videos whose instances are known."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from wtal.cli.parse import run_command
from wtal.cli.progress import showing
from wtal.cli.table import print_table
from wtal.errors import InputError
from wtal.files import written_whole
from wtal.progress import tracked

if TYPE_CHECKING:
    from wtal.data.store import Store
    from wtal.tune import Known, Settings, TunedSettings


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    run_command(_tune, "wtal tune", arguments)


def _tune(
    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN ...]")],
    data: Path,
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("tuned.yaml"),
    split: str = "train",
    held_out: bool = False,
    protocols: tuple[str, ...] = ("thumos14", "thumos14-wtalc"),
    grid: Path | None = None,
    folds: int = 5,
    rounds: int = 3,
    workers: int | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """Choose how maps become instances: thresholds, boundaries, fusion, offset. The models stay as they are.

    One setting after the other takes the best of its values. The training videos are the ones to choose on, if their
    instances are known: no loss has seen them. But a model's activations are higher on the videos it was trained
    on: choose on --held-out ones where you can. Never choose on videos that you report figures for.

    Args:
        runs: Folders that wtal train made with one recipe, such as several seeds; the choice is made for their mean.
        data: Store of features with the true instances.
        output: YAML file for the chosen settings, to be put under test: in a recipe.
        split: The videos to choose on.
        held_out: The runs are folds (wtal train --fold 1/2, --fold 2/2): choose on the videos that each was not trained
            on, all together as if they were of one run.
        protocols: Evaluation protocols whose mean of average mAP is to grow.
        grid: YAML file with the values to try, by setting such as cut.thresholds; by default a grid for maps of
            RSKP's kind.
        folds: In so many parts of the videos the choice is checked: each part is localized with settings chosen on
            the others. 0 leaves that out, and takes a sixth of the time.
        rounds: Turns through all settings at most.
        workers: Processes; by default one per core.
        device: Where the models compute.
    """
    import os

    from wtal.data.store import Store
    from wtal.tune import tune as choose

    if not runs:
        raise InputError("name at least one RUN, a folder that wtal train made")
    store = Store.open(data)
    asked = _held_out(runs, store, split) if held_out else [store.names(split)] * len(runs)
    known, start = _known(runs, asked, store, protocols, device)
    if held_out:
        known = known.as_one_run()
    with showing("tuning") as progress:
        choice = choose(
            known,
            start,
            grid=None if grid is None else _read_grid(grid),
            rounds=rounds,
            folds=folds,
            workers=workers or os.cpu_count() or 1,
            progress=progress,
        )
    with written_whole(output) as file:
        file.write(_as_yaml(choice))
    _print(choice, f"{len(known.truth.videos)} {'held-out ' if held_out else ''}videos of split {split}")
    print(f"written to {output}")


def _held_out(runs: Sequence[Path], store: "Store", split: str) -> list[tuple[str, ...]]:
    """The videos that each run was not trained on; no two runs may have held out the same one."""
    from wtal.card import read_card
    from wtal.training.run import Run

    parts: list[tuple[str, ...]] = []
    for run in runs:
        read_card(run)  # which says so if there is no run
        data = (Run(run).environment() or {}).get("data", {})
        part = data.get("held_out")
        if not part:
            raise InputError(f"{run} does not know of videos that it held out: train it with wtal train --fold 1/2")
        number, of = map(int, part.split("/"))
        fold = store.fold(number, of, split=split)
        if fold.fingerprint != data["fingerprint"]:
            raise InputError(f"{run} was trained on another data set than {store.path}")
        again = next((r for r, names in zip(runs, parts, strict=False) if set(names) & set(fold.names("test"))), None)
        if again is not None:
            raise InputError(f"{run} and {again} have held out the same videos; name each fold once")
        parts.append(fold.names("test"))
    return parts


def _known(
    runs: Sequence[Path], asked: Sequence[tuple[str, ...]], store: "Store", protocols: tuple[str, ...], device: str
) -> "tuple[Known, Settings]":
    """The maps of the runs on the videos that each is asked about, the truth, and the first run's settings."""
    from wtal.card import read_card
    from wtal.localize import Localizer
    from wtal.tune import Known, Settings

    cards = [read_card(run) for run in runs]
    for run, card in zip(runs, cards, strict=True):
        if card.classes != store.classes:
            raise InputError(f"{run} knows other classes than {store.path}")
        if card.pool is not None:
            raise InputError(f"{run} is a detector, whose boxes are not cut from maps: tune its teacher, then train it")
    truth = store.truth()
    asked = [tuple(name for name in names if name in truth.videos) for names in asked]
    names = list(dict.fromkeys(name for some in asked for name in some))
    if not any(len(truth.videos[name].instances) for name in names):
        raise InputError(f"{store.path} knows no instances of these videos, so there is nothing to choose by")
    maps = []
    for run, some in zip(runs, asked, strict=True):
        localizer = Localizer.load(run, device=device)
        with showing("localizing") as progress:
            shown = tracked(some, "localizing", progress)
            maps.append({name: localizer.maps(name, store.features(name)) for name in shown})
    clocks = {name: store.timebase(name) for name in names}
    offset = cards[0].offset_snippets
    if offset is None:
        offset = clocks[names[0]].offset_snippets
    videos = replace(truth, videos={name: truth.videos[name] for name in names})
    known = Known(tuple(maps), clocks, {name: store.duration_s(name) for name in names}, videos, protocols)
    return known, Settings(cards[0].proposer, offset)


def _read_grid(path: Path) -> dict[str, Any]:
    from wtal.reading import read_yaml

    given = read_yaml(path)
    by_name = isinstance(given, dict) and all(isinstance(name, str) for name in given)
    if not by_name or not all(isinstance(values, list) and values for values in given.values()):
        raise InputError(f"{path} must hold a list of values by setting, such as combine.temperature: [0.03, 0.1]")
    return given


def _as_yaml(choice: "TunedSettings") -> str:
    import yaml

    from wtal.typed import plain

    settings = choice.settings
    test = {"test": {"proposer": plain(settings.proposer), "offset_snippets": settings.offset_snippets}}
    return yaml.safe_dump(test, sort_keys=False, default_flow_style=None, width=120)


def _print(choice: "TunedSettings", videos: str) -> None:

    columns = {"before": choice.before, "chosen": choice.after}
    if choice.held_out:
        columns["cross-validated"] = choice.held_out
    rows = [(name, *(f"{scores[name]:.1f}" for scores in columns.values())) for name in choice.before]
    print_table(("protocol", *columns), rows, title=f"average mAP on the {videos}")
