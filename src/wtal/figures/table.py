"""A table once, then as Markdown, LaTeX or CSV; a page shows the same."""

import csv
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import fmean, stdev
from typing import TypeVar

from wtal.files import written_whole


@dataclass(frozen=True)
class Measure:
    """A number measured once or, over seeds, several times.

    >>> str(Measure((45.0, 46.0))), str(Measure((45.04,)))
    ('45.5 ± 0.7', '45.0')
    """

    values: tuple[float, ...]
    digits: int = 1

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return fmean(self.values)

    @property
    def spread(self) -> float | None:
        """The sample's standard deviation; None of a single value, which has none."""
        return stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        return self.joined(" ± ")

    def joined(self, sign: str) -> str:
        """Mean and spread with this sign between them."""
        mean = f"{self.mean:.{self.digits}f}"
        return mean if self.spread is None else f"{mean}{sign}{self.spread:.{self.digits}f}"


Cell = Measure | str | None
"""None where there is nothing to say, shown as a dash."""


def count(number: int) -> Measure:
    """A number that was counted."""
    return Measure((float(number),), digits=0)


def measured(values: Iterable[float | None], digits: int = 1) -> Measure | None:
    """The values that are not None as one measure, or None."""
    known = tuple(float(value) for value in values if value is not None)
    return Measure(known, digits) if known else None


K = TypeVar("K")


def measured_at(keys: Iterable[K], runs: Sequence[Mapping[K, float]]) -> list[Measure | None]:
    """What several runs measured at each of these keys, such as thresholds.

    >>> list(map(str, measured_at([0.5, 0.9], [{0.5: 45.0}, {0.5: 46.0}])))
    ['45.5 ± 0.7', 'None']
    """
    return [measured(one.get(key) for one in runs) for key in keys]


@dataclass(frozen=True)
class Column:
    """A heading, and one that it shares with its neighbours."""

    name: str
    group: str = ""


def score_columns(tiou: Iterable[float], averages: Iterable[str]) -> list[Column]:
    """The headings of mAP at thresholds and of its averages."""
    return [*(Column(f"{t:g}", "mAP at tIoU, %") for t in tiou), *(Column(name, "average") for name in averages)]


@dataclass(frozen=True)
class Table:
    """Rows under headings; the first column names the rows. `strong` rows stand out, `sections` are rows that
    begin a new part of the table, with the part's title, if it has one; `compared` makes the best of each column stand
    out."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    strong: frozenset[int] = frozenset()
    sections: Mapping[int, str] = field(default_factory=dict)
    compared: bool = False

    def __post_init__(self) -> None:
        refuse_odd_name(self.name)
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells under {len(self.columns)} headings")

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The shared headings from left to right, and over how many columns each goes."""
        return [(name, len(list(same))) for name, same in groupby(column.group for column in self.columns)]

    @property
    def grouped(self) -> bool:
        """Whether any heading is shared."""
        return any(column.group for column in self.columns)

    def words(self, column: int) -> bool:
        """Whether a column holds words, not numbers."""
        return any(isinstance(row[column], str) for row in self.rows)

    def best(self, column: int) -> set[int]:
        """The rows with the column's highest mean, as it is shown, if rows are compared and not all are alike."""
        shown = {row: f"{cell.mean:.{cell.digits}f}" for row, cell in self._measures(column)}
        if not self.compared or len(set(shown.values())) < 2:
            return set()
        top = max(map(float, shown.values()))
        return {row for row, text in shown.items() if float(text) == top}

    def _measures(self, column: int) -> list[tuple[int, Measure]]:
        return [(n, cell) for n, row in enumerate(self.rows) if isinstance(cell := row[column], Measure)]


def markdown(table: Table) -> str:
    """The table in Markdown.

    >>> print(markdown(Table("t", "T", (Column("run"), Column("AVG")), (("ours", Measure((45.0,))), ("other", None)))))
    | run | AVG |
    |---|---:|
    | ours | 45.0 |
    | other | – |
    """
    lines = [_line([_flat(column) for column in table.columns])]
    lines.append("|" + "|".join(["---", *["---:"] * (len(table.columns) - 1)]) + "|")
    for number, row in enumerate(table.rows):
        cells = [_text(cell) for cell in row]
        if table.sections.get(number):
            lines.append(_line([f"*{table.sections[number]}*", *[""] * (len(row) - 1)]))
        cells = [
            f"**{cell}**" if cell and (number in table.strong or number in table.best(column)) else cell
            for column, cell in enumerate(cells)
        ]
        lines.append(_line(cells))
    return "\n".join(lines)


