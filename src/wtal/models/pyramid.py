"""The layers of the detector: cells, convolutions, a pyramid over time, a head for classes and one for boxes."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad, relu, softplus

from wtal.models.cells import Cells


class PyramidNetwork(nn.Module):
    """The layers alone, so that a running average of them can be kept."""

    def __init__(
        self, n_classes: int, d: int, *, width: int, levels: int, reach: float, embedding: int, head: int
    ) -> None:
        super().__init__()
        self.reach = reach
        self.project, self.norm = nn.Linear(d, width), nn.LayerNorm(width)
        self.embedding = nn.ModuleList(CellConvolution(width, width) for _ in range(embedding))
        self.class_head = nn.ModuleList(CellConvolution(width, width) for _ in range(head))
        self.box_head = nn.ModuleList(CellConvolution(width, width) for _ in range(head))
        self.to_class = CellConvolution(width, n_classes, last=True)
        self.to_box = CellConvolution(width, 3, last=True)
        nn.init.constant_(self.to_class.linear.bias, -4.6)  # a hundredth of all cells finds something, to begin with
        self.level_scale = nn.Parameter(torch.ones(levels))

    def forward(
        self, features: Float[Tensor, "t d"], cells: Cells
    ) -> tuple[Float[Tensor, "n c"], Float[Tensor, "n 2"], Float[Tensor, " n"]]:
        """Class logits, distances to both ends in snippets, and quality logits of all cells."""
        x = cells.read(relu(self.norm(self.project(features))))
        for layer in self.embedding:
            x = layer(x, cells.levels[0].mask)
        pyramid = [x]
        for _ in cells.levels[1:]:
            pyramid.append(pyramid[-1].view(-1, 2, x.shape[1]).amax(dim=1))
        every = cells.all
        classes = boxes = torch.cat(pyramid)
        for layer in self.class_head:
            classes = layer(classes, every.mask)
        for layer in self.box_head:
            boxes = layer(boxes, every.mask)
        logits, boxes = self.to_class(classes, every.mask).float(), self.to_box(boxes, every.mask).float()
        scale = self.level_scale[cells.number][:, None]
        # the start, softplus(0.54) = 1, is half of the reach
        distances = softplus(scale * boxes[:, :2] + 0.54) * (self.reach / 2) * every.width[:, None]
        return logits, distances, boxes[:, 2]


class CellConvolution(nn.Module):
    """A convolution of width 3 as one matrix product; but for a last one with LayerNorm and ReLU. Gaps stay 0."""

    def __init__(self, n_in: int, n_out: int, *, last: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(3 * n_in, n_out, bias=last)
        self.norm = None if last else nn.LayerNorm(n_out)
        if last:
            nn.init.normal_(self.linear.weight, std=0.01)
            nn.init.zeros_(self.linear.bias)
        else:
            nn.init.kaiming_normal_(self.linear.weight, nonlinearity="relu")

    def forward(self, x: Float[Tensor, "n i"], mask: Float[Tensor, "n 1"]) -> Float[Tensor, "n o"]:
        """The layer's output for each cell."""
        x = self.linear(torch.cat([pad(x[:-1], (0, 0, 1, 0)), x, pad(x[1:], (0, 0, 0, 1))], dim=1))
        return x if self.norm is None else relu(self.norm(x)) * mask.to(x.dtype)
