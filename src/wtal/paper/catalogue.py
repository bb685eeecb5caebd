"""All experiments by name, and what is written when one is done."""

from collections.abc import Sequence
from pathlib import Path

from wtal import __version__
from wtal.figures.page import Block, Folded, Page, Picture, Section, Side, render
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
from wtal.paper.finished import Finished
from wtal.paper.setting import Setting

EXPERIMENTS = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (components, templates, temperature, thresholds, plugin, labels, qualitative, comparison, ablation)
}


def write_results(name: str, setting: Setting, finished: Finished, out: Path) -> list[Path]:
    """Write an experiment's tables (Markdown, LaTeX, CSV), figures (PNG, SVG) and a page with both; their paths."""
    experiment = EXPERIMENTS[name]
    section = experiment.section(setting, finished)
    n, part = len(finished.seeds), setting.store.part
    data = f"{setting.store.path.name}{f', part {part} held out' if part else ''}"
    page = Page(
        experiment.title,
        f"{setting.stem} over {data}, {n} seed{'s' if n > 1 else ''}",
        (section,),
        f"Made by wtal {__version__}: wtal paper {name}",
        (*experiment.notes(setting), *(f"{name} is not trained, so its figures are missing" for name in finished.gaps)),
    )
    paths = write_tables(out, list(page.tables()))
    for picture in _pictures(section):
        for suffix in ("png", "svg"):
            paths.append(out / f"{picture.name}.{suffix}")
            save_figure(paths[-1], picture.figure)
    paths.append(out / f"{name}.html")
    with written_whole(paths[-1]) as file:
        file.write(render(page))
    return paths


def _pictures(section: Section) -> list[Picture]:
    def within(blocks: Sequence[Block]) -> list[Picture]:
        found: list[Picture] = []
        for block in blocks:
            if isinstance(block, Picture):
                found.append(block)
            elif isinstance(block, Side):
                found += block.pictures
            elif isinstance(block, Folded):
                found += within(block.blocks)
        return found

    return within(section.blocks)
