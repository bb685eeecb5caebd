"""What commands show while they work: the bars of `wtal.bars`, and what is noted below them."""

from collections.abc import Mapping
from typing import Any

from wtal.bars import showing

__all__ = ["at_video", "showing"]


def at_video(detail: Mapping[str, Any]) -> str:
    """What is counted where features are extracted, and the video it is at."""
    return f"seconds of video; at {detail['video']}"
