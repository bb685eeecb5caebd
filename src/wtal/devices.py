"""Which device torch computes on."""

import os

import torch

from wtal.errors import InputError


def choose_device(wanted: str) -> torch.device:
    """The device that `auto`, `cpu` or `cuda` means for this process."""
    if wanted not in ("auto", "cpu", "cuda"):
        raise InputError(f"the device must be auto, cpu or cuda, got {wanted!r}")
    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise InputError("`device='cuda'`: torch finds no CUDA device here; use `device='cpu'`, or auto")
    if wanted == "cpu" or not there:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
