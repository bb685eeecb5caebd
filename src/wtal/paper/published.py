"""Figures that others have published, with where they stand."""

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from wtal.figures.table import Measure


@cache
def published(table: str) -> dict[str, Any]:
    """One of the paper's tables.

    >>> published("components")["rows"]["base"]
    [55.8, 38.2, 12.5, 45.1]
    """
    text = files("wtal.paper").joinpath("published.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)[table]
    return content


def cells(figures: list[float | None] | None, n: int) -> tuple[Measure | None, ...]:
    """Published figures as cells of a table; dashes where there are none."""
    return tuple(None if value is None else Measure((value,)) for value in figures or [None] * n)
