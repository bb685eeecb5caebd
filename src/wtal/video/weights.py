"""Weight files from elsewhere: read without running code, and known by their content."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from wtal.errors import InputError
from wtal.reading import refusing


def sha256(path: Path) -> str:
    """The file's SHA-256, by which a run knows its extractor's weights."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read the weights {path}: {error.strerror or error}") from error


def read_state(path: Path) -> dict[str, Tensor]:
    """The tensors by name in a file that torch.save wrote; anything but tensors and containers is refused unread."""
    with refusing(path, "is not a file of weights that can be read safely"):
        content = torch.load(path, map_location="cpu", weights_only=True)
    for inner in ("state_dict", "model_state_dict", "model"):  # checkpoints wrap the weights
        if isinstance(content, Mapping) and isinstance(content.get(inner), Mapping):
            content = content[inner]
    if not isinstance(content, Mapping) or not any(isinstance(value, Tensor) for value in content.values()):
        raise InputError(f"{path} holds no tensors by name; wanted a state dict of an Inception-v1 I3D")
    # DataParallel puts "module." before every name
    return {str(key).removeprefix("module."): value for key, value in content.items() if isinstance(value, Tensor)}


def folded(weights: Mapping[str, Tensor], kernel: str, norm: str) -> tuple[Tensor, Tensor]:
    """Kernel and bias of a convolution that does the work of the batch norm `norm` behind it as well.

    TensorFlow's batch norms, which all these networks were trained with, add 0.001 to the variance.
    """
    mean, variance, shift = (weights[f"{norm}.{part}"].double() for part in ("running_mean", "running_var", "bias"))
    scale = weights[f"{norm}.weight"].double() / (variance + 1e-3).sqrt()
    wide = weights[kernel].double() * scale.reshape(-1, *[1] * (weights[kernel].ndim - 1))
    return wide.float(), (shift - mean * scale).float()
