"""ActivityNet1.3 at its full number of videos and classes, on generated features: does training collapse, and why?

`python -m benchmarks.activitynet GT STORE RUNS [--epochs N] [--recipe NAME …]`. GT is the annotation file; the store is
made at the first call (`--dims` numbers per snippet, float16). Each recipe is trained for as many epochs, and the table
says what comes out: the largest memory in the first and in the last epoch; how well videos are classified, as mAP and
as the share whose best class is right, beside what one can who knows the generator, and to how many videos the most
frequent best class is the answer; in how many videos and of how many classes nothing is found; and mAP as it is and as
evaluators of the W-TALC kind give it, which is 0 as soon as one class has no prediction.

A step of Adam moves each weight by about the learning rate, and all together, so that what a layer says changes by the
rate times its inputs. In a layer narrower than the published 2048 learning would be as much slower: all learning rates
are scaled by that ratio.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from rich.console import Console
from rich.table import Table

from wtal.data.convert import convert
from wtal.data.store import Store
from wtal.data.synthetic import World, synthetic_source
from wtal.data.truth import read_with_findings
from wtal.evaluate import classification_map, score
from wtal.formats import read_predictions
from wtal.localize import Localizer
from wtal.paper.plan import PlannedRun, Variant, carry_out, make_plan
from wtal.training import Execution, Recipe, read_recipe
from wtal.training.fork import first_targets

SEED = 0
PUBLISHED_DIMS = 2048
RECIPES = Path(__file__).parents[1] / "recipes"
COMPARED = ("thumos14-rskp", "activitynet13-rskp", "activitynet13-gaufuse")


def generated(gt: Path, path: Path, dims: int, every: int) -> Store:
    """The store of the annotated videos, or of every so many of them; it is made if it is not there."""
    if not path.exists():
        annotations, _ = read_with_findings(gt)
        kept = dict(list(annotations.videos.items())[::every])
        source = synthetic_source(replace(annotations, videos=kept), np.random.default_rng(SEED), n_dims=dims)
        convert(source, path, dtype="float16")
    return Store.open(path)


def ceiling(store: Store) -> Float[np.ndarray, "v c"]:
    """Video scores of one who knows the generator's directions: each class's best eighth of the snippets."""
    world = World.create(np.random.default_rng(SEED), len(store.classes), store.dimensions)
    return np.stack([best_eighth(world.evidence(np.array(store.features(name)))) for name in store.names("test")])


def classified(scores: Float[np.ndarray, "v c"], held: Bool[np.ndarray, "v c"]) -> tuple[str, str, str]:
    """Video mAP, the share of videos whose best class is right, and how many the most frequent best class is of."""
    best = scores.argmax(axis=1)
    right = held[np.arange(len(held)), best].mean()
    return f"{classification_map(scores, held):.1f}", f"{100 * right:.1f}", f"{np.bincount(best).max()}"


def best_eighth(evidence: Float[np.ndarray, "t c"]) -> Float[np.ndarray, " c"]:
    """Mean of the largest t // 8 values of each class."""
    k = max(len(evidence) // 8, 1)
    return np.sort(evidence, axis=0)[-k:].mean(axis=0)


def tags(store: Store) -> Bool[np.ndarray, "v c"]:
    """Which classes the test videos hold."""
    return store.tags("test") > 0


def scaled(recipe: Recipe, epochs: int, dims: int) -> Recipe:
    """The recipe with its epochs scaled to so many, and its learning rate to this width."""
    factor = epochs / recipe.epochs
    # in a short run several stages fall into one epoch: the last of them stays
    stages = {e: replace(s, from_epoch=e) for s in recipe.targets.stages for e in [round(factor * s.from_epoch)]}
    options = dict(recipe.model_options)
    options["warmup_epoch"] = round(factor * options["warmup_epoch"])
    # in a short run several of these begin with epoch 0 too, and the last counts
    options["spl_stages"] = [[round(factor * epoch), weight] for epoch, weight in options["spl_stages"]]
    wider = PUBLISHED_DIMS / dims
    rates = tuple((max(1, round(factor * until)), wider * rate) for until, rate in recipe.learning_rate)
    return replace(
        recipe,
        epochs=epochs,
        learning_rate=rates,
        model_options=options,
        targets=replace(recipe.targets, stages=tuple(stages.values())),
        test=replace(recipe.test, protocols=("activitynet13",)),
    )


def variants(names: Sequence[str], epochs: int, dims: int) -> list[Variant]:
    """The recipes, scaled; those of ActivityNet share their epochs before the first labels, which are trained once."""
    recipes = {name: scaled(read_recipe(RECIPES / f"{name}.yaml"), epochs, dims) for name in names}
    shared = next((first for one in recipes.values() if (first := first_targets(one)) is not None), None)
    begun = {"base": "activitynet13-beginning", "shared": shared}
    return [Variant(name, one, **(begun if name.startswith("activitynet13") else {})) for name, one in recipes.items()]


def measure(job: PlannedRun, store: Store, memory: Mapping[tuple[str, int], float]) -> list[str]:
    """One row of the table: what came out of a run, and the memory that each of its epochs took."""
    localizer = Localizer.load(job.path)
    scores = np.stack([localizer.maps(n, store.features(n))[0].video_scores for n in store.names("test")])
    found = read_predictions(job.path / "predictions.json", store.classes)
    empty = sum(not len(instances) for instances in found.values())
    predicted = {label for instances in found.values() for label in instances.class_ids.tolist()}
    held = set(np.flatnonzero(tags(store).any(axis=0)).tolist())
    result = score(found, store.truth(), protocol="activitynet13", split="test").average["0.5:0.95"]
    seconds = [line["seconds"] for line in metrics(job.path) if "event" not in line]
    runs = {job.path.name, *([job.base.path.name] if job.base else [])}
    known = [memory[key] for key in sorted(memory, key=lambda key: key[1]) if key[0] in runs]
    return [
        job.name,
        f"{np.median(seconds):.1f} s",
        f"{known[0]:.0f} → {known[-1]:.0f} MB" if known else "trained before",
        *classified(scores, tags(store)),
        f"{empty}",
        f"{len(held - predicted)}",
        f"{result:.1f}",
        "0" if held - predicted else f"{result:.1f}",
    ]


def anonymous_memory() -> float:
    """Megabytes of this process that are its own, without the pages of mapped files."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("RssAnon"))


def metrics(run: Path) -> Iterator[dict[str, float]]:
    """The lines that a run has logged."""
    return (json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the store, train each recipe on it and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.activitynet", description=__doc__)
    parser.add_argument("gt", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--dims", type=int, default=128)
    parser.add_argument("--every", type=int, default=1, help="use every so many videos only, for a quick look")
    parser.add_argument("--threads", type=int, help="of the processor; by default all")
    parser.add_argument("--recipe", nargs="*", default=COMPARED)
    given = parser.parse_args(arguments)
    console = Console(width=160)
    store = generated(given.gt, given.store, given.dims, given.every)
    counts = {split: len(store.names(split)) for split in ("train", "test")}
    console.print(
        f"{counts}, {len(store.classes)} classes, {sum(store.index.shards.values()):,} snippets of {store.dimensions}"
    )
    known = classified(ceiling(store), tags(store))
    console.print("one who knows the generator: video mAP {}, best class right {} %, most frequent {}".format(*known))
    table = Table(title=f"{given.epochs} epochs on generated features: these figures show a path, not a result")
    headings = ["recipe", "epoch", "memory", "video mAP", "best right, %", "most frequent"]
    headings += ["empty videos", "classes without", "AVG mAP"]
    for heading in (*headings, "as W-TALC counts"):
        table.add_column(heading, justify="left" if heading == "recipe" else "right")
    wanted = variants(given.recipe, given.epochs, store.dimensions)
    plan = make_plan(wanted, [SEED], store, given.runs)
    memory: dict[tuple[str, int], float] = {}

    def hear(_step: str, _completed: float, _total: float, detail: Mapping[str, Any]) -> None:
        key = detail["run"], detail["epoch"]
        memory[key] = max(memory.get(key, 0.0), anonymous_memory())

    carry_out(plan, store, progress=hear, execution=Execution(threads=given.threads))
    for variant in wanted:
        table.add_row(*measure(plan.found[variant.name, SEED], store, memory))
    console.print(table)


if __name__ == "__main__":
    main()
