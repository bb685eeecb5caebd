"""The published layouts of feature sets, one reader each: a folder or file in, a `Source` out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal, get_args

from wtal.data.source import Source
from wtal.errors import InputError
from wtal.timebase import TimeBase

Layout = Literal["cola", "wtalc", "activitynet", "folder", "h5"]


@dataclass(frozen=True)
class Given:
    """What the user says about a source beside its place: annotations, tags, class list, time base."""

    gt: Path | None = None
    tags: Path | None = None
    classes: tuple[str, ...] | None = None
    timebase: TimeBase = field(default_factory=TimeBase)


def read_source(path: Path, layout: Layout, given: Given | None = None) -> Source:
    """The data set at `path`, listed: nothing but names and headers is read yet."""
    if not path.exists():
        raise InputError(f"{path} does not exist")
    read: Callable[[Path, Given], Source] = import_module(f"wtal.data.layouts.{layout}").read
    return read(path, given or Given())


def guess_layout(path: Path) -> Layout:
    """The layout of a published data set by the files it consists of."""
    if path.suffix in (".h5", ".hdf5"):
        return "h5"
    if any((path / "features" / split).is_dir() for split in ("train", "test")):
        return "cola"
    if any(path.glob("*videoname.npy")) or any(path.glob("*/videoname.npy")):
        return "wtalc"
    if any(path.glob("activity_net*.json")):
        return "activitynet"
    if any(path.glob("*.csv")):
        return "folder"
    raise InputError(f"cannot tell the layout of {path}; say it with --layout {'|'.join(get_args(Layout))}")
