"""`wtal report`: one self-contained page about a run, or about several side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from wtal.cli.parse import run_command


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    run_command(report, "wtal report", arguments)


def report(
    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN ...]")],
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report.html"),
    data: Path | None = None,
    tables: Path | None = None,
) -> None:
    """Write a page with scores, curves, classes, errors, label quality and timelines; open it in any browser.

    Runs of one recipe that differ by the seed alone are one row, with their spread. The page needs no network. Every
    table on it can be saved as Markdown, LaTeX or CSV.

    Args:
        runs: Folders that wtal train made, all over one data set.
        output: The page to write.
        data: Store of the data set, if it is no longer where the runs found it.
        tables: Folder to write all tables to, as Markdown, LaTeX and CSV.
    """
    from rich.console import Console

    from wtal.cli import data_warnings_on_stderr
    from wtal.report.build import report as write_report

    with data_warnings_on_stderr():
        page = write_report(runs, output, data=data, tables=tables)
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    for problem in page.problems:
        console.print(f"missing: {problem}")
    console.print(f"{output}" + (f" and tables in {tables}" if tables else ""))
