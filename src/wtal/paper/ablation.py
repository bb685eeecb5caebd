"""The labels' settings, one changed at a time: what of the way from a map to a target matters, and what does not.

Most changes go to what the authors' released code does. With `--fold` all is scored on held-out training videos, which
is how the recipe's own settings may be chosen.
"""

from dataclasses import replace
from typing import Any

from wtal.figures.page import Section
from wtal.paper import variants
from wtal.paper.experiment import Experiment, Setting, nms_and_own
from wtal.paper.plan import Variant
from wtal.paper.trained import TrainedRuns
from wtal.training.config import Recipe
from wtal.training.fork import beginning

#: about what the released code's learning rate has fallen to when most of its labels act
LOW_RATE = 0.01
WEIGHTS = (0.1, 3.0)


def changed(recipe: Recipe) -> dict[str, tuple[str, Recipe]]:
    """Each change by its name in runs, with a line that says it; those that change nothing are left out."""
    labels, first = recipe.targets, recipe.targets.stages[0].from_epoch

    def labels_with(**settings: Any) -> Recipe:
        return replace(recipe, targets=replace(labels, **settings))

    before = beginning(recipe, first).learning_rate
    after = [(until, rate * LOW_RATE) for until, rate in recipe.learning_rate if until > first]
    changes = {
        "sum-rows": ("rows of sums", labels_with(rows="sum")),
        "scores": ("classes from the model's scores, not the tags", labels_with(classes="scores")),
        "dropout": ("dropout stays on while labels are made", labels_with(dropout=True)),
        "background": ("a label for background, too", labels_with(background=True)),
        "low-rate": (
            f"learning rate × {LOW_RATE:g} from the labels on",
            replace(recipe, learning_rate=(*before, *after)),
        ),
        "vertex": ("any minimal solution", labels_with(solution="vertex")),
    }
    for factor in WEIGHTS:
        stages = tuple(replace(stage, weight=stage.weight * factor) for stage in labels.stages)
        changes[f"weight-{factor:g}"] = (f"weight × {factor:g}", labels_with(stages=stages))
    return {kind: (said, other) for kind, (said, other) in changes.items() if other != recipe}


def lines(setting: Setting) -> dict[str, Variant]:
    """The recipe as it is, without labels, with the other source of labels (Δ or not), and with each change."""
    stem, recipe = setting.stem, setting.recipe
    if variants.uses_delta(recipe):
        other = "labels as they are, no Δ", variants.raw_labels(stem, recipe, variants.way_of(recipe.targets.proposer))
    else:
        other = "Δ labels", variants.delta_targets(stem, recipe)
    return {
        "the recipe": variants.full(stem, recipe),
        "no labels": variants.no_labels(stem, recipe),
        other[0]: other[1],
        **{said: variants.of(stem, kind, recipe, to) for kind, (said, to) in changed(recipe).items()},
    }


def section(setting: Setting, trained: TrainedRuns) -> Section:
    """One table: average mAP by each protocol, with NMS and with the recipe's own fusion at test."""
    rows = [(said, variant.name, setting.recipe.test.proposer) for said, variant in lines(setting).items()]
    table = nms_and_own("ablation", "labels", rows, setting, trained, "One change of the labels at a time")
    return Section("ablation", "Ablation", (replace(table, sections={1: "", 3: ""}),))


EXPERIMENT = Experiment("ablation", "The labels' settings", lambda setting: list(lines(setting).values()), section)
