"""How plots look: one palette for files and for pages, where every colour follows the reader's light or dark."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from wtal.errors import MissingExtraError
from wtal.files import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Colour:
    """A colour by its name in the page's style sheet, on a light and on a dark ground."""

    name: str
    light: str
    dark: str


#: Okabe and Ito's palette, which the colour-blind tell apart; in grey, lines differ by their dashes, bars by hatches.
BLUE = Colour("blue", "#0072b2", "#58a6e0")
VERMILLION = Colour("vermillion", "#d55e00", "#ff8c42")
GREEN = Colour("green", "#009e73", "#35c997")
PURPLE = Colour("purple", "#b0578d", "#dd8fbd")
ORANGE = Colour("orange", "#c98500", "#f0b429")
SKY = Colour("sky", "#3a9fd6", "#8fd0f5")
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
DASHES = ("-", (0, (6, 2)), (0, (2, 2)), (0, (8, 2, 2, 2)), (0, (4, 1, 1, 1, 1, 1)), (0, (1, 1)))
HATCHES = ("", "////", "....", "xxxx", "----", "||||")

TEXT = Colour("text", "#1c2128", "#e6e9ee")
MUTED = Colour("muted", "#59636e", "#9aa4b2")
LINE = Colour("line", "#d0d7de", "#3a424d")
GROUND = Colour("ground", "#ffffff", "#14181e")
COLOURS = (*SERIES, TEXT, MUTED, LINE, GROUND)

FONT_SIZE = 10.0


def series(number: int) -> Colour:
    """The colour of the nth thing that is compared; they come round after six."""
    return SERIES[number % len(SERIES)]


@contextmanager
def styled() -> Iterator[None]:
    """Make figures inside this block, so that they have the style."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None
    settings = {
        "font.size": FONT_SIZE,
        "axes.titlesize": FONT_SIZE,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.labelsize": FONT_SIZE - 1,
        "xtick.labelsize": FONT_SIZE - 1,
        "ytick.labelsize": FONT_SIZE - 1,
        "legend.fontsize": FONT_SIZE - 1,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": LINE.light,
        "axes.labelcolor": MUTED.light,
        "axes.titlecolor": TEXT.light,
        "axes.facecolor": "none",
        "figure.facecolor": GROUND.light,
        "text.color": TEXT.light,
        "xtick.color": LINE.light,
        "ytick.color": LINE.light,
        "xtick.labelcolor": MUTED.light,
        "ytick.labelcolor": MUTED.light,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": LINE.light,
        "grid.linewidth": 0.6,
        "lines.linewidth": 1.6,
        "hatch.linewidth": 1.1,
        "svg.fonttype": "none",
        "svg.hashsalt": "wtal",
        "text.parse_math": False,  # a dollar in somebody's class name is a dollar
    }
    with mpl.rc_context(settings):  # type: ignore[arg-type]
        yield


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of so many inches, in the style."""
    with styled():
        from matplotlib.figure import Figure

        return Figure(figsize=(width, height), layout="constrained")


def without_grid(axis: "Axes") -> None:
    """Leave out the lines behind the data and the marks of the vertical axis."""
    axis.grid(False)
    axis.tick_params(axis="y", length=0)


def save_figure(path: Path | str, figure: "Figure") -> None:
    """Write the figure as the suffix says (PNG, SVG, PDF); the same data give the same bytes."""
    path = Path(path)
    kind = path.suffix.lstrip(".") or "png"
    if kind == "svg":
        with written_whole(path) as text:
            text.write(_svg(figure, transparent=False))
        return
    with written_whole(path, "wb") as file, styled():
        figure.savefig(file, format=kind, dpi=160, metadata={"CreationDate": None} if kind == "pdf" else None)


def _svg(figure: "Figure", *, transparent: bool) -> str:
    """The figure as SVG, with names inside it by their order instead of by addresses in memory."""
    file = io.StringIO()
    with styled(), warnings.catch_warnings():
        # the text of an SVG stays text: its reader's fonts have letters that matplotlib's has not
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(file, format="svg", transparent=transparent, metadata={"Date": None, "Creator": None})
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", without_controls(file.getvalue()), flags=re.DOTALL)
    names: dict[str, str] = {}
    return re.sub(r"\b[hmpC][0-9a-f_]{10,}\b", lambda found: names.setdefault(found[0], f"n{len(names)}"), text)


def inline_svg(figure: "Figure", *, number: int, says: str) -> str:
    """The figure as an SVG element for a page: its colours are the page's, `says` is what it shows, for a reader
    who does not see it; its number keeps its inner names apart from other figures'."""
    text = _svg(figure, transparent=True)
    text = text[text.index("<svg") :]
    text = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>f{number}-", text)
    for colour in COLOURS:
        text = text.replace(colour.light, f"var(--{colour.name})")
    start = re.match(r'<svg[^>]*viewBox="([^"]*)"[^>]*>', text)
    assert start is not None
    width = float(start.group(1).split()[2])
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{escape(says)}" viewBox="{start.group(1)}" style="max-width: {1.45 * width:.0f}px">'
    )
    return opening + text[start.end() :]


def without_controls(text: str) -> str:
    """The text with a mark in place of each character that XML forbids, which would break a picture or page."""
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


def style_sheet() -> str:
    """The palette as CSS: variables for light, for dark, and light again on paper."""

    def variables(shade: str) -> str:
        return " ".join(f"--{colour.name}: {getattr(colour, shade)};" for colour in COLOURS)

    return (
        f":root {{ {variables('light')} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables('dark')} }} }}"
    )
