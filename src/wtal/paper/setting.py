"""What all experiments are given, and what each of them is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wtal.data.store import Store
from wtal.figures.page import Section
from wtal.figures.table import Column
from wtal.paper.finished import Finished
from wtal.paper.plan import Variant
from wtal.training.config import Recipe


@dataclass(frozen=True, eq=False)
class Setting:
    """A recipe under its name, the data, and where other recipes lie; `videos` are names for the qualitative figure."""

    store: Store
    stem: str
    recipe: Recipe
    recipes: Path = Path("recipes")
    videos: tuple[str, ...] = ()

    @property
    def protocols(self) -> tuple[str, ...]:
        """How everything is scored."""
        return self.recipe.test.protocols


@dataclass(frozen=True)
class Experiment:
    """One table or figure: the runs it wants, and what it makes of them."""

    name: str
    title: str
    variants: Callable[[Setting], list[Variant]]
    section: Callable[[Setting, Finished], Section]
    notes: Callable[[Setting], list[str]] = lambda _: []
    """What cannot be done here, and why."""


def columns(first: str, tiou: Sequence[float], protocols: Sequence[str]) -> tuple[Column, ...]:
    """Headings of a table that sets our figures, by each protocol, beside the paper's."""
    heads = [Column(first)]
    for group in ("paper", *(f"ours, {protocol}" for protocol in protocols)):
        heads += [*(Column(f"{t:g}", group) for t in tiou), Column("AVG", group)]
    return tuple(heads)
