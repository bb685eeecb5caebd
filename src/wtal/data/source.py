"""Source: a data set as somebody else laid it out on disk, listed but not yet read; a store is made from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wtal.annotations import Annotations
from wtal.data.findings import Finding
from wtal.data.streams import Streams
from wtal.data.video_record import VideoRecord
from wtal.timebase import TimeBase


@dataclass(frozen=True)
class Given:
    """What the user says about a data set beside its place: annotations, tags, class list, time base."""

    gt: Path | None = None
    tags: Path | None = None
    classes: tuple[str, ...] | None = None
    timebase: TimeBase = field(default_factory=TimeBase)


@dataclass(frozen=True)
class Source:
    """The videos that have features, how to read those, and what listing them has already found wrong.

    `load` gives one video's features by stream ("rgb" before "flow", or a single "features"), so that one
    video at a time is in memory. `truth` is kept apart from the records: training reads records only.
    """

    layout: str
    classes: tuple[str, ...]
    records: tuple[VideoRecord, ...]
    load: Callable[[str], Streams]
    truth: Annotations | None = None
    findings: tuple[Finding, ...] = field(default=())
    extraction: Mapping[str, Any] | None = None
    """What made the features, if we did."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What identifies the video file that each video's features come from, if that is known."""
