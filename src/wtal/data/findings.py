"""Findings: what is wrong with a data set, where, and what to do about it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. An error would break training or falsify its figures; a warning may be meant.

    `video` is None where the finding is about the data set as a whole.
    """

    severity: Severity
    video: str | None
    what: str
    fix: str

    def __str__(self) -> str:
        where = f"{self.video}: " if self.video else ""
        return f"{where}{self.what}; {self.fix}"


def some(names: Sequence[str], shown: int = 5) -> str:
    """The first few names and how many more there are.

    >>> some(["a", "b", "c"], shown=2)
    'a, b and 1 more'
    """
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that are errors."""
    return [finding for finding in findings if finding.severity == "error"]
