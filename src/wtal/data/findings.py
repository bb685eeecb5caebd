"""Findings: what is wrong with a data set, where, and what to do about it."""

from collections.abc import Iterable
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


def only_errors(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that are errors."""
    return [finding for finding in findings if finding.severity == "error"]
