"""`wtal data`: published layouts into a store, a doctor for either, and generated data sets."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wtal.cli.parse import described, run_command
from wtal.cli.progress import showing
from wtal.cli.table import print_table, printable
from wtal.data.layouts import LAYOUTS
from wtal.errors import InputError, did_you_mean
from wtal.timebase import TimeBase

if TYPE_CHECKING:
    from rich.console import Console

    from wtal.data.findings import Finding
    from wtal.data.source import Given

    LayoutName = str
else:
    LayoutName = Literal[LAYOUTS]
Out = Annotated[Path, tyro.conf.arg(aliases=["-o"])]


@dataclass(frozen=True)
class Tagging:
    """Files that say what the videos show."""

    gt: Path | None = None
    """ActivityNet-style JSON with the annotations, where it does not lie in the source; without a CSV, the tags too."""
    tags: Path | None = None
    """CSV video,label[,split][,duration_s][,fps] with one row per tag."""
    classes: Path | None = None
    """Text file with one class name per line, in the order of their numbers; by default all tags, sorted."""

    def given(self, timebase: TimeBase | None = None) -> "Given":
        """The same, as the library takes it."""
        from wtal.data.feature_files import read_lines
        from wtal.data.source import Given

        names = tuple(read_lines(self.classes)) if self.classes else None
        return Given(self.gt, self.tags, names, timebase or TimeBase())


def main(arguments: Sequence[str]) -> None:
    """Run the sub-command that the arguments name."""
    command, *rest = arguments or ["--help"]
    if command in ("-h", "--help"):
        print(_help())
    elif command in SUBCOMMANDS:
        run_command(SUBCOMMANDS[command], f"wtal data {command}", rest)
    else:
        raise InputError(f"unknown command wtal data {command}{did_you_mean(command, SUBCOMMANDS)}\n{_help()}")


def _convert(
    source: tyro.conf.Positional[Path],
    out: Out,
    layout: LayoutName | None = None,
    tagging: Annotated[Tagging, tyro.conf.arg(name="")] = Tagging(),  # noqa: B008  frozen
    timebase: Annotated[TimeBase, tyro.conf.arg(name="")] = TimeBase(),  # noqa: B008  frozen
    dtype: Literal["float32", "float16"] = "float32",
    trim: bool = False,
    stretch: bool = False,
    skip_bad: bool = False,
    overwrite: bool = False,
) -> None:
    """Read a data set in a published layout and write it as a store, atomically.

    Args:
        source: Folder (or .h5 file) of the data set.
        out: Folder to write the store to.
        layout: How the source is laid out; by default it is guessed from the files.
        tagging: Files that say what the videos show.
        timebase: The features' clock.
        dtype: Type of the stored features; float16 halves the space.
        trim: Cut RGB and flow of a video to the shorter one.
        stretch: Let each video's snippets fill its duration (features resampled to a fixed number per video).
        skip_bad: Leave broken videos out instead of stopping at the first.
        overwrite: Replace a store that is already there.
    """
    from wtal.data import convert as converting
    from wtal.data.layouts import read_source

    listed = read_source(source, layout, tagging.given(timebase))
    with showing("converting") as progress:
        findings = converting.convert(
            listed,
            out,
            trim=trim,
            stretch=stretch,
            skip_bad=skip_bad,
            dtype=dtype,
            overwrite=overwrite,
            progress=progress,
        )
    print_findings(findings)
    print_store(out)


def _check(
    source: tyro.conf.Positional[Path],
    layout: LayoutName | None = None,
    tagging: Annotated[Tagging, tyro.conf.arg(name="")] = Tagging(),  # noqa: B008  frozen
    timebase: Annotated[TimeBase, tyro.conf.arg(name="")] = TimeBase(),  # noqa: B008  frozen
    trim: bool = False,
) -> None:
    """Say everything that is wrong with a store or a data set, before hours are lost; ends with 1 on errors.

    Args:
        source: A store, or the folder (or .h5 file) of a data set; of a store, the other options are not used.
        layout: How the source is laid out; by default it is guessed from the files.
        tagging: Files that say what the videos show.
        timebase: The features' clock.
        trim: RGB and flow of different length are fine, since convert will get --trim.
    """
    from wtal.data import check as checking
    from wtal.data.findings import only_errors
    from wtal.data.layouts import read_source
    from wtal.data.store import Store, is_store

    with showing("checking") as progress:
        if is_store(source):
            findings = checking.check_store(Store.open(source), progress=progress)
        else:
            listed = read_source(source, layout, tagging.given(timebase))
            findings = checking.check_source(listed, trim=trim, progress=progress)
    print_findings(findings)
    console().print(_verdict(findings))
    if only_errors(findings):
        raise SystemExit(1)


def _synthesize(
    out: Out,
    gt: Path | None = None,
    train_videos: int = 100,
    test_videos: int = 50,
    n_classes: int = 10,
    background_only: float = 0.0,
    dims: int = 256,
    noise: float = 1.2,
    dtype: Literal["float32", "float16"] = "float32",
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Make a feature set with known truth, from scratch or for the videos of an annotation file.

    Args:
        out: Folder to write the store to.
        gt: ActivityNet-style JSON whose videos, durations and actions to use; the next four options are then not used.
        train_videos: Number of training videos.
        test_videos: Number of test videos.
        n_classes: Number of classes.
        background_only: Share of videos without any action.
        dims: Length of a snippet's feature vector.
        noise: Size of the noise, where an action's salient part has 1; wtal demo has 1.8.
        dtype: Type of the stored features; float16 halves the space.
        seed: Same seed, same features.
        overwrite: Replace a store that is already there.
    """
    import numpy as np

    from wtal.data import convert as converting
    from wtal.data.synthetic import Difficulty, synthetic_source
    from wtal.data.synthetic_annotations import random_annotations
    from wtal.data.truth import read_with_findings

    rng = np.random.default_rng(seed)
    said: list[Finding] = []
    if gt is not None:
        annotations, said = read_with_findings(gt)
    else:
        annotations = random_annotations(
            rng, n_train=train_videos, n_test=test_videos, n_classes=n_classes, background_only=background_only
        )
    source = synthetic_source(annotations, rng, n_dims=dims, difficulty=Difficulty(noise=noise))
    with showing("generating") as progress:
        found = converting.convert(source, out, dtype=dtype, overwrite=overwrite, progress=progress)
    print_findings(said + found)
    print_store(out)


