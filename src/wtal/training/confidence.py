"""A run's confidence: fitted to the tags of videos that the model has not learned from.

Those are the tagged test videos, if there are any. Otherwise a model is trained for each of several parts of the
training videos, without that part, and looks at it: the same recipe, so that what it finds in new videos is much like
what the run's own model finds, if a little less sure.
"""

import shutil
import warnings

from wtal.data.store import Store
from wtal.errors import DataWarning
from wtal.evaluate.calibration import Calibration, fit, judged
from wtal.formats import read_predictions, write_predictions
from wtal.instances import Instances
from wtal.training.config import Recipe
from wtal.training.run import Run


def folds_to_train(recipe: Recipe, store: Store, run: Run) -> list[tuple[Store, Run]]:
    """The parts of the store whose models are still to be trained, if confidence needs any, and where they go."""
    of = recipe.test.confidence_folds
    if not of or run.held_out.exists() or _tagged_test_videos(store, recipe):
        return []
    if len(store.names(recipe.train_split)) < 2 * of:
        warnings.warn(
            f"too few training videos for a confidence: {of} parts of them need {2 * of}; tag test videos, or see "
            "wtal calibrate",
            DataWarning,
            stacklevel=3,
        )
        return []
    parts = range(1, of + 1)
    return [
        (store.fold(number, of, split=recipe.train_split), fold)
        for number in parts
        if not (fold := run.fold(number, of)).ended
    ]


def fitted_confidence(run: Run, recipe: Recipe, store: Store, found: dict[str, Instances] | None) -> Calibration | None:
    """The confidence of a run's model, given what it has found in the test videos; None if no video can tell."""
    tags = store.tag_ids()
    if found is not None and len(evidence := judged(found, tags)):
        return fit(evidence, "the tags of the test videos")
    of = recipe.test.confidence_folds
    folds = [run.fold(number, of) for number in range(1, of + 1)]
    if folds and all(fold.ended for fold in folds):
        held_out: dict[str, Instances] = {}
        for fold in folds:
            held_out |= fold.predictions(store.classes) or {}
        write_predictions(run.held_out, held_out, store.classes)
    if not run.held_out.exists():
        return None
    evidence = judged(read_predictions(run.held_out, store.classes), tags)
    return fit(evidence, "the tags of training videos, each looked at by a model that was trained without it")


def remove_folds(run: Run) -> None:
    """Remove the models of the folds; what they have found stays in held-out.json."""
    shutil.rmtree(run.path / "folds", ignore_errors=True)


def _tagged_test_videos(store: Store, recipe: Recipe) -> bool:
    return any(record.tags for record in store.records.values() if record.split == recipe.test_split)
