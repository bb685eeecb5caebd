"""What notebooks show of results: timelines, curves and tables; escaped SVG and HTML, readable in light and dark."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Any

#: Okabe and Ito's colours, which differ for all eyes and on white and black alike
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_WIDTH, _LEFT, _LANE = 640, 130, 18
#: lanes that are drawn; more are counted
_MOST = 24

#: start, end, opacity, and what is told of it when pointed at
Bar = tuple[float, float, float, str]


def timeline(lanes: Mapping[str, Sequence[Bar]], unit: str, *, of_one_colour: int = 1) -> str:
    """Lanes of bars over one axis of time, as SVG.

    Args:
        lanes: The bars of each lane, by its name.
        unit: What the axis counts.
        of_one_colour: How many lanes share a colour.
    """
    shown = dict(list(lanes.items())[:_MOST])
    low = min([0.0, *(bar[0] for bars in shown.values() for bar in bars)])
    high = max([low + 1e-9, *(bar[1] for bars in shown.values() for bar in bars)])
    scale = (_WIDTH - _LEFT - 10) / (high - low)
    parts = []
    for row, (name, bars) in enumerate(shown.items()):
        y, colour = row * _LANE, COLOURS[row // of_one_colour % len(COLOURS)]
        parts.append(_text(_LEFT - 8, y + 13, _short(name), "end", title=name))
        for start, stop, opacity, told in sorted(bars, key=lambda bar: bar[2]):
            x, width = _LEFT + (start - low) * scale, max(1.5, (stop - start) * scale)
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{_LANE - 5}" rx="2" fill="{colour}" '
                f'fill-opacity="{opacity:.2f}"><title>{escape(told)}</title></rect>'
            )
    bottom = len(shown) * _LANE
    for at in _ticks(low, high):
        x = _LEFT + (at - low) * scale
        parts.append(f'<path d="M{x:.1f} 0V{bottom + 3}" stroke="currentColor" stroke-opacity=".2"/>')
        parts.append(_text(x, bottom + 15, f"{at:g}", "middle"))
    more = f" · {len(lanes) - _MOST} more classes" if len(lanes) > _MOST else ""
    parts.append(_text(_LEFT - 8, bottom + 15, unit + more, "end"))
    return _svg(parts, bottom + 20)


def curves(values: Mapping[str, Sequence[float]], unit: str) -> str:
    """One lane for each curve, filled from 0 to the largest value of all, as SVG."""
    shown = dict(list(values.items())[:_MOST])
    top = max([1e-12, *(abs(value) for curve in shown.values() for value in curve)])
    count = max([1, *map(len, shown.values())])
    height, step = 2 * _LANE, (_WIDTH - _LEFT - 10) / count
    parts = []
    for row, (name, curve) in enumerate(shown.items()):
        base = (row + 1) * height - 2
        parts.append(_text(_LEFT - 8, base - 8, _short(name), "end", title=name))
        line = "".join(
            f"L{_LEFT + i * step:.1f} {base - value / top * (height - 6):.1f}h{step:.2f}"
            for i, value in enumerate(curve)
        )
        colour = COLOURS[row % len(COLOURS)]
        path = f"M{_LEFT} {base}{line}V{base}Z"
        parts.append(f'<path d="{path}" fill="{colour}" fill-opacity=".6"><title>{escape(name)}</title></path>')
    bottom = len(shown) * height
    for at in _ticks(0.0, float(count)):
        parts.append(_text(_LEFT + at * step, bottom + 15, f"{at:g}", "middle"))
    parts.append(_text(_LEFT - 8, bottom + 15, f"{unit}, up to {top:.2g}", "end"))
    return _svg(parts, bottom + 20)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A plain HTML table; notebooks give it their own style."""
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    whole = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div style="overflow-x:auto"><table style="color:inherit">{whole}</table></div>'


def data_frame(columns: Mapping[Any, Any], index: Any = None) -> Any:
    """A pandas DataFrame; pandas is loaded here, and wtal does without it elsewhere."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas() needs pandas, which is not installed: pip install pandas") from error
    return pandas.DataFrame(dict(columns), index=index)


def _svg(parts: list[str], height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'style="max-width:100%;height:auto" font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def _short(name: str) -> str:
    return name if len(name) < 18 else f"{name[:15]}…"


def _text(x: float, y: float, text: str, anchor: str, *, title: str = "") -> str:
    told = f"<title>{escape(title)}</title>" if title else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">{escape(text)}{told}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Round places, five to twelve of them.

    >>> _ticks(0.0, 44.0)
    [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]
    """
    rough = (high - low) / 10
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return [round(i * step, 10) for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]
