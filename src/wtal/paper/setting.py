"""What an experiment is about: a recipe, the data, and the variants of the recipe that the paper's tables compare."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wtal.data.store import Store
from wtal.errors import InputError
from wtal.paper.plan import Variant
from wtal.propose import Fusion, Nms, Proposer
from wtal.training.config import Recipe, TargetSettings, shipped_recipes
from wtal.training.fork import beginning, first_targets
from wtal.typed import key_of


@dataclass(frozen=True, eq=False)
class Setting:
    """A recipe under its name, the data, and other recipes by name; `videos` are those of the qualitative figure.

    Its variants share the recipe's training up to the first targets.
    """

    store: Store
    stem: str
    recipe: Recipe
    recipes: Mapping[str, Path] = field(default_factory=shipped_recipes)
    videos: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Make sure, before hours of training, that there is something to score against."""
        if not self.store.has_truth:
            raise InputError(
                f"{self.store.path} holds no true instances (gt.json), so nothing can be scored; convert with `gt=FILE`"
            )
        for split in (self.recipe.train_split, self.recipe.test_split):
            self.store.names(split)

    @property
    def protocols(self) -> tuple[str, ...]:
        """How everything is scored."""
        return self.recipe.test.protocols

    def base(self) -> Variant:
        """The base model alone, up to where the first targets would be made."""
        return Variant(f"{self.stem}-base", beginning(self.recipe, self._first))

    def full(self) -> Variant:
        """The recipe as it is."""
        return self.variant("full", self.recipe)

    def no_targets(self) -> Variant:
        """The base model alone, trained to the same last epoch as the others."""
        return self.variant("no-labels", replace(self.recipe, targets=TargetSettings()))

    def raw_targets(self, way: str = "") -> Variant:
        """Targets made with NMS or a template of fusion (else the recipe's own), taught as they are: no Δ anywhere."""
        own = self.recipe.targets.proposer
        way = way or way_of(own)
        return self.with_targets(f"labels-{way}", proposer=with_way(own, way), source="raw", scale=1.0)

    def delta_targets(self) -> Variant:
        """The recipe as it is if it teaches Δ targets; else the same with all its stages teaching them."""
        return self.full() if self.uses_delta else self.with_targets("labels-delta", source="delta")

    def at_temperature(self, temperature: float) -> Variant:
        """The recipe with one temperature in all its generations of targets."""
        return self.with_targets(f"temperature-{temperature:g}", temperature=temperature)

    def with_targets(self, kind: str, *, proposer: Proposer | None = None, **of_stages: Any) -> Variant:
        """The recipe with another proposer of its targets, or other settings of all its stages."""
        targets = self.recipe.targets
        stages = tuple(replace(stage, **of_stages) for stage in targets.stages)
        changed = replace(targets, stages=stages, proposer=proposer or targets.proposer)
        return self.variant(kind, replace(self.recipe, targets=changed))

    def variant(self, kind: str, changed: Recipe) -> Variant:
        """A recipe that is changed from the first targets on, under a name that says how."""
        return Variant(f"{self.stem}-{kind}", changed, base=f"{self.stem}-base", shared=self._first)

    @property
    def uses_delta(self) -> bool:
        """Whether the recipe teaches Δ targets anywhere."""
        return any(stage.source == "delta" for stage in self.recipe.targets.stages)

    @property
    def _first(self) -> int:
        first = first_targets(self.recipe)
        if not first:
            raise InputError("wanted a recipe that makes pseudo labels from some epoch on (targets.stages), got none")
        return first


def way_of(proposer: Proposer) -> str:
    """The name of the way it combines candidates: the fusion's template, nms or soft_nms."""
    way = proposer.combine
    return way.template if isinstance(way, Fusion) else key_of(type(way))


def with_way(proposer: Proposer, way: str) -> Proposer:
    """The same candidates in the same groups, combined by NMS or by fusion with a template."""
    if way == way_of(proposer):
        return proposer
    return proposer.by(Nms) if way == "nms" else proposer.by(Fusion, template=way)
