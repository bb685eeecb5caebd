"""`wtal calibrate`: fit a run's confidence to tagged videos that it has not learned from."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from wtal.cli.parse import run_command
from wtal.cli.progress import showing
from wtal.cli.table import print_table
from wtal.errors import InputError

if TYPE_CHECKING:
    from wtal.data.store import Store
    from wtal.evaluate.calibration import Calibration, Judged
    from wtal.instances import Instances


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    run_command(calibrate, "wtal calibrate", arguments)


def calibrate(
    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
    features: Path,
    split: str = "test",
    dry_run: bool = False,
) -> None:
    """Fit the confidence that wtal localize gives to the tags of videos that the run has not learned from.

    An instance of a class that its video does not carry is wrong for certain, so tags alone tell how often a class is
    right. They must name all classes that a video shows; videos without a tag are left out. Training does this by
    itself where test videos carry tags, or the recipe has test.confidence_folds. Confidence speaks of the class, not of
    the times.

    Args:
        run: Folder that wtal train made; the confidence is written into its model.
        features: Store of the videos.
        split: The store's videos of this split.
        dry_run: Show what would be fitted, and write nothing.
    """
    from wtal.card import model_folder, read_card, write_card
    from wtal.data.store import Store
    from wtal.evaluate.calibration import fit, judged

    card, store = read_card(run), Store.open(features)
    if card.classes != store.classes:
        raise InputError(f"{run} knows {len(card.classes)} classes, {features} has other ones ({len(store.classes)})")
    evidence = judged(_found(run, store, split), store.tag_ids())
    fitted = fit(evidence, f"the tags of the {split} videos of {store.path.name}")
    if fitted is None:
        raise InputError(f"no video of split {split} in {features} carries a tag, or nothing is found in those that do")
    _print(fitted, evidence)
    if not dry_run:
        write_card(model_folder(run), replace(card, calibration=fitted))
        print(f"written into {model_folder(run) / 'model.json'}; wtal localize {run} uses it")


def _found(run: Path, store: "Store", split: str) -> "dict[str, Instances]":
    """The ranked lists of the split's videos; those of a run's own test videos are there already."""
    from wtal.localize import Localizer
    from wtal.training.run import Run

    trained = Run(run)
    about = trained.environment() if trained.begun else None
    if about is not None and about["data"].get("fingerprint") == store.fingerprint:
        if split == trained.recipe.train_split:
            raise InputError(
                f"{run} was trained on the videos of split {split}, and is surer of them than of any others: give "
                "videos that it has not learned from"
            )
        if split == trained.recipe.test_split and (found := trained.predictions(store.classes)) is not None:
            return found
    with showing("localizing") as progress:
        return Localizer.load(run).store(store, split, progress=progress)


def _print(fitted: "Calibration", evidence: "Judged") -> None:
    from wtal.evaluate.calibration import reliability

    print(f"{len(evidence)} instances in {fitted.videos} videos, {100 * evidence.right.mean():.0f} % of a right class")
    checked = reliability(evidence)
    if checked is not None:
        rows = [
            (f"{100 * mean:.0f} %", f"{100 * share:.0f} %", str(n))
            for mean, share, n in zip(checked.mean, checked.share, checked.n, strict=True)
        ]
        title = "\nconfidence of a fit to other videos (cross-validated), and what comes true"
        print_table(("confidence", "class is right", "instances"), rows, title=title, left=())
        print(f"mean error: {checked.error:.1f} points")
    asked = []
    for precision in (0.8, 0.9, 0.95):
        try:
            asked.append((f"{precision:g}", f"{100 * fitted.least_for(precision):.0f} %"))
        except InputError:
            asked.append((f"{precision:g}", "not reached"))
    print_table(("--precision", "least confidence"), asked, title="\nwhat wtal localize --precision asks for", left=())
