"""`wtal demo`: the whole method on a generated data set: train on tags, localize, compare, and a picture."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from wtal.cli import data_warnings_on_stderr
from wtal.cli.parse import run_command
from wtal.cli.progress import showing
from wtal.cli.table import print_table
from wtal.cli.train import interruptible
from wtal.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from rich.console import Console

    from wtal.data.store import Store
    from wtal.instances import Instances
    from wtal.localize import Localizer
    from wtal.propose import Proposer
    from wtal.training import Recipe


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""

    def demo(
        output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("demo-output"),
        seed: int = 0,
        train_videos: int = 100,
        test_videos: int = 50,
        n_classes: int = 10,
        threads: int | None = None,
    ) -> None:
        """See the whole method on generated videos whose truth is known; ends with a table and a picture.

        Trains RSKP on the videos' tags alone, once without and once with pseudo labels, then a detector on what that
        has found, and finds the actions of the test videos in one way after the other. Stopped by Ctrl-C, the same
        command goes on.

        Args:
            output: Folder for the data, the three runs, the predictions and the picture.
            seed: Seed of the generated data and of training.
            train_videos: Number of training videos.
            test_videos: Number of test videos.
            n_classes: Number of classes.
            threads: Threads of the processor to use; by default all.
        """
        again = shlex.join(["wtal", "demo", *arguments])
        _demo(output, seed, (train_videos, test_videos, n_classes), threads, again)

    run_command(demo, "wtal demo", arguments)


def _demo(output: Path, seed: int, size: tuple[int, int, int], threads: int | None, again: str) -> None:
    from importlib.util import find_spec

    from rich.console import Console

    from wtal.formats import write_predictions
    from wtal.localize import Localizer
    from wtal.propose import PAPER, Nms
    from wtal.training import Execution, read_recipe, train

    for package in ("matplotlib", "torch", "safetensors", "scipy"):
        if find_spec(package) is None:  # said now, not after the work is done
            raise MissingExtraError(package, "train", "report")
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    recipe = read_recipe("demo")
    store = _generate(output / "store", seed, size, console)

    how = Execution(device="cpu", threads=threads)

    def trained(what: str, recipe: "Recipe", run: Path, teacher: Path | None = None) -> Localizer:
        console.print(f"training {what}: {recipe.epochs} epochs, into {run}")
        with interruptible(console, again), data_warnings_on_stderr():
            train(recipe, store, run, seed=seed, resume=True, teacher=teacher, execution=how)
        return Localizer.load(run, device="cpu")

    without = replace(recipe, targets=replace(recipe.targets, stages=()))
    rskp = trained("RSKP on tags alone", without, output / "rskp")
    gaufuse = trained("RSKP with LinPro pseudo labels", recipe, output / "gaufuse")
    what = "a detector on what that has found in the training videos"
    detector = trained(what, read_recipe("demo-detector"), output / "detector", output / "gaufuse")
    evidence = recipe.test.proposer
    # RSKP's own way: candidates that share half of their length with a better one are dropped
    nms = replace(evidence, combine=Nms(0.5, "own_length"))
    fused = replace(evidence, combine=PAPER.at_temperature(0.1).combine)
    found = {
        ("rskp-nms", "RSKP, NMS"): rskp.store(store, "test", proposer=nms),
        ("rskp-fusion", "RSKP, fusion"): rskp.store(store, "test", proposer=fused),
        ("gaufuse-fusion", "... and pseudo labels in training"): gaufuse.store(store, "test", proposer=fused),
        ("gaufuse-evidence", "... and evidence and decay at test"): gaufuse.store(store, "test", proposer=evidence),
        ("detector-pair", "... and a detector taught by its boxes"): detector.store(store, "test"),
    }
    for (name, _), predictions in found.items():
        write_predictions(output / f"{name}.json", predictions, store.classes)
    _print_scores({title: predictions for (_, title), predictions in found.items()}, store)
    _draw(output / "timeline.png", gaufuse, store, recipe, nms)
    _write_page(output / "page.html", detector, store)
    _print_next(output)


def _generate(path: Path, seed: int, size: tuple[int, int, int], console: "Console") -> "Store":
    import numpy as np

    from wtal.data.convert import convert
    from wtal.data.store import Store, is_store
    from wtal.data.streams import join_streams
    from wtal.data.synthetic import Difficulty, synthetic_source
    from wtal.data.synthetic_annotations import random_annotations

    n_train, n_test, n_classes = size
    rng = np.random.default_rng(seed)
    made = random_annotations(rng, n_train=n_train, n_test=n_test, n_classes=n_classes)
    # so much noise that tags alone miss parts of the actions: something for labels to teach
    source = synthetic_source(made, rng, difficulty=Difficulty(noise=1.8))
    if is_store(path):  # of the same command before: everything goes on from what is there
        store, first = Store.open(path), source.records[0].name
        same = list(store.names()) == [record.name for record in source.records]
        there, wanted = store.features(first), join_streams(first, source.load(first))
        # close, not equal: sums in another order, as with another number of threads, differ in the last bits
        if not same or there.shape != wanted.shape or not np.allclose(there, wanted, atol=1e-3):
            raise InputError(f"{path} is of a demo with another seed or size; choose another folder with -o")
        return store
    with showing("generating") as progress:
        convert(source, path, progress=progress)
    actions = sum(len(video.instances) for video in made.videos.values())
    console.print(f"generated {n_train} training and {n_test} test videos of {n_classes} classes, {actions} actions")
    return Store.open(path)


def _print_scores(found: "dict[str, dict[str, Instances]]", store: "Store") -> None:
    from wtal.evaluate import score

    rows = []
    for title, predictions in found.items():
        result = score(predictions, store.truth(), protocol="thumos14")
        values = [*(result.at[t] for t in (0.1, 0.3, 0.5, 0.7)), result.headline]
        rows.append((title, *(f"{value:.1f}" for value in values)))
    head = ("", "0.1", "0.3", "0.5", "0.7", "average 0.1:0.7")
    print_table(head, rows, title="test videos: mAP in percent at tIoU (one seed; others differ)")


def _draw(path: Path, localizer: "Localizer", store: "Store", recipe: "Recipe", nms: "Proposer") -> None:
    """One test video's class, from activation curve to the labels that it would get in training."""
    from wtal.figures.timeline import draw_timeline
    from wtal.maps import mean_map
    from wtal.pseudo.linpro import make_targets

    name = store.names("test")[0]
    true = store.truth().videos[name].instances
    class_id = int(true.class_ids[0])
    shown = mean_map(localizer.maps(name, store.features(name)))
    fused = recipe.test.proposer(shown.tcam, classes=[class_id])
    targets = make_targets(fused.instances, len(shown.tcam), len(store.classes), rows=recipe.targets.rows)
    draw_timeline(
        path,
        title=f"{name}, {store.classes[class_id]}: candidates of many thresholds, fused, then made into snippet labels",
        truth=store.timebase(name).instances_to_snippets(true.of_class(class_id)),
        curves={"activation": shown.tcam[:, class_id], "pseudo labels\n(LinPro)": targets.values[:, class_id]},
        segments={
            "candidates": fused.candidates.instances,
            "NMS": nms(shown.tcam, classes=[class_id]).instances,
            "fused": fused.instances,
        },
    )


