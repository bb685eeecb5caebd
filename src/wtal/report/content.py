"""What a report's sections are about: the runs, and what was measured of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wtal.annotations import Annotations
from wtal.figures.page import Section, Text
from wtal.figures.plots import Line
from wtal.report.measures import GenerationQuality, Measured
from wtal.report.runs import Group, Loaded


@dataclass(frozen=True, eq=False)
class Content:
    """What the sections are about. `measured` and `labels` are empty where the data set is not at hand."""

    loaded: Loaded
    protocol: str
    truth: Annotations | None
    measured: Mapping[str, Measured]
    targets: Mapping[str, Sequence[GenerationQuality]]

    @property
    def groups(self) -> tuple[Group, ...]:
        """The compared recipes."""
        return self.loaded.groups

    def of(self, group: Group) -> list[Measured]:
        """What was measured of a group's runs."""
        return [self.measured[one.name] for one in group.runs if one.name in self.measured]

    @property
    def known(self) -> list[Group]:
        """The groups of which anything was measured."""
        return [group for group in self.groups if self.of(group)]


def nothing(name: str, title: str) -> Section:
    """A section that says why it is empty."""
    said = "Nothing to show: it needs the data set with its truth, and predictions of a run that has ended."
    return Section(name, title, (Text(said, "warning"),))


def over_seeds(name: str, number: int, x: Sequence[float], curves: Sequence[Sequence[float]]) -> Line:
    """A line with points and their spread over seeds."""
    values = np.array(curves, dtype=np.float64)
    spread = values.std(axis=0, ddof=1).tolist() if len(values) > 1 else None
    return Line(name, x, values.mean(axis=0).tolist(), number, spread, marker="o")
