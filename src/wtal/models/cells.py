"""Cells: the grid that a detector looks at, with several videos in one sequence.

Videos are not padded to a common length. The cells of a batch's videos stand one after the other in one sequence, each
video followed by a gap of at least one coarsest cell, so that a convolution never reaches from one video into the next
one. A convolution over all videos and levels is then one matrix product.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag

#: The last gap reaches to a multiple of so many coarsest cells. oneDNN compiles a kernel for each size of a product,
#: which takes half as long as the product: sizes that differ from step to step make a step an eighth longer.
BLOCK = 16


@dataclass(frozen=True)
class View:
    """How a video is laid on the grid: cells a snippet, and the cells before its first snippet."""

    cells: float
    shift: float = 0.0


@dataclass(frozen=True, eq=False)
class Level:
    """The cells of one level of the pyramid: the video of each (-1 in gaps), its centre and its width in snippets."""

    video: Int[Tensor, " n"]
    centre: Float[Tensor, " n"]
    width: Float[Tensor, " n"]

    @cached_property
    def mask(self) -> Float[Tensor, "n 1"]:
        """1 inside a video, 0 in the gaps."""
        return (self.video >= 0).float()[:, None]

    @cached_property
    def gaps(self) -> Int[Tensor, " g"]:
        """The rows that are in no video."""
        return torch.nonzero(self.video < 0)[:, 0]

    def halved(self) -> "Level":
        """The next level: pairs of cells as one."""
        return Level(
            self.video.view(-1, 2).amax(dim=1), self.centre.view(-1, 2).mean(dim=1), self.width.view(-1, 2).sum(dim=1)
        )


@dataclass(frozen=True, eq=False)
class Cells:
    """The finest level's cells, where each reads the features, and the levels above."""

    levels: tuple[Level, ...]
    low: Int[Tensor, " n"]
    high: Int[Tensor, " n"]
    share: Float[Tensor, "n 1"]
    """A cell's features are those of row `low`, and by this share those of row `high`."""
    first: Int[Tensor, " b"]
    """Each video's first cell on the finest level."""

    @cached_property
    def all(self) -> Level:
        """The cells of all levels, one level after the other."""
        parts = [(one.video, one.centre, one.width) for one in self.levels]
        return Level(*(torch.cat(values) for values in zip(*parts, strict=True)))

    @cached_property
    def number(self) -> Int[Tensor, " m"]:
        """The level of each of all cells."""
        return torch.cat([torch.full_like(one.video, k) for k, one in enumerate(self.levels)])

    def read(self, features: Float[Tensor, "t d"]) -> Float[Tensor, "n d"]:
        """The features at the centres of the finest cells, linear between those of the snippets; 0 in gaps."""
        inside = self.levels[0].mask
        if torch.compiler.is_compiling():  # exported graphs know no embedding_bag
            return (features[self.low] * (1 - self.share) + features[self.high] * self.share) * inside
        rows, shares = torch.stack([self.low, self.high], dim=1), torch.cat([1 - self.share, self.share], dim=1)
        # one weighted sum of two rows a cell: several times as fast as picking rows, above all backwards
        return embedding_bag(rows, features, per_sample_weights=(shares * inside).to(features.dtype), mode="sum")


def lay_out(lengths: Sequence[int], views: Sequence[View], n_levels: int, device: torch.device | str = "cpu") -> Cells:
    """The cells of videos of these lengths, each seen in its own way."""
    coarsest = 2 ** (n_levels - 1)
    columns: list[tuple[Tensor, ...]] = []
    first_row, first = 0, [0]
    for number, (length, view) in enumerate(zip(lengths, views, strict=True)):
        used = ceil(length * view.cells + view.shift)
        block = coarsest if number < len(lengths) - 1 else BLOCK * coarsest
        total = (first[-1] + used + coarsest + block - 1) // block * block - first[-1]
        centre = (torch.arange(total, dtype=torch.float64) + 0.5 - view.shift) / view.cells
        inside = (centre >= 0) & (centre < length)
        at = (centre - 0.5).clamp(0, length - 1)  # a snippet's features stand at its middle
        low = at.long()
        high = (low + 1).clamp(max=length - 1)
        video = torch.where(inside, number, -1)
        width = torch.full_like(centre, 1 / view.cells)
        columns.append((video, centre, width, low + first_row, high + first_row, at - low))
        first_row += length
        first.append(first[-1] + total)
    joined = [torch.cat(one).to(device) for one in zip(*columns, strict=True)]
    levels = [Level(joined[0], joined[1].float(), joined[2].float())]
    while len(levels) < n_levels:
        levels.append(levels[-1].halved())
    return Cells(
        tuple(levels), joined[3], joined[4], joined[5].float()[:, None], torch.tensor(first[:-1], device=device)
    )


def nearest_box(
    cells: Cells,
    segments: Float[Tensor, "m 2"],
    owner: Int[Tensor, " m"],
    *,
    reach: float,
    radius: float,
) -> tuple[Int[Tensor, " n"], Bool[Tensor, " n"]]:
    """The box that each of all cells is to find, and whether it has one.

    A cell may find a box of its video if its centre lies inside the box and within `radius` cells of the box's centre,
    and the box's farther edge is between `reach` / 2 and `reach` cells of its level away (on the finest level nearer
    ones too, on the coarsest farther ones too). Of several it is to find the shortest.
    """
    every, n = cells.all, len(cells.all.video)
    if not len(segments):
        return torch.zeros_like(every.video), torch.zeros_like(every.video, dtype=torch.bool)
    box, cell, level = _around(cells, segments.mean(dim=1), owner, radius)
    starts, ends, centre, width = segments[box, 0], segments[box, 1], every.centre[cell], every.width[cell]
    farther = torch.maximum(centre - starts, ends - centre) / width
    fits = (farther >= reach / 2) | (level == 0)
    fits &= (farther < reach) | (level == len(cells.levels) - 1)
    fits &= (centre > starts) & (centre < ends) & (every.video[cell] == owner[box])
    fits &= ((starts + ends) / 2 - centre).abs() <= radius * width
    box, cell, length = box[fits], cell[fits], (ends - starts)[fits]
    shortest = torch.full((n,), torch.inf, device=cell.device).scatter_reduce_(0, cell, length, "amin")
    best = length == shortest[cell]
    which = torch.full_like(every.video, len(segments)).scatter_reduce_(0, cell[best], box[best], "amin")
    positive = which < len(segments)
    return torch.where(positive, which, 0), positive


def _around(
    cells: Cells, centres: Float[Tensor, " m"], owner: Int[Tensor, " m"], radius: float
) -> tuple[Int[Tensor, " k"], Int[Tensor, " k"], Int[Tensor, " k"]]:
    """Box, cell and level of all cells within so many cells of a box's centre, and of one more on either side."""
    finest, first = cells.levels[0], cells.first[owner]
    place = first + 0.5 + (centres - finest.centre[first]) / finest.width[first]
    offsets = torch.arange(-1, int(2 * radius) + 2, device=place.device)
    parts, start = [], 0
    for number, level in enumerate(cells.levels):
        own = (place / 2**number - radius - 0.5).ceil().long()[:, None] + offsets
        box, column = torch.nonzero((own >= 0) & (own < len(level.video)), as_tuple=True)
        parts.append((box, start + own[box, column], torch.full_like(box, number)))
        start += len(level.video)
    boxes, found, numbers = (torch.cat(values) for values in zip(*parts, strict=True))
    return boxes, found, numbers
