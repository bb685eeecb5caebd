"""What a page is made of: sections of tables, plots, text and code, and the page itself."""

import base64
import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from wtal.errors import MissingExtraError
from wtal.figures.style import inline_svg, style_sheet, without_controls
from wtal.figures.table import FORMS, Measure, Table, refuse_odd_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Plot:
    """A figure with the line above it, which says what it shows."""

    name: str
    figure: "Figure"
    caption: str

    def __post_init__(self) -> None:
        refuse_odd_name(self.name)


@dataclass(frozen=True, eq=False)
class Side:
    """Plots side by side where there is room."""

    plots: tuple[Plot, ...]


@dataclass(frozen=True)
class Text:
    """A paragraph; a warning stands out."""

    text: str
    kind: Literal["plain", "warning"] = "plain"


@dataclass(frozen=True)
class Code:
    """Text as it is."""

    text: str


@dataclass(frozen=True)
class Tile:
    """One big number, what it is, and what belongs to it."""

    value: str
    label: str
    note: str = ""
    number: int = 0


@dataclass(frozen=True)
class Tiles:
    """Big numbers beside each other."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Folded:
    """Blocks that a reader opens; on paper they are open."""

    title: str
    blocks: "tuple[PageBlock, ...]"


@dataclass(frozen=True)
class OneOf:
    """Blocks of which the reader sees one set, chosen by its title."""

    label: str
    options: "tuple[tuple[str, tuple[PageBlock, ...]], ...]"

    @property
    def blocks(self) -> "tuple[PageBlock, ...]":
        """All of them."""
        return tuple(block for _, blocks in self.options for block in blocks)


PageBlock = Plot | Side | Table | Text | Code | Tiles | Folded | OneOf


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    name: str
    title: str
    blocks: tuple[PageBlock, ...]


@dataclass(frozen=True)
class Page:
    """A whole page: title, a line under it, and sections."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    footer: str = ""
    problems: tuple[str, ...] = field(default=())

    def tables(self) -> Iterator[Table]:
        """All its tables, folded ones too."""
        return (block for block in self._blocks() if isinstance(block, Table))

    def plots(self) -> Iterator[Plot]:
        """All its plots, folded ones too."""
        return (block for block in self._blocks() if isinstance(block, Plot))

    def choices(self) -> Iterator[OneOf]:
        """All its choices."""
        return (block for block in self._blocks() if isinstance(block, OneOf))

    def _blocks(self) -> Iterator[PageBlock]:
        waiting: deque[PageBlock] = deque(block for section in self.sections for block in section.blocks)
        while waiting:
            block = waiting.popleft()
            inner = block.plots if isinstance(block, Side) else getattr(block, "blocks", ())
            waiting.extendleft(reversed(inner))
            yield block


def render(page: Page) -> str:
    """The page as one HTML text that needs nothing else: no network, no script.

    A policy in its head forbids both, whatever names from somebody's files the page shows.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report") from None

    folder = files("wtal.figures")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    numbers = itertools.count(1)
    environment.filters["svg"] = lambda block: inline_svg(block.figure, number=next(numbers), says=block.caption)
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["forms"] = _links
    environment.tests["measure"] = lambda cell: isinstance(cell, Measure)
    template = environment.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    style = style_sheet() + "\n" + folder.joinpath("page.css").read_text(encoding="utf-8") + _choosing(page)
    return without_controls(template.render(page=page, style=style, icon=_ICON, policy=_POLICY))


def _choosing(page: Page) -> str:
    """Rules by which the chosen option is the one that is seen, without a script."""
    most = max((len(choice.options) for choice in page.choices()), default=0)
    shown = (
        f".choice:has(option:nth-child({n}):checked) > .option:nth-child({n + 1}) {{ display: block; }}"
        for n in range(1, most + 1)
    )
    return (
        "\n".join(["", "@supports selector(:has(a)) { .choice > .option { display: none; }", *shown, "}"])
        if most
        else ""
    )


def _links(table: Table) -> list[tuple[str, str, str]]:
    """Each form of a table: what it is called, the file name it is saved under, and the text as an address."""
    names = {"md": "Markdown", "tex": "LaTeX", "csv": "CSV"}
    return [
        (
            names[suffix],
            f"{table.name}.{suffix}",
            "data:text/plain;charset=utf-8," + quote(form(table) + "\n", errors="replace"),
        )
        for suffix, form in FORMS.items()
    ]


#: nothing is loaded or run; colours are set by styles inside the page, also on elements of the pictures
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

#: three bars on a line of time; a page without an icon makes browsers ask a server for one
_ICON = "data:image/svg+xml;base64," + base64.b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0072b2"/>'
    b'<path d="M2 5h5M6 8h8M3 11h6" stroke="#fff" stroke-width="2"/></svg>'
).decode("ascii")
