"""I3D's weights in the files that people have: the PyTorch conversions of the published TensorFlow checkpoints."""

import re
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from wtal.errors import InputError
from wtal.reading import refusing
from wtal.video.i3d import CHANNELS, I3D
from wtal.video.published import CONVERSIONS, Conversion
from wtal.video.weights import folded, read_state, sha256


@dataclass(frozen=True)
class WeightFile:
    """What a file of weights turned out to be."""

    path: Path
    conversion: str
    stream: str
    sha256: str


def load_i3d(path: Path, stream: str | None = None) -> tuple[I3D, WeightFile]:
    """The network whose weights are in a file; a file of another network or stream is refused with what is wrong."""
    with refusing(path, "is not a file of weights of I3D"):
        return _load(path, read_state(path), stream)


def _load(path: Path, tensors: dict[str, Tensor], stream: str | None) -> tuple[I3D, WeightFile]:
    conversion = _recognise(path, tensors)
    kernel = tensors[conversion.names("Conv3d_1a_7x7")["kernel"]]
    found = next(
        (name for name, channels in CHANNELS.items() if kernel.ndim == 5 and kernel.shape[1] == channels), None
    )
    if found is None:
        raise InputError(
            f"{path}: the first layer has shape {tuple(kernel.shape)}, wanted 3 (rgb) or 2 (flow) channels"
        )
    if stream not in (None, found):
        raise InputError(f"{path} is the {found} stream of I3D, wanted {stream}")
    network = I3D(found)
    with torch.no_grad():
        for name, unit in network.units().items():
            names = conversion.names(name)
            weight, bias = folded(tensors, names["kernel"], names["weight"].removesuffix(".weight"))
            if weight.shape != unit.weight.shape:
                raise InputError(
                    f"{path}: {names['kernel']} has shape {tuple(weight.shape)}, wanted {tuple(unit.weight.shape)}"
                )
            unit.weight.copy_(weight)
            unit.bias.copy_(bias)  # type: ignore[union-attr]
    return network.eval(), WeightFile(path, conversion.name, found, sha256(path))


def _recognise(path: Path, tensors: dict[str, Tensor]) -> Conversion:
    """The conversion whose names the file has, all of them; other tensors, such as the classifier's, do no harm."""
    units = I3D("rgb").units()
    found = []
    for conversion in CONVERSIONS:
        wanted = [name for unit in units for name in conversion.names(unit).values()]
        found.append((conversion, [name for name in wanted if name not in tensors]))
    nearest, lacking = min(found, key=lambda pair: len(pair[1]))
    if not lacking:
        return nearest
    total = 5 * len(units)
    raise InputError(
        f"{path} is not an Inception-v1 I3D that is known here. Nearest to {nearest.name} ({nearest.published}), but "
        f"{len(lacking)} of {total} tensors are missing, such as {', '.join(lacking[:3])}; the file has "
        f"{', '.join(sorted(tensors)[:3])}, … ({_family(tensors)})"
    )


def _family(tensors: dict[str, Tensor]) -> str:
    """A guess at what a file is instead."""
    if any(re.search(r"(layer|res)[1-5]", name) for name in tensors):
        return "the names look like a ResNet: ResNet-50 I3D is another network"
    return f"{len(tensors)} tensors"
