"""What correcting some training videos gains a detector: the most doubtful ones, or as many at random.

Nobody corrects anything here: a correction is simulated by the true instances of a training video. That is the only
use of those in a loss in this project.

    python -m benchmarks.corrections STORE TEACHER -o FOLDER

TEACHER is a finished run of thumos14-gaufuse. Runs that FOLDER has already are not trained again.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from wtal.annotations import Annotations
from wtal.data.store import Store
from wtal.decide import decide
from wtal.evaluate import headline
from wtal.evaluate.doubt import doubts
from wtal.formats import write_annotations
from wtal.localize import Localizer
from wtal.training import Execution, Recipe, Run, read_recipe, train

PROTOCOL = "thumos14"


@dataclass(frozen=True)
class Trial:
    """One detector: how many videos are corrected, chosen how."""

    count: int
    way: str
    draw: int = 0

    @property
    def name(self) -> str:
        return f"{self.count}-{self.way}-{self.draw}"


def main(
    store: tyro.conf.Positional[Path],
    teacher: tyro.conf.Positional[Path],
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    counts: tuple[int, ...] = (20, 10, 5),
    draws: int = 2,
    epochs: int = 10,
    networks: int = 1,
) -> None:
    """Train all detectors and print the table, again after each of them.

    Args:
        store: The data set, with its truth.
        teacher: The run whose boxes teach them all.
        output: Where runs go.
        counts: How many videos are corrected.
        draws: How often as many are chosen at random.
        epochs: Of each detector; thumos14-detector has 30.
        networks: Of each detector; thumos14-detector has 3.
    """
    data, console = Store.open(store), Console()
    recipe = shortened(read_recipe("thumos14-detector"), epochs, networks)
    ways = [("doubt", 1), ("random", draws)]
    trials = [Trial(0, "none"), *(Trial(n, way, i) for n in counts for way, most in ways for i in range(most))]
    ranked = by_doubt(data, teacher, recipe.train_split)
    scores: dict[Trial, float] = {}
    for trial in trials:
        run = Run(output / trial.name)
        if not run.ended:
            chosen = chosen_videos(ranked, trial)
            given = None
            if chosen:
                given = output / f"{trial.name}.json"
                truth = data.truth()
                write_annotations(given, Annotations(truth.classes, {name: truth.videos[name] for name in chosen}))
            execution = Execution(threads=1)
            train(recipe, data, run.path, resume=True, teacher=teacher, corrections=given, execution=execution)
        scores[trial] = headline((run.evaluation or {})[PROTOCOL]["average"])[1]
        console.print(f"{trial.name}: {scores[trial]:.2f}")
    console.print(table(scores, counts))


def by_doubt(store: Store, teacher: Path, split: str) -> list[str]:
    """The training videos, those first whose decisions by the teacher are most in doubt."""
    localizer = Localizer.load(teacher)
    names = store.names(split)
    decided = {}
    for name in names:
        found = localizer(store.features(name), store.timebase(name), duration_s=store.duration_s(name))
        decided[name] = decide(found, localizer.confidence())
    unsure = doubts(decided, store.tag_ids())
    return sorted(names, key=lambda name: (-unsure[name], name))


def chosen_videos(ranked: list[str], trial: Trial) -> list[str]:
    """The videos that a trial corrects; a draw's smaller choices are part of its larger ones."""
    if trial.way == "random":
        return [str(name) for name in np.random.default_rng(trial.draw).permutation(sorted(ranked))[: trial.count]]
    return ranked[: trial.count]


def shortened(recipe: Recipe, epochs: int, networks: int) -> Recipe:
    """The recipe with fewer epochs and networks."""
    rates = tuple((min(until, epochs), rate) for until, rate in recipe.learning_rate)
    options = {**recipe.model_options, "networks": networks}
    return replace(recipe, epochs=epochs, learning_rate=rates, model_options=options)


def table(scores: dict[Trial, float], counts: tuple[int, ...]) -> Table:
    """Mean of mAP over tIoU 0.1 to 0.7 by the number of corrected videos."""
    made = Table(title=f"mAP in percent, {PROTOCOL}, mean over tIoU")
    for heading in ("corrected", "most doubtful", "at random", "draws"):
        made.add_column(heading, justify="right")
    made.add_row("none", f"{scores[Trial(0, 'none')]:.1f}", "", "")
    for n in sorted(counts):
        drawn = [value for trial, value in scores.items() if (trial.count, trial.way) == (n, "random")]
        single = ", ".join(f"{value:.1f}" for value in drawn)
        made.add_row(str(n), f"{scores[Trial(n, 'doubt')]:.1f}", f"{np.mean(drawn):.1f}", single)
    return made


if __name__ == "__main__":
    tyro.cli(main)
