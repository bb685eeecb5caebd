"""What a run was taught of its training videos: pseudo labels generation by generation, and the boxes of a detector."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from wtal.formats import read_predictions
from wtal.formats.targets import TargetFile, read_targets
from wtal.instances import Instances
from wtal.pseudo.delta import delta_targets
from wtal.training.run import Run
from wtal.view.records import Record, curve, records


class Taught:
    """What a run was taught; a file is read when it is first needed.

    Args:
        run: The run's folder.
        classes: The names of its classes.
    """

    def __init__(self, run: Path | str, classes: Sequence[str]) -> None:
        self._run, self._classes = Run(Path(run)), classes

    @cached_property
    def _targets(self) -> dict[int, TargetFile]:
        paths = {epoch: self._run.targets(epoch) for epoch in self._run.metrics().generations}
        return {epoch: read_targets(path) for epoch, path in paths.items() if path.exists()}

    @cached_property
    def _boxes(self) -> dict[str, Instances]:
        return read_predictions(self._run.boxes, self._classes) if self._run.boxes.exists() else {}

    def boxes(self, name: str) -> list[Record]:
        """The boxes of a video that a detector was taught, scored by their weights, the heaviest first."""
        return records(self._boxes[name].sorted(), self._classes) if name in self._boxes else []

    def curves(self, name: str, labels: Sequence[str]) -> list[Record]:
        """The pseudo labels of these classes in a video, and how they changed; nothing of an unknown video."""
        curves: list[Record] = []
        for label in labels:
            before = None
            for epoch, file in self._targets.items():
                if name not in file.targets or label not in file.classes:
                    continue
                now = file.targets[name][:, [file.classes.index(label)]]
                curves.append(curve(f"epoch {epoch}", "target", label, now[:, 0]))
                if before is not None:
                    curves.append(curve(f"epoch {epoch}", "delta", label, delta_targets(now, before)[:, 0]))
                before = now
        return curves
