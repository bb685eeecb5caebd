"""A report: folders of runs in, one self-contained page out."""

from collections.abc import Callable, Sequence
from pathlib import Path

from wtal import __version__
from wtal.figures.page import Page, PageBlock, Section, render
from wtal.figures.table import write_tables
from wtal.files import written_whole
from wtal.report.breakdown import classes, errors, precision
from wtal.report.configuration import configuration
from wtal.report.measures import Measurements, measure_all
from wtal.report.progress import training
from wtal.report.runs import Loaded, load
from wtal.report.summary import summary
from wtal.report.tags import confidence, found_classes
from wtal.report.targets import targets
from wtal.report.videos import videos

#: each section's name on the page, its title, and what makes its blocks; one without blocks is left out
SECTIONS: tuple[tuple[str, str, Callable[[Measurements], Sequence[PageBlock]]], ...] = (
    ("summary", "Summary", summary),
    ("videos", "Videos", videos),
    ("found", "Found classes", found_classes),
    ("confidence", "Confidence", confidence),
    ("training", "Training", training),
    ("classes", "Classes", classes),
    ("precision", "Precision and recall", precision),
    ("errors", "Errors", errors),
    ("labels", "Pseudo labels", targets),
    ("configuration", "Configuration", configuration),
)


def report(
    runs: Sequence[Path | str], out: Path | str, *, data: Path | None = None, tables: Path | None = None
) -> Page:
    """Write the page about these runs to `out`, and its tables as files into the folder `tables` if one is given.

    Runs of one recipe that differ by the seed stand together, with ± over seeds. What is missing or damaged is named
    on the page; a folder that is no run, and runs over different data, are an error.
    """
    page = build(load(runs, data))
    text = render(page)
    with written_whole(Path(out)) as file:
        file.write(text)
    if tables is not None:
        write_tables(tables, list(page.tables()))
    return page


def build(loaded: Loaded) -> Page:
    """The page about runs that were loaded."""
    measures, problems = measure_all(loaded)
    sections = [Section(name, title, made) for name, title, blocks in SECTIONS if (made := tuple(blocks(measures)))]
    names = [group.name for group in loaded.groups]
    title = names[0] if len(names) == 1 else " · ".join(names) if len(names) < 4 else f"{len(names)} recipes compared"
    n = len(loaded.runs)
    about = loaded.runs[0].environment.get("data", {})
    where = f"{n} run{'s' if n > 1 else ''} over {Path(str(about.get('path'))).name}"
    return Page(
        title,
        f"{where}, fingerprint {str(about.get('fingerprint'))[:8]}",
        tuple(sections),
        f"Made by wtal {__version__}: wtal report {' '.join(one.name for one in loaded.runs)}",
        tuple(problems),
    )
