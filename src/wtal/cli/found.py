"""What `wtal localize` gives: which instances, as a table and as a file."""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from wtal.annotations import Annotations, Video
from wtal.cli.table import print_table
from wtal.errors import InputError
from wtal.formats import FORMATS, NAMES, write
from wtal.formats.form import FormatHints
from wtal.instances import Instances
from wtal.propose import Cut

if TYPE_CHECKING:
    from wtal.decide import Decision
    from wtal.evaluate.calibration import Calibration
    from wtal.looking import Seen


class Output:
    """Where instances are written and in which form, which is checked before any work."""

    def __init__(self, path: Path, form: str | None) -> None:
        self.path, self._form = path, form
        #: whether it is a page to watch
        self.page = form is None and path.suffix.lower() in (".html", ".htm")
        if self.page:
            return
        ending = next((end for end in sorted(FORMATS, key=len)[::-1] if path.name.lower().endswith(end)), None)
        if form is None and ending is None:
            raise InputError(
                f"{path} does not end with {', '.join(FORMATS)} or .html, so its form is not known; --form names one, "
                "and then -o may be a folder, for a file for each video"
            )
        module = NAMES[form] if form is not None else FORMATS[ending or ""]
        self._refuse_incomplete(module)
        #: whether it is one file for one video
        self.single = "several videos" not in module.HOLDS and ending is not None and FORMATS[ending] is module

    def _refuse_incomplete(self, module: ModuleType) -> None:
        """Refuse a form that has to be told more than is known here, such as a frame rate, while nothing is lost."""
        tried = Video("", 2.0, Instances([[0.0, 1.0]]))
        try:
            module.write(Annotations(("any",), {"any": tried}, predicted=True), FormatHints())
        except InputError as error:
            raise InputError(f"{self.path}: {error}. Write .json, and then: wtal formats convert") from error

    def check(self, names: Collection[str]) -> None:
        """Refuse several videos where one fits."""
        if not self.page and self.single and len(names) > 1:
            form = self._form or self.path.suffix.lstrip(".").lower()
            raise InputError(
                f"{self.path} can hold one video, and there are {len(names)}: -o FOLDER --form {form} writes a file "
                "for each"
            )

    def write(self, predictions: Mapping[str, Instances], classes: Sequence[str]) -> None:
        """Write the instances of all videos."""
        videos = {name: Video("", None, instances) for name, instances in predictions.items()}
        write(self.path, Annotations(tuple(classes), videos, predicted=True), form=self._form)


class Wanted:
    """Which of the instances that may be are given: all, or those that are decided for."""

    def __init__(self, everything: bool, precision: float | None, confidence: "Calibration | None") -> None:
        from wtal.localize import least_confidence

        self.everything, self.confidence = everything, confidence
        #: what the confidence must be at least
        self.least = 0.0 if everything else least_confidence(confidence, precision)

    def __call__(self, ranked: Instances) -> "Decision":
        """What is given of a video's ranked list."""
        from wtal.decide import Decision, decide

        if self.everything:
            return Decision(ranked)
        return decide(ranked, self.confidence, least_confidence=self.least)

    def said(self) -> str:
        """What the numbers mean, in a line."""
        if self.everything:
            return "ranked lists, for mAP; without --all there are decisions"
        if self.confidence is None:
            return "decisions without a confidence, which wtal calibrate RUN --features STORE fits; all there is: --all"
        return (
            f"confidence is that of the class, not of the times, by {self.confidence.source} "
            f"({self.confidence.videos} videos); all there is, for mAP: --all"
        )


#: what a table says of an odd instance
_NOTES = {"whole_video": "fills the video", "empty_flanks": "nothing beside it to compare"}


def print_found(
    title: str, seen: "Seen", decision: "Decision", classes: Sequence[str], top: int, cut: Cut | None
) -> None:
    """What happens when, the best first."""
    if not len(decision):
        print(f"{title}: nothing found")
        return
    best, sure = decision.instances[:top], decision.confidence
    rows = []
    for number, odd in enumerate(seen.marks(best, cut)):
        start, end = best.segments[number]
        # a contrast below 0 says no more to a person than 0 does
        value = f"{max(best.scores[number], 0.0):.3f}" if sure is None else f"{100 * sure[number]:.0f} %"
        rows.append(
            (
                _clock(start),
                _clock(end),
                classes[best.class_ids[number]],
                value,
                ", ".join(_NOTES[mark] for mark in odd),
            )
        )
    head = ["from", "to", "what", "score" if sure is None else "confidence", ""]
    columns = len(head) - (not any(row[-1] for row in rows))
    more = f" (the {len(best)} best of {len(decision)})" if len(best) < len(decision) else ""
    print_table(head[:columns], [row[:columns] for row in rows], title=f"{title}{more}", left=(2, 4))


def _clock(seconds: float) -> str:
    """Seconds as a player shows them.

    >>> _clock(3723.41)
    '1:02:03.4'
    """
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:{minutes:02d}" if hours else f"{minutes}") + f":{rest / 10:04.1f}"


def write_found(output: Output, found: "Mapping[str, Seen]", classes: Sequence[str], choice: Wanted) -> None:
    """Write the instances and say what came out."""
    output.check(found)
    given = {name: choice(seen.instances).written() for name, seen in found.items()}
    output.write(given, classes)
    total = sum(map(len, given.values()))
    without = sum(not len(instances) for instances in given.values())
    empty = f" ({without:,} videos without any)" if without else ""
    instances, videos = (
        f"{n:,} {what}{'' if n == 1 else 's'}" for n, what in ((total, "instance"), (len(given), "video"))
    )
    print(f"{instances} in {videos}{empty} → {output.path}\n{choice.said()}", file=sys.stderr)
    if choice.everything:
        print(f"score them:  wtal evaluate {output.path} GT.json", file=sys.stderr)
