"""Variants of a recipe: what the paper's tables change in it. All share its training up to the first labels."""

from dataclasses import replace

from wtal.errors import InputError
from wtal.paper.plan import Variant
from wtal.propose import Fusion, Nms, Proposer
from wtal.pseudo.templates import TEMPLATES
from wtal.training.config import Recipe, TargetSettings
from wtal.training.fork import beginning, first_labels
from wtal.typed import key_of

#: The ways of combining candidates that are compared, in the paper's order: NMS is the baseline.
WAYS = ("nms", *TEMPLATES)


def base(stem: str, recipe: Recipe) -> Variant:
    """The base model alone, up to where the first labels would be made."""
    return Variant(f"{stem}-base", beginning(recipe, _first(recipe)))


def no_labels(stem: str, recipe: Recipe) -> Variant:
    """The base model alone, trained to the same last epoch as the others."""
    return of(stem, "no-labels", recipe, replace(recipe, targets=TargetSettings()))


def full(stem: str, recipe: Recipe) -> Variant:
    """The recipe as it is."""
    return of(stem, "full", recipe, recipe)


def raw_labels(stem: str, recipe: Recipe, way: str) -> Variant:
    """Labels made with NMS or a template of fusion, and taught as they are: no change (Δ) anywhere."""
    stages = tuple(replace(stage, source="raw", scale=1.0) for stage in recipe.targets.stages)
    labels = replace(recipe.targets, stages=stages, proposer=with_way(recipe.targets.proposer, way))
    return of(stem, f"labels-{way}", recipe, replace(recipe, targets=labels))


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


def way_of(proposer: Proposer) -> str:
    """The name of the way it combines candidates: the fusion's template, nms or soft_nms."""
    way = proposer.combine
    return way.template if isinstance(way, Fusion) else key_of(type(way))


def with_way(proposer: Proposer, way: str) -> Proposer:
    """The same candidates in the same groups, combined by NMS or by fusion with a template."""
    if way == way_of(proposer):
        return proposer
    return proposer.by(Nms) if way == "nms" else proposer.by(Fusion, template=way)


def of(stem: str, kind: str, recipe: Recipe, changed: Recipe) -> Variant:
    """A recipe that is changed from the first labels on, under a name that says how."""
    return Variant(f"{stem}-{kind}", changed, base=f"{stem}-base", shared=_first(recipe))


def _first(recipe: Recipe) -> int:
    first = first_labels(recipe)
    if not first:
        raise InputError("wanted a recipe that makes pseudo labels from some epoch on (labels.stages), got one without")
    return first
