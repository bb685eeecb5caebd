"""The evaluation protocols as data: which videos, thresholds and clock, and whether a list of intervals is on."""

from dataclasses import dataclass, replace
from pathlib import Path

from wtal.errors import InputError

_TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_TWENTIETHS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


@dataclass(frozen=True)
class Protocol:
    """One way of scoring predictions, complete: two people who name it get the same number.

    Args:
        name: What tables call it.
        tiou: Thresholds of tIoU from which a prediction counts as right.
        averages: Ranges of thresholds that are reported as one number.
        splits: Names under which the evaluated videos appear in annotation files.
        excluded_videos: Videos of these splits that are left out.
        whole_snippets: Whether truth is rounded and predictions are cut down to whole snippets.
        ambiguous: A file of intervals; predictions that touch one are dropped (see `wtal.evaluate.read_ambiguous`).
        length_bins_s: Edges between short and long instances in the diagnosis.
    """

    name: str
    tiou: tuple[float, ...]
    averages: tuple[tuple[float, float], ...]
    splits: tuple[str, ...]
    excluded_videos: tuple[str, ...] = ()
    whole_snippets: bool = False
    ambiguous: Path | None = None
    length_bins_s: tuple[float, ...] = (3.0, 6.0, 12.0, 18.0)


_THUMOS14 = Protocol(
    "thumos14",
    tiou=_TENTHS,
    averages=((0.1, 0.5), (0.3, 0.7), (0.1, 0.7)),
    splits=("test", "Test", "testing"),
    # annotated wrongly or not at all; without them the test set is the 210 videos of the field's tables
    excluded_videos=("video_test_0000270", "video_test_0001292", "video_test_0001496"),
)
_WTALC = replace(_THUMOS14, name="thumos14-wtalc", excluded_videos=(), whole_snippets=True)
_PAPER = replace(_WTALC, name="thumos14-paper", ambiguous=Path(__file__).with_name("thumos14_ambiguous.txt"))
_ACTIVITYNET13 = Protocol(
    "activitynet13",
    tiou=_TWENTIETHS,
    averages=((0.5, 0.95),),
    splits=("validation", "val"),
    length_bins_s=(30.0, 60.0, 120.0, 180.0),
)

#: name -> protocol: a new one is an entry here
PROTOCOLS = {protocol.name: protocol for protocol in (_THUMOS14, _WTALC, _PAPER, _ACTIVITYNET13)}


def protocol_named(protocol: str | Protocol) -> Protocol:
    """The protocol of that name, or the given one itself.

    >>> protocol_named("activitynet13").averages
    ((0.5, 0.95),)
    """
    if isinstance(protocol, Protocol):
        return protocol
    if protocol not in PROTOCOLS:
        raise InputError(f"no protocol {protocol!r}; there are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]
