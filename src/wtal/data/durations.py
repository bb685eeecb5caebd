"""Whether the features' length, the time base and the annotated durations tell the same time."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from wtal.data.findings import Finding
from wtal.data.video_record import VideoRecord
from wtal.errors import some

SLACK = 0.1  # of the duration: extractors drop the last, incomplete snippets and some readers drop frames
SLACK_S = 3.0  # seconds on top, for short videos


@dataclass(frozen=True)
class Length:
    """A video's number of snippets, and where its last true instance ends, if that is known."""

    record: VideoRecord
    snippets: int
    last_end_s: float | None = None

    @property
    def seconds(self) -> float:
        """How long the features last on the video's time base."""
        return self.snippets * self.record.timebase.snippet_s


def check_durations(lengths: Sequence[Length]) -> list[Finding]:
    """Videos whose features last longer or shorter than the video does, or end before the last annotated action.

    If most videos disagree, one finding says so with the frame rate that would fit: the time base is wrong, not
    the videos.
    """
    timed = [(one, one.record.duration_s) for one in lengths if one.record.duration_s]
    off = [(one, d) for one, d in timed if abs(one.seconds - d) > SLACK * d + SLACK_S]
    findings = []
    if len(off) > 3 and 2 * len(off) > len(timed):
        findings.append(_rate_is_wrong(off, len(timed)))
    else:
        for one, d in off:
            clock = one.record.timebase
            what = (
                f"{one.snippets} snippets · {clock.stride_frames:g} frames / {clock.fps:g} fps = "
                f"{one.seconds:.1f} s, but the video lasts {d:.1f} s"
            )
            fix = f"its features fit {clock.fps * one.seconds / d:.1f} fps: correct fps or duration, or extract again"
            findings.append(Finding("warning", one.record.name, what, fix))
    ended = [
        one
        for one in lengths
        if not one.record.duration_s
        and one.last_end_s is not None
        and one.last_end_s > (1 + SLACK) * one.seconds + SLACK_S
    ]
    if ended:
        first = ended[0]
        what = (
            f"{len(ended)} videos have actions after the end of their features: "
            f"{some([one.record.name for one in ended])} (the first: {first.last_end_s:.1f} s, features "
            f"end at {first.seconds:.1f} s)"
        )
        findings.append(Finding("warning", None, what, "the features are cut off or the fps is wrong: --fps"))
    return findings


def _rate_is_wrong(off: list[tuple[Length, float]], n: int) -> Finding:
    factor = median(one.seconds / d for one, d in off)
    clock = off[0][0].record.timebase
    what = (
        f"{len(off)} of {n} videos do not last as long as their features say at {clock.fps:g} fps and "
        f"{clock.stride_frames:g} frames per snippet"
    )
    fix = (
        f"--fps {clock.fps * factor:.1f} would fit the median video; features resampled to a fixed number per "
        f"video need --stretch"
    )
    return Finding("error", None, what, fix)