def latex(table: Table) -> str:
    r"""The table in LaTeX, for booktabs.

    >>> print(latex(Table("t", "T & more", (Column("run"), Column("AVG")), (("a_b", Measure((45.0, 46.0))),))))
    \begin{table}
    \centering
    \caption{T \& more}
    \label{tab:t}
    \begin{tabular}{lr}
    \toprule
    run & AVG \\
    \midrule
    a\_b & $45.5 \pm 0.7$ \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(table.title)}}}", rf"\label{{tab:{table.name}}}"]
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}", r"\toprule"]
    if table.grouped:
        heads, rules, start = [], [], 1
        for name, width in table.groups:
            heads.append(rf"\multicolumn{{{width}}}{{c}}{{{_tex(name)}}}" if name else " & ".join([""] * width))
            if name:
                rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
            start += width
        lines += [" & ".join(heads) + r" \\", " ".join(rules)]
    lines += [" & ".join(_tex(column.name) for column in table.columns) + r" \\", r"\midrule"]
    for number, row in enumerate(table.rows):
        if number in table.sections and number:
            lines.append(r"\midrule")
        if table.sections.get(number):
            title = _tex(table.sections[number])
            lines.append(rf"\multicolumn{{{len(row)}}}{{l}}{{\emph{{{title}}}}} \\")
        cells = ["$" + cell.joined(r" \pm ") + "$" if isinstance(cell, Measure) else _tex(_text(cell)) for cell in row]
        for column, cell in enumerate(cells):
            if number in table.strong or number in table.best(column):
                cells[column] = rf"\textbf{{{cell}}}" if "$" not in cell else rf"$\mathbf{{{cell[1:-1]}}}$"
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def as_csv(table: Table) -> str:
    """The table as CSV with every digit; a column that was measured over seeds is followed by its deviation.

    >>> print(as_csv(Table("t", "T", (Column("run"), Column("AVG")), (("ours", Measure((45.0, 46.0))),))))
    run,AVG,AVG sd,AVG n
    ours,45.5,0.7071,2
    """
    over_seeds = [
        any(isinstance(row[n], Measure) and len(row[n].values) > 1 for row in table.rows)  # type: ignore[union-attr]
        for n in range(len(table.columns))
    ]
    heads: list[str] = []
    for column, several in zip(table.columns, over_seeds, strict=True):
        name = _no_formula(_flat(column))
        heads += [name, f"{name} sd", f"{name} n"] if several else [name]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(heads)
    for row in table.rows:
        values: list[object] = []
        for cell, several in zip(row, over_seeds, strict=True):
            if isinstance(cell, Measure):
                spread = "" if cell.spread is None else round(cell.spread, 4)
                values += [round(cell.mean, 4), spread, len(cell.values)] if several else [round(cell.mean, 4)]
            else:
                text = _no_formula(cell or "")
                values += [text, "", ""] if several else [text]
        writer.writerow(values)
    return file.getvalue().rstrip("\n")


def _no_formula(text: str) -> str:
    """The text, quoted if it begins like something that spreadsheets would compute."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


FORMS: dict[str, Callable[[Table], str]] = {"md": markdown, "tex": latex, "csv": as_csv}


def write_tables(folder: Path, tables: Sequence[Table]) -> list[Path]:
    """Write each table in every form; the paths that were written."""
    paths = []
    for table in tables:
        for suffix, form in FORMS.items():
            path = folder / f"{table.name}.{suffix}"
            with written_whole(path) as file:
                file.write(form(table) + "\n")
            paths.append(path)
    return paths


def plain_name(*parts: str) -> str:
    """A name for a file or an element of a page, made of names from somebody's data: letters, digits, `.`, `_`, `-`.

    A part in which anything was replaced ends in a hash, so that parts that differ still do.

    >>> plain_name("qualitative", "GolfSwing", "video_1"), plain_name("video", "../a b")
    ('qualitative-GolfSwing-video_1', 'video-.._a_b-2c2c791a')
    """
    return "-".join(map(_plain, parts))


def _plain(name: str) -> str:
    plain = _ODD.sub("_", name)[:80]
    hashed = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return plain if plain == name else f"{plain}-{hashed}"


_ODD = re.compile(r"[^A-Za-z0-9._-]")


def refuse_odd_name(name: str) -> None:
    """Names of tables and pictures become files and parts of a page, so nobody's text may be among them as it is."""
    if not name or _ODD.search(name):
        raise ValueError(f"{name!r} is no name for a table or picture; make one with plain_name")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_one_line(cell).replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _flat(column: Column) -> str:
    return f"{column.group} {column.name}" if column.group else column.name


def _text(cell: Cell) -> str:
    return "–" if cell is None else str(cell)


_TEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "–": "--",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "·": r"$\cdot$",
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(sign, sign) for sign in _one_line(text))
