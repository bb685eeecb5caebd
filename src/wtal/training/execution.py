"""How a run is carried out: what does not decide what is learned, and so is not in the recipe."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from wtal.engine import EngineOptions
from wtal.errors import InputError, MissingExtraError
from wtal.typed import check_fields

Device = Literal["auto", "cpu", "cuda"]


def leads() -> bool:
    """Whether this is the process that writes and speaks, if torchrun has started several."""
    return os.environ.get("RANK", "0") == "0"


def several() -> bool:
    """Whether torchrun has started several processes."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


@dataclass(frozen=True)
class Execution:
    """Where and how a run is computed and watched.

    Args:
        device: auto takes a GPU if there is one.
        threads: Threads of the processor, by default all. A run keeps the number that it began with.
        checkpoint_every_s: Seconds between checkpoints; a kill costs at most so much work.
        evaluate_every: Score the test videos every so many epochs on the way, for the curve in a report. Nothing is
            chosen by it.
        tensorboard: Draw curves into RUN/tensorboard.
        engine: Where new labels are made: in this process, or on a Ray cluster whose machines all see the store.
        address: Of a Ray cluster that is running, such as auto; by default one is started here.
    """

    device: Device = "auto"
    threads: int | None = None
    checkpoint_every_s: float = 300.0
    evaluate_every: int | None = None
    tensorboard: bool = False
    engine: Literal["local", "ray"] = "local"
    address: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("threads", "evaluate_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be 1 or more, got {value}")
        EngineOptions(self.engine, self.address).open()  # which refuses what does not go together
        if self.tensorboard and find_spec("tensorboard") is None:  # said before anything is written
            raise MissingExtraError("tensorboard", "tb")
