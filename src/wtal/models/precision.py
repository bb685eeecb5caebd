"""In how many bits a model multiplies its large arrays while it learns; a detector also at test, the others not."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

#: bfloat16 is single precision with 8 bits of mantissa: half of the memory, and twice the rate on processors that have
#: it. auto: where they do.
Precision = Literal["auto", "float32", "bfloat16"]


def chosen(precision: Precision, device: torch.device | str = "cpu") -> Precision:
    """What `auto` means on a device; any other precision is what it says."""
    if precision != "auto":
        return precision
    return "bfloat16" if has_bfloat16(torch.device(device)) else "float32"


def has_bfloat16(device: torch.device) -> bool:
    """Whether products of bfloat16 numbers are faster here than those of single precision."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # oneDNN takes bfloat16 from AVX-512 on, but without its own instructions it computes as if there were none
    return device.type == "cpu" and (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def linear(layer: nn.Linear, x: Float[Tensor, "n d"], *, rounded: bool) -> Float[Tensor, "n h"]:
    """The layer's output in single precision, `rounded`: of features and weights that are rounded to bfloat16."""
    if not rounded:
        return layer(x)
    with torch.autocast(x.device.type, torch.bfloat16):
        return layer(x).float()
