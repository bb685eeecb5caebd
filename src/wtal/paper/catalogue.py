"""All experiments by name, and what is written when one is done."""

from pathlib import Path

from wtal import __version__
from wtal.figures.page import Page, render
from wtal.figures.style import save_figure
from wtal.figures.table import write_tables
from wtal.files import written_whole
from wtal.paper import (
    ablation,
    comparison,
    components,
    labels,
    plugin,
    qualitative,
    temperature,
    templates,
    thresholds,
)
from wtal.paper.experiment import Setting
from wtal.paper.trained import TrainedRuns

EXPERIMENTS = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (components, templates, temperature, thresholds, plugin, labels, qualitative, comparison, ablation)
}


def write_results(name: str, setting: Setting, trained: TrainedRuns, out: Path) -> list[Path]:
    """Write an experiment's tables (Markdown, LaTeX, CSV), figures (PNG, SVG) and a page with both; their paths."""
    experiment = EXPERIMENTS[name]
    section = experiment.section(setting, trained)
    n, part = len(trained.seeds), setting.store.part
    data = f"{setting.store.path.name}{f', part {part} held out' if part else ''}"
    page = Page(
        experiment.title,
        f"{setting.stem} over {data}, {n} seed{'s' if n > 1 else ''}",
        (section,),
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
