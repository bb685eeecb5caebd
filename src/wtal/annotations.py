"""Annotations: what is known about the videos of a data set, as evaluation and training need it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wtal.errors import InputError
from wtal.instances import Instances


@dataclass(frozen=True)
class Video:
    """What is known of one video.

    Args:
        split: The part of the data set that the video belongs to, by the name that the annotation file uses.
        duration_s: How long the video is; None where that is not known.
        instances: Its true instances in seconds.
        untimed: Names of classes that are annotated without a proper segment: they are tags, but no instances.
    """

    split: str
    duration_s: float | None
    instances: Instances
    untimed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Annotations:
    """The classes and videos of a data set.

    Args:
        classes: Names of the classes; class id `i` means `classes[i]`.
        videos: The videos by name.
        predicted: Whether the instances are a model's, so that their scores mean something.
    """

    classes: tuple[str, ...]
    videos: dict[str, Video] = field(default_factory=dict)
    predicted: bool = False

    def tags(self, name: str) -> tuple[str, ...]:
        """The names of the classes that a video carries, sorted."""
        video = self.videos[name]
        return tuple(sorted({self.classes[number] for number in video.instances.class_ids} | set(video.untimed)))

    def of_split(self, names: str | Iterable[str]) -> "Annotations":
        """The videos of one split.

        Args:
            names: Its name, or several names that data sets use for it ("validation", "val").

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
