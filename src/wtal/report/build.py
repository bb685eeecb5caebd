"""A report: folders of runs in, one self-contained page out."""

from collections.abc import Sequence
from pathlib import Path

from wtal import __version__
from wtal.figures.page import Page, render
from wtal.figures.table import write_tables
from wtal.files import written_whole
from wtal.report.configuration import configuration
from wtal.report.content import Content
from wtal.report.measures import label_qualities, measure
from wtal.report.progress import training
from wtal.report.pseudo import labels as pseudo_labels
from wtal.report.quality import classes, errors, precision
from wtal.report.runs import Loaded, load
from wtal.report.summary import summary
from wtal.report.videos import videos


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
    store = loaded.store
    problems = [*loaded.notes, *(f"{one.name}: {problem}" for one in loaded.runs for problem in one.problems)]
    protocol = loaded.groups[0].recipe.test.protocols[0]
    truth = None
    measured, labels = {}, {}
    if store is not None:
        if store.has_truth:
            truth = store.truth()
            for one in loaded.runs:
                found = measure(one, store, truth, protocol)
                if found is not None:
                    measured[one.name] = found
                labels[one.name] = label_qualities(one, store, truth, protocol)
        else:
            problems.append(f"{store.path} holds no truth (gt.json), so nothing can be measured against it")
    for name, found in measured.items():
        problems += _disagreement(loaded, name, found.score.map.tolist(), protocol)
    content = Content(loaded, protocol, truth, measured, labels)
    parts = [
        summary(content),
        training(content),
        classes(content),
        precision(content),
        errors(content),
        pseudo_labels(content),
        videos(content),
        configuration(content),
    ]
    names = [group.name for group in loaded.groups]
    title = names[0] if len(names) == 1 else " · ".join(names) if len(names) < 4 else f"{len(names)} recipes compared"
    n = len(loaded.runs)
    about = loaded.runs[0].environment.get("data", {})
    where = f"{n} run{'s' if n > 1 else ''} over {Path(str(about.get('path'))).name}"
    return Page(
        title,
        f"{where}, fingerprint {str(about.get('fingerprint'))[:8]}",
        tuple(part for part in parts if part is not None),
        f"Made by wtal {__version__}: wtal report {' '.join(one.name for one in loaded.runs)}",
        tuple(problems),
    )


def _disagreement(loaded: Loaded, name: str, again: Sequence[float], protocol: str) -> list[str]:
    """Whether the run's own scores are not those of its predictions: somebody has changed a file."""
    one = next(one for one in loaded.runs if one.name == name)
    written = (one.evaluation or {}).get(protocol)
    if written is None or max(abs(a - b) for a, b in zip(written["map"], again, strict=True)) < 0.01:
        return []
    return [f"{name}: evaluation.json is not the score of predictions.json; the summary shows the former"]
