"""Published layouts by name: a folder or file in, a `Source` out.

A new layout is one file here, with `read(path, given)` and `looks_like(path)`, and its name in `LAYOUTS`.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from wtal.data.source import Given, Source
from wtal.errors import InputError

#: modules of this package, in the order in which a data set is tried on them
LAYOUTS = ("h5", "cola", "wtalc", "activitynet", "folder")


def read_source(path: Path, layout: str | None = None, given: Given | None = None) -> Source:
    """The data set at `path`, listed: nothing but names and headers is read yet.

    Args:
        path: Folder or file of the data set.
        layout: One of `LAYOUTS`; by default the one that the files look like.
        given: What the user says beside that.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist")
    known = given or Given()
    source: Source = _module(layout or guess_layout(path, known)).read(path, known)
    return source


def guess_layout(path: Path, given: Given | None = None) -> str:
    """The layout of a data set by its files; a folder that looks like none, but has tags, is one's own."""
    for layout in LAYOUTS:
        if _module(layout).looks_like(path):
            return layout
    if given is not None and given.tags is not None and path.is_dir():
        return "folder"
    raise InputError(f"cannot tell the layout of {path}; say it with `layout={'|'.join(LAYOUTS)}`")


def _module(layout: str) -> Any:
    if layout not in LAYOUTS:
        raise InputError(f"no layout {layout!r}; there are {', '.join(LAYOUTS)}")
    return import_module(f"wtal.data.layouts.{layout}")
