"""The layers of the detector: cells, convolutions, a pyramid over time, a head for classes and one for boxes."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, softplus

from wtal.models.cells import Cells
from wtal.models.convolution import CellConvolution, OutputConvolution, halved, normed_relu


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
        # to begin with a hundredth of all cells finds something
        self.to_class = OutputConvolution(width, n_classes, bias=-4.6)
        self.to_box = OutputConvolution(width, 3)
        self.level_scale = nn.Parameter(torch.ones(levels))

    def forward(
        self, features: Float[Tensor, "t d"], cells: Cells
    ) -> tuple[Float[Tensor, "n c"], Float[Tensor, "n 2"], Float[Tensor, " n"]]:
        """Class logits, distances to both ends in snippets, and quality logits of all cells."""
        kind = features.dtype  # in which all layers but the outputs are computed
        x = linear(features, self.project.weight.to(kind), self.project.bias.to(kind))
        x = cells.read(normed_relu(x, self.norm))
        for layer in self.embedding:
            x = layer(x, cells.levels[0])
        pyramid = [x]
        for _ in cells.levels[1:]:
            pyramid.append(halved(pyramid[-1]))
        every = cells.all
        classes = boxes = torch.cat(pyramid)
        for layer in self.class_head:
            classes = layer(classes, every)
        for layer in self.box_head:
            boxes = layer(boxes, every)
        logits, boxes = self.to_class(classes), self.to_box(boxes)
        scale = self.level_scale[cells.number][:, None]
        # the start, softplus(0.54) = 1, is half of the reach
        distances = softplus(scale * boxes[:, :2] + 0.54) * (self.reach / 2) * every.width[:, None]
        return logits, distances, boxes[:, 2]