def _write_page(path: Path, pair: "Localizer", store: "Store") -> None:
    """The page of some test videos: what was found when, by whom, and what the model sees."""
    from wtal.view import write_page
    from wtal.view.build import payloads_of_store

    write_page(path, payloads_of_store(pair, store, store.names("test")[:12], path, run="detector"))


def _print_next(output: Path) -> None:
    from rich.console import Console

    run, store = output / "detector", output / "store"
    steps = {
        "look": f"{output / 'page.html'}  (what happens when in some of the test videos: open it in a browser)",
        "picture": f"{output / 'timeline.png'}",
        "trained runs": f"{run}, {output / 'gaufuse'}  (recipe, losses, boxes or labels, checkpoints, model)",
        "localize": f"wtal localize {run} --features {store} --split test --all -o found.json",
        "evaluate": f"wtal evaluate {output / 'rskp-nms.json'} {store / 'gt.json'} --diagnose",
        "train": f"wtal train demo --data {store} --seed 1",
        "report": f"wtal report {run} {output / 'gaufuse'} {output / 'rskp'} -o report.html",
        "your data": "wtal data convert FEATURES --tags tags.csv -o STORE, then wtal train demo --data STORE",
    }
    width = max(map(len, steps))
    for title, text in steps.items():
        Console(highlight=False, soft_wrap=True).print(f"{title:<{width}}  {text}", markup=False)
