"""The card of a trained model: what has to be known beside its weights, and the folder where both lie."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wtal.errors import InputError
from wtal.evaluate.calibration import Calibration
from wtal.files import written_whole
from wtal.pool import Pooling
from wtal.propose import Proposer
from wtal.reading import names_of, read_json, refusing
from wtal.timebase import TimeBase
from wtal.typed import as_path, parse, plain
from wtal.video.extractor import Extraction

VERSION = 2


@dataclass(frozen=True)
class Card:
    """What has to be known beside a model's weights to localize with it."""

    model: str
    classes: tuple[str, ...]
    dimensions: int
    model_options: Mapping[str, Any] = field(default_factory=dict)
    proposer: Proposer = field(default_factory=Proposer)
    timebase: TimeBase = field(default_factory=TimeBase)
    """How the snippets of the training videos lie on their clocks: that of any video that does not say its own."""
    offset_snippets: float | None = None
    """Where the first snippet starts on a video's clock; None: as the video's own time base says."""
    stream_weights: Mapping[str, float] = field(default_factory=dict)
    """What each stream's model counts; empty: one model for all features."""
    segments: int | None = None
    """How many snippets of a longer video the model is shown, evenly spread; None: all."""
    extraction: Extraction | None = None
    """What the features were made with; None if that is not known."""
    pool: Pooling | None = None
    """How the instances of a detector and of its teachers, which lie beside it, become one set; None: no detector."""
    teachers: int = 1
    """How many teachers a detector has; of no meaning without `pool`."""
    streams: Mapping[str, int] = field(default_factory=dict)
    """The widths of the streams that the features consist of, from left to right."""
    calibration: Calibration | None = None
    """How likely the class of an instance is right, of instances by this card's proposer; None: not known."""
    version: int = VERSION

    @property
    def offset(self) -> float:
        """Where the first snippet starts on the clock of a video that does not say its own."""
        return self.timebase.offset_snippets if self.offset_snippets is None else self.offset_snippets


def model_folder(run: Path | str) -> Path:
    """Where the model of a run lies; a folder that holds a model is its own."""
    return Path(run) if (Path(run) / "model.json").is_file() else Path(run) / "model"


def teacher_folder(folder: Path, number: int) -> Path:
    """Where a detector's teacher lies in the folder of the detector's own model; teachers count from 0.

    >>> [teacher_folder(Path("model"), number).as_posix() for number in range(2)]
    ['model/teacher', 'model/teacher-2']
    """
    return folder / ("teacher" if not number else f"teacher-{number + 1}")


def write_card(folder: Path, card: Card) -> None:
    """Write what has to be known beside the weights into the folder of a model."""
    with written_whole(folder / "model.json") as file:
        json.dump(plain(card), file, indent=1, ensure_ascii=False)
        file.write("\n")


def read_card(run: Path | str) -> Card:
    """What a finished run says about its model."""
    path = model_folder(as_path(run, "run")) / "model.json"
    if not path.is_file():
        unfinished = (Path(run) / "config.yaml").exists()
        hint = (
            "it has not ended: go on with wtal train --resume" if unfinished else "is it a folder that wtal train made?"
        )
        raise InputError(f"{run} holds no trained model ({path.name}); {hint}")
    with refusing(path):
        content = read_json(path)
        found = content.get("version") if isinstance(content, dict) else None
        if found != VERSION:  # said before a key that has another name by now is called unknown
            raise InputError(
                f"{path} was written by another version of wtal (form {found}, this one reads {VERSION}): train again"
            )
        card = parse(Card, content)
        names_of(card.classes, "classes")
    return card
