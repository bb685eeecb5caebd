"""Variants of a recipe: what the paper's tables change in it. All share its training up to the first labels."""

from dataclasses import replace

from wtal.errors import InputError
from wtal.paper.plan import Variant
from wtal.propose import Combine, Proposer
from wtal.training.config import Recipe, TargetSettings
from wtal.training.fork import beginning, first_labels

#: the paper's order: NMS is the baseline
TEMPLATES: tuple[Combine, ...] = ("nms", "uniform", "exponential", "student_t", "gaussian")


def base(stem: str, recipe: Recipe) -> Variant:
    """The base model alone, up to where the first labels would be made."""
    return Variant(f"{stem}-base", beginning(recipe, _first(recipe)))


def no_labels(stem: str, recipe: Recipe) -> Variant:
    """The base model alone, trained to the same last epoch as the others."""
    return of(stem, "no-labels", recipe, replace(recipe, targets=TargetSettings()))


def full(stem: str, recipe: Recipe) -> Variant:
    """The recipe as it is."""
    return of(stem, "full", recipe, recipe)


def raw_labels(stem: str, recipe: Recipe, combine: Combine) -> Variant:
    """Labels made with NMS or a template of fusion, and taught as they are: no change (Δ) anywhere."""
    stages = tuple(replace(stage, source="raw", scale=1.0) for stage in recipe.targets.stages)
    labels = replace(recipe.targets, stages=stages, proposer=combined(recipe.targets.proposer, combine))
    return of(stem, f"labels-{combine}", recipe, replace(recipe, targets=labels))


def uses_delta(recipe: Recipe) -> bool:
    """Whether the recipe teaches the change of labels anywhere."""
    return any(stage.source == "delta" for stage in recipe.targets.stages)


def delta_targets(stem: str, recipe: Recipe) -> Variant:
    """The recipe as it is if it teaches the change of labels; else the same with all its stages teaching that."""
    if uses_delta(recipe):
        return full(stem, recipe)
    stages = tuple(replace(stage, source="delta") for stage in recipe.targets.stages)
    return of(stem, "labels-delta", recipe, replace(recipe, targets=replace(recipe.targets, stages=stages)))


def label_temperature(stem: str, recipe: Recipe, temperature: float) -> Variant:
    """The recipe with one temperature in all its generations of labels."""
    stages = tuple(replace(stage, temperature=temperature) for stage in recipe.targets.stages)
    changed = replace(recipe, targets=replace(recipe.targets, stages=stages))
    return of(stem, f"temperature-{temperature:g}", recipe, changed)


def combined(proposer: Proposer, combine: Combine) -> Proposer:
    """The same candidates in the same groups, put together by NMS or another template."""
    return replace(proposer, combine=combine)


def with_nms(proposer: Proposer) -> Proposer:
    """The same groups, of which the best candidate stands alone instead of all being fused."""
    return combined(proposer, "nms")


def of(stem: str, kind: str, recipe: Recipe, changed: Recipe) -> Variant:
    """A recipe that is changed from the first labels on, under a name that says how."""
    return Variant(f"{stem}-{kind}", changed, base=f"{stem}-base", shared=_first(recipe))


def _first(recipe: Recipe) -> int:
    first = first_labels(recipe)
    if not first:
        raise InputError("wanted a recipe that makes pseudo labels from some epoch on (labels.stages), got one without")
    return first
