"""The run's curves for TensorBoard: metrics.jsonl, which stays the record, drawn."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wtal.errors import InputError


@contextmanager
def curves(run: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that draws lines of the run's log: `training/NAME` over epochs, or `EVENT/NAME`.

    What the log holds already is drawn afresh, so that a resumed run's curves are those of one that never stopped.
    """
    from torch.utils.tensorboard import SummaryWriter

    folder, log = run / "tensorboard", run / "metrics.jsonl"
    try:
        shutil.rmtree(folder, ignore_errors=True)
        writer = SummaryWriter(folder)

        def draw(line: Mapping[str, Any]) -> None:
            values = {name: value for name, value in line.items() if name not in ("epoch", "event")}
            for tag, value in _tagged(line.get("event", "training"), values):
                writer.add_scalar(tag, value, line["epoch"])
            writer.flush()

        try:
            for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
                draw(json.loads(line))
            yield draw
        finally:
            writer.close()
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}; `resume=True` goes on") from error


def _tagged(tag: str, value: Any) -> Iterator[tuple[str, float]]:
    """The numbers in nested mappings, each with the path of names to it.

    >>> list(_tagged("mAP", {"thumos14": {"0.1:0.7": 45.0}}))
    [('mAP/thumos14/0.1:0.7', 45.0)]
    """
    if not isinstance(value, Mapping):
        yield tag, float(value)
        return
    for name, part in value.items():
        yield from _tagged(f"{tag}/{name}", part)
