"""Extractors: what turns the frames of a snippet into a vector, by name, and what identifies the one that was used."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32, UInt8

from wtal.errors import EXTRA_OF, InputError, MissingExtraError
from wtal.named import look_up
from wtal.typed import differences, parse, plain
from wtal.video.decode import Geometry
from wtal.video.snippets import Sampling

Prepared = Mapping[str, np.ndarray]
FlowMethod = Literal["tvl1", "dis"]

#: name -> "module:function" of what makes it from (options, device)
EXTRACTORS = {
    "frames": "wtal.video.frames:make",
    "i3d": "wtal.video.two_stream:make",
    "i3d-rgb": "wtal.video.two_stream:make",
    "i3d-flow": "wtal.video.two_stream:make",
}
#: name -> the extra with all that it needs
EXTRAS = {"frames": "frames", "i3d": "flow", "i3d-rgb": "video", "i3d-flow": "flow"}


@dataclass(frozen=True)
class ExtractorOptions:
    """What a user says about the features that are wanted."""

    extractor: str = "frames"
    """frames (no download), i3d, i3d-rgb, i3d-flow, or your own as module:attribute."""
    weights: Path | None = None
    """I3D's RGB weights (see wtal weights)."""
    flow_weights: Path | None = None
    """I3D's flow weights (see wtal weights)."""
    flow: FlowMethod | None = None
    """Optical flow of I3D: tvl1, as the published features (the default), or dis, which is much faster."""


@dataclass(frozen=True)
class Extraction:
    """Everything that decides what a video's features are. It is kept with the store and with the trained model."""

    extractor: str
    sampling: Sampling = field(default_factory=Sampling)
    flow: FlowMethod | None = None
    weights: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each weight file, by stream."""
    version: str | None = None
    """What a user's own extractor says of itself."""

    def refuse_other(self, other: "Extraction", whose: str, wanted_by: str) -> None:
        """Make sure that features of the two mean the same."""
        changed = differences(plain(self), plain(other))
        if changed:
            raise InputError(f"{whose} differ from those that {wanted_by} was made with: {'; '.join(changed)}")


def read_extraction(given: Mapping[str, Any] | None) -> Extraction | None:
    """What a store says that its features were made with; None if they come from elsewhere."""
    return None if given is None else parse(Extraction, given, "extraction")


class Extractor:
    """The base of extractors. `prepare` runs in the threads that decode, `vectors` where the network is."""

    geometry = Geometry()
    """The size of the frames it wants."""
    batch_snippets = 16
    """Snippets that it takes at a time."""
    streams: Mapping[str, int]
    """The parts of its vectors, left to right, and their lengths."""
    weights: Mapping[str, str] = {}
    version: str | None = None
    flow: FlowMethod | None = None

    def picks(self, length_frames: int) -> tuple[int, ...]:
        """The frames of a snippet that it wants; the number `length_frames` is the frame after the snippet."""
        return tuple(range(length_frames))

    def prepare(self, frames: UInt8[np.ndarray, "p h w 3"]) -> Prepared:
        """What the network wants of one snippet, as far as it is work for the processor."""
        return {"frames": frames}

    def vectors(self, batch: Prepared) -> Float32[np.ndarray, "n d"]:
        """A vector for each snippet; `batch` holds what was prepared, stacked."""
        raise NotImplementedError


class Own(Extractor):
    """A user's function from frames (length, height, width, 3), RGB bytes, to a vector; or a class of such.

    It may carry `short_side` and `crop` (pixels; by default frames of 256 on the shorter side, uncut) and `version`.
    """

    def __init__(self, name: str, given: Any) -> None:
        self._name = name
        self._call = given() if isinstance(given, type) else given
        if not callable(self._call):
            raise InputError(f"{name} must be a function from frames to a vector, or a class of such, got {given!r}")
        self.geometry = Geometry(getattr(self._call, "short_side", 256), getattr(self._call, "crop", None))
        self.version = getattr(self._call, "version", None)
        self.streams = {}

    def vectors(self, batch: Prepared) -> Float32[np.ndarray, "n d"]:
        """The function's vectors, checked."""
        rows = [np.asarray(self._call(frames), dtype=np.float32) for frames in batch["frames"]]
        d = self.streams.get("features", rows[0].size)
        for row in rows:
            if row.shape != (d,) or not d or not np.isfinite(row).all():
                what = f"an array of shape {row.shape}" if np.isfinite(row).all() else "values that are not finite"
                raise InputError(f"{self._name} must give a vector of {d} finite numbers, got {what}")
        self.streams = {"features": d}
        return np.stack(rows)


def open_extractor(
    options: ExtractorOptions, sampling: Sampling, *, device: str = "auto"
) -> tuple[Extractor, Extraction]:
    """The extractor that is asked for, ready to run, and what identifies it and its features."""
    try:
        found = look_up(options.extractor, EXTRACTORS, "extractor")
    except ModuleNotFoundError as error:
        if error.name is None or error.name not in EXTRA_OF:
            raise
        raise MissingExtraError(error.name, EXTRAS.get(options.extractor, "video")) from error
    if options.extractor in EXTRACTORS:
        extractor: Extractor = found(options, device)
    else:
        refuse_unused(options, ())
        extractor = Own(options.extractor, found)
    weights = dict(extractor.weights)
    return extractor, Extraction(options.extractor, sampling, extractor.flow, weights, extractor.version)


def refuse_unused(options: ExtractorOptions, used: tuple[str, ...]) -> None:
    """Make sure that no option is given that the extractor does not have."""
    for name in ("weights", "flow_weights", "flow"):
        if name not in used and getattr(options, name) is not None:
            option = name.replace("_", "-")
            raise InputError(f"the extractor {options.extractor} has no use for --{option}; leave it out")
