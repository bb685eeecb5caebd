"""From activation maps to instances in seconds: the test-time half of the paper."""

from collections.abc import Callable, Iterable

from wtal.formats.tcam import VideoMap
from wtal.instances import Instances
from wtal.propose import Proposer
from wtal.timebase import TimeBase


def localize_maps(
    videos: Iterable[VideoMap],
    proposer: Proposer,
    timebase: TimeBase,
    *,
    track: Callable[..., Iterable[VideoMap]] = iter,
) -> dict[str, Instances]:
    """Instances of each video in seconds, by name; `track` may wrap the loop in a progress bar."""
    return {
        video.name: timebase.instances_to_seconds(proposer(video.tcam, video.video_scores).instances)
        for video in track(videos)
    }