def _repair(store: tyro.conf.Positional[Path]) -> None:
    """Mend a store after a crash or a damaged disk; says what is mended, and ends with 1 if videos are lost.

    Args:
        store: The store's folder.
    """
    from wtal.data import repair as repairing
    from wtal.data.findings import only_errors

    with showing("checking") as progress:
        findings = repairing.repair(store, progress=progress)
    print_findings(findings)
    console().print(_verdict(findings))
    if only_errors(findings):
        raise SystemExit(1)


SUBCOMMANDS: dict[str, Callable[..., None]] = {
    "convert": _convert,
    "check": _check,
    "repair": _repair,
    "synthesize": _synthesize,
}


def _help() -> str:
    width = max(map(len, SUBCOMMANDS))
    lines = [
        f"  {name:<{width}}  {(inspect.getdoc(command) or '').partition(chr(10))[0]}"
        for name, command in SUBCOMMANDS.items()
    ]
    usage = "usage: wtal data COMMAND [options]        (wtal data COMMAND --help for the options)"
    return "\n".join(
        [usage, "", described("Data sets: convert, check, mend, generate.", "wtal data"), "", "commands:", *lines]
    )


def console() -> "Console":
    """Where results are printed."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def print_findings(findings: "list[Finding]") -> None:
    """The findings, the worst first."""
    from rich.markup import escape

    from wtal.errors import as_options

    colour = {"error": "red", "warning": "yellow", "note": "cyan"}
    for finding in sorted(findings, key=lambda finding: list(colour).index(finding.severity)):
        shade = colour[finding.severity]
        console().print(f"[{shade}]{finding.severity}[/{shade}] {escape(printable(as_options(str(finding))))}")


def _verdict(findings: "list[Finding]") -> str:
    counts = {kind: sum(finding.severity == kind for finding in findings) for kind in ("error", "warning", "note")}
    said = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n)
    return said or "nothing is wrong"


def print_store(path: Path) -> None:
    """What a store holds."""
    from wtal.data.store import Store

    store: Store = Store.open(path)
    rows = []
    for split in ("train", "val", "test"):
        records = [record for record in store.records.values() if record.split == split]
        if records:
            snippets = sum(store.length(record.name) for record in records)
            used = {tag for record in records for tag in record.tags}
            rows.append((split, str(len(records)), str(snippets), f"{len(used)} of {len(store.classes)}"))
    print_table(("split", "videos", "snippets", "tagged classes"), rows, title=str(path))
    streams = " + ".join(f"{stream} {width}" for stream, width in store.streams.items())
    truth = "with" if store.has_truth else "without"
    console().print(f"{streams} dimensions, {store.dtype}, {truth} true instances (gt.json)")
