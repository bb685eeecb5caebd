"""What an experiment is, what all of them are given, and the tables that they have in common."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wtal.data.store import Store
from wtal.errors import InputError
from wtal.figures.page import Section
from wtal.figures.table import Cell, Column, Table
from wtal.paper.plan import Variant
from wtal.paper.published import cells, published
from wtal.paper.trained import TrainedRuns
from wtal.paper.variants import full, way_of
from wtal.propose import Nms, Proposer
from wtal.training.config import Recipe, shipped_recipes


@dataclass(frozen=True, eq=False)
class Setting:
    """A recipe under its name, the data, and other recipes by name; `videos` are those of the qualitative figure."""

    store: Store
    stem: str
    recipe: Recipe
    recipes: Mapping[str, Path] = field(default_factory=shipped_recipes)
    videos: tuple[str, ...] = ()

    @property
    def protocols(self) -> tuple[str, ...]:
        """How everything is scored."""
        return self.recipe.test.protocols

    def refuse_without_truth(self) -> None:
        """Make sure, before hours of training, that there is something to score against."""
        path = self.store.path
        if not self.store.has_truth:
            raise InputError(f"{path} holds no true instances (gt.json), so there is no score; convert with `gt=FILE`")
        self.store.names(self.recipe.train_split)
        self.store.names(self.recipe.test_split)


@dataclass(frozen=True)
class Experiment:
    """One table or figure: the runs it wants, and what it makes of them."""

    name: str
    title: str
    variants: Callable[[Setting], list[Variant]]
    section: Callable[[Setting, TrainedRuns], Section]
    notes: Callable[[Setting], list[str]] = lambda _: []
    """What cannot be done here, and why."""


def as_it_is(setting: Setting) -> list[Variant]:
    """The recipe as it is, for experiments that need nothing else."""
    return [full(setting.stem, setting.recipe)]


@dataclass(frozen=True)
class Entry:
    """One row: what the paper has there, and ours by a variant's runs with these settings of the test."""

    title: str
    paper: list[float | None] | None
    variant: str
    proposer: Proposer


def beside_paper(
    key: str,
    entries: Iterable[Entry],
    setting: Setting,
    trained: TrainedRuns,
    *,
    title: str,
    first: str = "",
    note: str,
) -> Table:
    """A table of mAP at the paper's thresholds and its average: published under `key`, then ours by each protocol."""
    paper = published(key)
    tiou = paper["tiou"]
    rows: list[tuple[Cell, ...]] = [
        (
            one.title,
            *cells(one.paper, len(tiou) + 1),
            *(
                cell
                for protocol in setting.protocols
                for cell in trained.cells(one.variant, one.proposer, protocol, tiou)
            ),
        )
        for one in entries
    ]
    heads = [
        Column(head, group)
        for group in ("paper", *(f"ours, {protocol}" for protocol in setting.protocols))
        for head in (*(f"{t:g}" for t in tiou), "AVG")
    ]
    note = f"{note}, {trained.conditions}. Paper: {paper['source']}."
    return Table(key, f"{title}, mAP in %", (Column(first), *heads), tuple(rows), note)


def nms_and_own(
    name: str, first: str, rows: Iterable[tuple[str, str, Proposer]], setting: Setting, trained: TrainedRuns, title: str
) -> Table:
    """A table of average mAP by each protocol, with NMS and with the recipe's own fusion at test.

    Each row has a title, a variant and settings of the test.
    """
    pairs = [(line, variant, (proposer.by(Nms), proposer)) for line, variant, proposer in rows]
    content: list[tuple[Cell, ...]] = [
        (line, *(trained.average(variant, way, protocol) for protocol in setting.protocols for way in ways))
        for line, variant, ways in pairs
    ]
    names = ("NMS", way_of(setting.recipe.test.proposer))
    heads = (Column(first), *(Column(way, protocol) for protocol in setting.protocols for way in names))
    note = f"Recipe {setting.stem}, {trained.conditions}."
    return Table(name, f"{title}, average mAP in %", heads, tuple(content), note)
