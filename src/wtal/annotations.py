"""Annotations: what is known about the videos of a data set, as evaluation and training need it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wtal.errors import InputError
from wtal.instances import Instances


@dataclass(frozen=True)
class Video:
    """One video's split, duration (None where unknown) and true instances in seconds."""

    split: str
    duration_s: float | None
    instances: Instances
    untimed: tuple[str, ...] = ()
    """Names of classes that are annotated without a proper segment: they are tags, but no instances."""


@dataclass(frozen=True)
class Annotations:
    """The class names, in the order that label numbers refer to, and the videos by name."""

    classes: tuple[str, ...]
    videos: dict[str, Video] = field(default_factory=dict)

    def tags(self, name: str) -> tuple[str, ...]:
        """The names of the classes that a video carries, sorted."""
        video = self.videos[name]
        return tuple(sorted({self.classes[number] for number in video.instances.class_ids} | set(video.untimed)))

    def of_split(self, names: str | Iterable[str]) -> "Annotations":
        """The videos of one split, or of any of several names for it ("validation", "val").

        >>> video = Video("test", 10.0, Instances.empty())
        >>> list(Annotations(("Run",), {"a": video}).of_split("test").videos)
        ['a']
        """
        wanted = {names} if isinstance(names, str) else set(names)
        chosen = {name: video for name, video in self.videos.items() if video.split in wanted}
        if not chosen:
            there = sorted({video.split for video in self.videos.values()})
            raise InputError(f"no video of split {' or '.join(sorted(wanted))}; the file has {there}")
        return Annotations(self.classes, chosen)
