"""I3D: Inception-v1 inflated to three dimensions (Carreira & Zisserman 2017), up to the features that the field uses.

One network per stream: three channels of colour, or two of optical flow. The output of Mixed_5c, averaged over time and
picture, is the 1024-d feature of a snippet.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import max_pool3d, pad

#: the paper's figure 3: units as (channels, kernel, stride); poolings as (kernel, stride); inception modules as the
#: channels of branch 0, of 1 (narrow, wide), of 2 (narrow, wide) and of 3
Size = tuple[int, int, int]
LAYERS: dict[str, tuple[Any, ...]] = {
    "Conv3d_1a_7x7": (64, (7, 7, 7), (2, 2, 2)),
    "MaxPool3d_2a_3x3": ((1, 3, 3), (1, 2, 2)),
    "Conv3d_2b_1x1": (64, (1, 1, 1), (1, 1, 1)),
    "Conv3d_2c_3x3": (192, (3, 3, 3), (1, 1, 1)),
    "MaxPool3d_3a_3x3": ((1, 3, 3), (1, 2, 2)),
    "Mixed_3b": (64, 96, 128, 16, 32, 32),
    "Mixed_3c": (128, 128, 192, 32, 96, 64),
    "MaxPool3d_4a_3x3": ((3, 3, 3), (2, 2, 2)),
    "Mixed_4b": (192, 96, 208, 16, 48, 64),
    "Mixed_4c": (160, 112, 224, 24, 64, 64),
    "Mixed_4d": (128, 128, 256, 24, 64, 64),
    "Mixed_4e": (112, 144, 288, 32, 64, 64),
    "Mixed_4f": (256, 160, 320, 32, 128, 128),
    "MaxPool3d_5a_2x2": ((2, 2, 2), (2, 2, 2)),
    "Mixed_5b": (256, 160, 320, 32, 128, 128),
    "Mixed_5c": (384, 192, 384, 48, 128, 128),
}
I3D_WIDTH = 1024
CHANNELS = {"rgb": 3, "flow": 2}


def same_padding(size: Sequence[int], kernel: Size, stride: Size) -> list[int]:
    """TensorFlow's padding for torch's `pad`: ⌈size / stride⌉ comes out, and the odd one goes to the far end.

    >>> same_padding((16, 224, 224), (7, 7, 7), (2, 2, 2))
    [2, 3, 2, 3, 2, 3]
    """
    sides: list[int] = []
    for n, k, s in zip(reversed(size), reversed(kernel), reversed(stride), strict=True):
        total = max((-(-n // s) - 1) * s + k - n, 0)
        sides += [total // 2, total - total // 2]
    return sides


class ConvolutionUnit(nn.Conv3d):
    """Convolution and ReLU; the batch norm of training is folded into kernel and bias."""

    def __init__(self, c_in: int, c_out: int, kernel: Size = (1, 1, 1), stride: Size = (1, 1, 1)) -> None:
        super().__init__(c_in, c_out, kernel, stride)
        self.sizes = kernel, stride

    def forward(self, x: Float[Tensor, "n ci t h w"]) -> Float[Tensor, "n co _t _h _w"]:
        """Filtered, and cut at 0."""
        return super().forward(pad(x, same_padding(x.shape[2:], *self.sizes))).relu_()


class Pool(nn.Module):
    """The largest value in each window."""

    def __init__(self, kernel: Size, stride: Size) -> None:
        super().__init__()
        self.sizes = kernel, stride

    def forward(self, x: Float[Tensor, "n c t h w"]) -> Float[Tensor, "n c _t _h _w"]:
        """Pooled; what is padded never wins, since everything comes out of a ReLU."""
        return max_pool3d(pad(x, same_padding(x.shape[2:], *self.sizes)), *self.sizes)


class Mixed(nn.Module):
    """An inception module: four branches side by side."""

    def __init__(self, c_in: int, b0: int, b1a: int, b1b: int, b2a: int, b2b: int, b3b: int) -> None:
        super().__init__()
        self.b0 = ConvolutionUnit(c_in, b0)
        self.b1a, self.b1b = ConvolutionUnit(c_in, b1a), ConvolutionUnit(b1a, b1b, (3, 3, 3))
        self.b2a, self.b2b = ConvolutionUnit(c_in, b2a), ConvolutionUnit(b2a, b2b, (3, 3, 3))
        self.b3a, self.b3b = Pool((3, 3, 3), (1, 1, 1)), ConvolutionUnit(c_in, b3b)

    def forward(self, x: Float[Tensor, "n ci t h w"]) -> Float[Tensor, "n co t h w"]:
        """The branches' channels, one after the other."""
        return torch.cat([self.b0(x), self.b1b(self.b1a(x)), self.b2b(self.b2a(x)), self.b3b(self.b3a(x))], dim=1)


class I3D(nn.Module):
    """The network of one stream.

    >>> I3D("flow").Mixed_5c.b0.out_channels
    384
    """

    def __init__(self, stream: str) -> None:
        super().__init__()
        self.stream = stream
        c_in = CHANNELS[stream]
        for name, sizes in LAYERS.items():
            layer: nn.Module
            if name.startswith("MaxPool"):
                layer = Pool(*sizes)
            elif name.startswith("Mixed"):
                layer = Mixed(c_in, *sizes)
                c_in = sum(sizes[index] for index in (0, 2, 4, 5))
            else:
                layer = ConvolutionUnit(c_in, *sizes)
                c_in = sizes[0]
            self.add_module(name, layer)

    def forward(self, x: Float[Tensor, "n c t h w"]) -> Float[Tensor, "n 1024"]:
        """Features of snippets whose values lie in [-1, 1]."""
        for layer in self.children():
            x = layer(x)
        return x.mean(dim=(2, 3, 4))

    def units(self) -> dict[str, ConvolutionUnit]:
        """The layers that have weights, by name."""
        return {name: module for name, module in self.named_modules() if isinstance(module, ConvolutionUnit)}
