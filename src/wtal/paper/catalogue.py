"""All experiments by name, and what is written when one is done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from wtal import __version__
from wtal.figures.page import Page, PageBlock, Section, render
from wtal.figures.style import save_figure
from wtal.figures.table import write_tables
from wtal.files import written_whole
from wtal.paper import tables
from wtal.paper.plan import Variant
from wtal.paper.planned import PlannedTable, variants_of
from wtal.paper.qualitative import qualitative, shown_variants
from wtal.paper.setting import Setting
from wtal.paper.targets import target_tables, target_variants
from wtal.paper.trained import TrainedRuns


def _nothing(_: Setting) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class Experiment:
    """Tables and figures: the runs that they want, what is made of those, and what cannot be done here, and why."""

    title: str
    variants: Callable[[Setting], Sequence[Variant]]
    blocks: Callable[[Setting, TrainedRuns], Sequence[PageBlock]]
    notes: Callable[[Setting], Sequence[str]] = _nothing


def _of_tables(
    title: str, plan: Callable[[Setting], Sequence[PlannedTable]], notes: Callable[[Setting], Sequence[str]] = _nothing
) -> Experiment:
    def variants(setting: Setting) -> list[Variant]:
        return variants_of(row for table in plan(setting) for row in table.rows)

    return Experiment(
        title, variants, lambda setting, trained: [t.drawn(setting, trained) for t in plan(setting)], notes
    )


EXPERIMENTS = {
    "components": _of_tables("The component table", tables.components),
    "templates": _of_tables("The template table", tables.templates),
    "temperature": Experiment(
        "The temperature figure",
        lambda setting: variants_of(chain(*tables.temperature_rows(setting).values())),
        tables.temperature,
    ),
    "thresholds": _of_tables("Fewer activation levels", tables.thresholds),
    "plugin": _of_tables(
        "The plug-in table",
        tables.plugin,
        lambda setting: [f"{model}: not run, {why}" for model, why in tables.missing_models(setting).items()],
    ),
    "labels": Experiment("Quality of the pseudo labels", target_variants, target_tables),
    "qualitative": Experiment("The qualitative figure", shown_variants, qualitative),
    "comparison": Experiment("The comparison tables", lambda setting: [setting.full()], tables.comparison),
    "ablation": _of_tables("The labels' settings", tables.ablation),
}


def write_results(name: str, setting: Setting, trained: TrainedRuns, out: Path) -> list[Path]:
    """Write an experiment's tables (Markdown, LaTeX, CSV), figures (PNG, SVG) and a page with both; their paths."""
    experiment, n, part = EXPERIMENTS[name], len(trained.seeds), setting.store.part
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
