"""Convolutions of width 3 over cells, and what stands between them.

A detector's layers are narrow, so that what is done besides their products counts: most of it waits for memory. What
follows a convolution is therefore one step for autograd, which works in place where it can.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear, pad

from wtal.models.cells import Level


class CellConvolution(nn.Module):
    """A convolution of width 3 without bias, then LayerNorm and ReLU. Gaps stay 0."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(3 * n_in, n_out, bias=False)
        self.norm = nn.LayerNorm(n_out)
        nn.init.kaiming_normal_(self.linear.weight, nonlinearity="relu")

    def forward(self, x: Float[Tensor, "n i"], level: Level) -> Float[Tensor, "n o"]:
        """The layer's output for each cell."""
        product, norm = convolved(x, self.linear.weight.to(x.dtype)), self.norm
        if torch.compiler.is_compiling():  # exported graphs know nothing of the function below
            return normed_relu(product, norm) * level.mask.to(x.dtype)
        made: Tensor = _NormedReLU.apply(product, norm.weight, norm.bias, level.gaps, norm.eps)  # type: ignore[no-untyped-call]
        return made


class OutputConvolution(nn.Module):
    """A convolution of width 3 with few outputs, which are in single precision.

    Each cell's shares in itself and in its neighbours are computed and added up: with so few outputs this is cheaper
    than a convolution.
    """

    def __init__(self, n_in: int, n_out: int, *, bias: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(3 * n_in, n_out)
        nn.init.normal_(self.linear.weight, std=0.01)
        nn.init.constant_(self.linear.bias, bias)

    def forward(self, x: Float[Tensor, "n i"]) -> Float[Tensor, "n o"]:
        """The layer's output for each cell."""
        weight = self.linear.weight.view(len(self.linear.weight), 3, -1).transpose(0, 1).flatten(0, 1)
        to_next, own, to_previous = linear(x, weight.to(x.dtype)).float().chunk(3, dim=1)
        return own + pad(to_next[:-1], (0, 0, 1, 0)) + pad(to_previous[1:], (0, 0, 0, 1)) + self.linear.bias


def convolved(x: Float[Tensor, "n i"], weight: Float[Tensor, "o k"]) -> Float[Tensor, "n o"]:
    """The weights times each row between the one before it and the one after it; beyond the ends there are 0.

    >>> convolved(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0, 10.0, 100.0]])).tolist()
    [[210.0], [21.0]]
    """
    # rows are the pixels of an image that is one pixel high; channels are last in both, so that nothing is copied
    kernel = weight.view(len(weight), 3, -1).transpose(1, 2)[:, :, None]
    return conv2d(x.t()[None, :, None], kernel, padding=(0, 1)).squeeze(2).squeeze(0).t()


def halved(x: Float[Tensor, "n d"]) -> Float[Tensor, "m d"]:
    """The maximum of each pair of rows.

    >>> halved(torch.tensor([[1.0, 5.0], [2.0, 4.0]])).tolist()
    [[2.0, 5.0]]
    """
    if torch.compiler.is_compiling():
        return x.view(-1, 2, x.shape[1]).amax(dim=1)
    made: Tensor = _Halved.apply(x)  # type: ignore[no-untyped-call]
    return made


def normed_relu(x: Float[Tensor, "n d"], norm: nn.LayerNorm) -> Float[Tensor, "n d"]:
    """LayerNorm and ReLU, in single precision in between."""
    made: Tensor = norm(x.float()).relu().to(x.dtype)
    return made


class _NormedReLU(torch.autograd.Function):
    """`normed_relu`, with 0 in the gaps."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, shift: Tensor, gaps: Tensor, eps: float) -> Tensor:
        made, mean, deviation = torch.native_layer_norm(x, x.shape[1:], scale, shift, eps)
        made.relu_().index_fill_(0, gaps, 0.0)
        ctx.save_for_backward(x, scale, shift, made, mean, deviation)
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, scale, shift, made, mean, deviation = ctx.saved_tensors
        # what is 0, by ReLU or in a gap, has no gradient
        inner = torch.ops.aten.threshold_backward(gradients[0], made, 0)
        of_norm = torch.ops.aten.native_layer_norm_backward(
            inner, x, x.shape[1:], mean, deviation, scale, shift, [True, True, True]
        )
        return *of_norm, None, None


class _Halved(torch.autograd.Function):
    """`halved`; torch's own gradient of a maximum takes ten times as long. Of two equal rows the second one has it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.view(-1, 2, x.shape[1]).amax(dim=1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        first, second = x.view(-1, 2 * x.shape[1]).chunk(2, dim=1)
        of_first = torch.ops.aten.threshold_backward(gradients[0], first - second, 0)
        return torch.cat([of_first, gradients[0] - of_first], dim=1).view_as(x)
