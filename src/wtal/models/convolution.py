"""Convolutions of width 3 over cells as matrix products, and what stands between them.

A detector's layers are narrow, so that what is done besides the matrix products takes half as long as these, most of
it waiting for memory. A layer is therefore one step for autograd: it works in place where it can, and keeps for the
way back only what it cannot cheaply make again.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, pad

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
        weight, norm = self.linear.weight.to(x.dtype), self.norm
        if torch.is_grad_enabled():
            made: Tensor = _Layer.apply(x, weight, norm.weight, norm.bias, level.gaps, norm.eps)  # type: ignore[no-untyped-call]
            return made
        return normed_relu(linear(in_windows(x), weight), norm) * level.mask.to(x.dtype)


class OutputConvolution(nn.Module):
    """A convolution of width 3 with few outputs, which are in single precision.

    Each cell's shares in itself and in its neighbours are computed and added up: they are as narrow as the output, so
    that this is cheaper than windows of the input.
    """

    def __init__(self, n_in: int, n_out: int, *, bias: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(3 * n_in, n_out)
        nn.init.normal_(self.linear.weight, std=0.01)
        nn.init.constant_(self.linear.bias, bias)

    def forward(self, x: Float[Tensor, "n i"]) -> Float[Tensor, "n o"]:
        """The layer's output for each cell."""
        weight = _by_place(self.linear.weight).flatten(0, 1)
        to_next, own, to_previous = linear(x, weight.to(x.dtype)).float().chunk(3, dim=1)
        return own + pad(to_next[:-1], (0, 0, 1, 0)) + pad(to_previous[1:], (0, 0, 0, 1)) + self.linear.bias


def in_windows(x: Float[Tensor, "n d"]) -> Float[Tensor, "n k"]:
    """Each row between the one before it and the one after it; 0 beyond the ends.

    >>> in_windows(torch.tensor([[1.0], [2.0]])).tolist()
    [[0.0, 1.0, 2.0], [1.0, 2.0, 0.0]]
    """
    return torch.cat([pad(x[:-1], (0, 0, 1, 0)), x, pad(x[1:], (0, 0, 0, 1))], dim=1)


def _by_place(weight: Float[Tensor, "o k"]) -> Float[Tensor, "3 o i"]:
    """The weights of the cell before, of the cell itself, and of the one after it."""
    return weight.view(len(weight), 3, -1).transpose(0, 1)


def normed_relu(x: Float[Tensor, "n d"], norm: nn.LayerNorm) -> Float[Tensor, "n d"]:
    """LayerNorm and ReLU, in single precision in between."""
    made: Tensor = norm(x.float()).relu().to(x.dtype)
    return made


class _Layer(torch.autograd.Function):
    """The layer as above; the gradient of its input is a convolution too, with the weights from right to left."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor, gaps: Tensor, eps: float) -> Tensor:
        product = torch.mm(in_windows(x), weight.t())
        made, mean, deviation = torch.native_layer_norm(product, weight.shape[:1], scale, shift, eps)
        made.relu_().index_fill_(0, gaps, 0.0)
        ctx.save_for_backward(x, weight, scale, shift, product, made, mean, deviation)
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale, shift, product, made, mean, deviation = ctx.saved_tensors
        # what is 0, by ReLU or in a gap, has no gradient
        inner = torch.ops.aten.threshold_backward(gradients[0], made, 0)
        inner, of_scale, of_shift = torch.ops.aten.native_layer_norm_backward(
            inner, product, weight.shape[:1], mean, deviation, scale, shift, [True, True, True]
        )
        mirrored = _by_place(weight).flip(0).flatten(0, 1)
        of_weight = torch.mm(inner.t(), in_windows(x))
        return torch.mm(in_windows(inner), mirrored), of_weight, of_scale, of_shift, None, None
