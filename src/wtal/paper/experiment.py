"""What an experiment is, and its tables before their runs are trained.

A row is a variant's runs with settings of the test, beside published figures; what is to be trained follows from the
rows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from wtal import __version__
from wtal.figures.page import Page, PageBlock, Section, render
from wtal.figures.style import save_figure
from wtal.figures.table import Cell, Column, Measure, Table, measured_at, write_tables
from wtal.files import written_whole
from wtal.paper.plan import Variant
from wtal.paper.setting import Setting, way_of
from wtal.paper.trained import TrainedRuns
from wtal.propose import Nms, Proposer

Figures = Sequence[float | None]


@dataclass(frozen=True)
class TableRow:
    """One row; without a variant there is nothing to train, and ours stays empty.

    `paper` are the published figures, `part` is the title of the part of the table that begins here, if one does.
    """

    title: str
    variant: Variant | None
    proposer: Proposer
    paper: Figures | None = None
    part: str | None = None
    strong: bool = False


def variants_of(rows: Iterable[TableRow]) -> list[Variant]:
    """What has to be trained for these rows."""
    return list({row.variant.name: row.variant for row in rows if row.variant is not None}.values())


@dataclass(frozen=True)
class PlannedTable:
    """A table before its runs are trained; `first` is the heading of the rows' titles.

    With the key of a published table, mAP at that table's thresholds and its average: published, then ours by each
    protocol. Without, our averages alone, with NMS and with the recipe's own way at test.
    """

    name: str
    title: str
    first: str
    rows: Sequence[TableRow]
    note: str
    paper: str = ""

    def drawn(self, setting: Setting, trained: TrainedRuns) -> Table:
        """The table with the runs' figures."""
        protocols = setting.protocols
        heads: list[Column] = []
        if self.paper:
            tiou, measured, note = published(self.paper)["tiou"], "mAP", f" Paper: {published(self.paper)['source']}."
            for group in ("paper", *(f"ours, {protocol}" for protocol in protocols)):
                heads += [*(Column(f"{t:g}", group) for t in tiou), Column("AVG", group)]
        else:
            tiou, measured, note = [], "average mAP", ""
            own = way_of(setting.recipe.test.proposer)
            heads += [Column(way, protocol) for protocol in protocols for way in ("NMS", own)]
        content: list[tuple[Cell, ...]] = []
        for row in self.rows:
            cells: list[Cell] = [row.title, *(published_cells(row.paper, len(tiou) + 1) if self.paper else ())]
            for protocol in protocols:
                if self.paper:
                    cells += measured_at(tiou, [one.at for one in trained.scores(row.variant, row.proposer, protocol)])
                else:
                    cells.append(trained.average(row.variant, row.proposer.by(Nms), protocol))
                cells.append(trained.average(row.variant, row.proposer, protocol))
            content.append(tuple(cells))
        return Table(
            self.name,
            f"{self.title}, {measured} in %",
            (Column(self.first), *heads),
            tuple(content),
            f"{self.note}, {trained.conditions}.{note}",
            strong=frozenset(n for n, row in enumerate(self.rows) if row.strong),
            sections=parts_of(self.rows),
        )


@dataclass(frozen=True)
class Experiment:
    """Tables and figures: the runs that they want, what is made of those, and what cannot be done here, and why."""

    title: str
    variants: Callable[[Setting], Sequence[Variant]]
    blocks: Callable[[Setting, TrainedRuns], Sequence[PageBlock]]
    notes: Callable[[Setting], Sequence[str]] = lambda _: ()


def experiment_of(title: str, tables: Callable[[Setting], Sequence[PlannedTable]]) -> Experiment:
    """The experiment that consists of these tables."""

    def variants(setting: Setting) -> list[Variant]:
        return variants_of(row for table in tables(setting) for row in table.rows)

    return Experiment(title, variants, lambda setting, trained: [t.drawn(setting, trained) for t in tables(setting)])


def write_results(name: str, experiment: Experiment, setting: Setting, trained: TrainedRuns, out: Path) -> list[Path]:
    """Write an experiment's tables (Markdown, LaTeX, CSV), figures (PNG, SVG) and a page with both; their paths."""
    n, part = len(trained.seeds), setting.store.part
    data = f"{setting.store.path.name}{f', part {part} held out' if part else ''}"
    page = Page(
        experiment.title,
        f"{setting.stem} over {data}, {n} seed{'s' if n > 1 else ''}",
        (Section(name, name.capitalize(), tuple(experiment.blocks(setting, trained))),),
        f"Made by wtal {__version__}: wtal paper {name}",
        (*experiment.notes(setting), *(f"{name} is not trained, so its figures are missing" for name in trained.gaps)),
    )
    paths = write_tables(out, list(page.tables()))
    for plot in page.plots():
        for suffix in ("png", "svg"):
            paths.append(out / f"{plot.name}.{suffix}")
            save_figure(paths[-1], plot.figure)
    paths.append(out / f"{name}.html")
    with written_whole(paths[-1]) as file:
        file.write(render(page))
    return paths


@cache
def published(table: str) -> dict[str, Any]:
    """One of the paper's tables.

    >>> published("components")["rows"]["base"]
    [55.8, 38.2, 12.5, 45.1]
    """
    text = files("wtal.paper").joinpath("published.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)[table]
    return content


def parts_of(rows: Iterable[TableRow]) -> dict[int, str]:
    """The rows that begin a part of their table, with its title."""
    return {n: row.part for n, row in enumerate(rows) if row.part is not None}


def published_cells(figures: Figures | None, n: int) -> tuple[Measure | None, ...]:
    """Published figures as cells of a table; dashes where there are none."""
    return tuple(None if value is None else Measure((value,)) for value in figures or [None] * n)
