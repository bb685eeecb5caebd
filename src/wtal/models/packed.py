"""Helpers for packed batches, for every model: the same step for each video, whose snippets lie concatenated.

`lengths` are those of the videos, as in `Batch.lengths`.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wtal.models.protocol import Batch


def parts(values: Float[Tensor, "n *k"], lengths: Sequence[int]) -> tuple[Tensor, ...]:
    """The rows of each video."""
    return torch.split(values, list(lengths))


def sums_over_time(values: Float[Tensor, "n k"], lengths: Sequence[int]) -> Float[Tensor, "b k"]:
    """The sum of each column over each video's snippets.

    >>> sums_over_time(torch.tensor([[1.0], [2.0], [4.0]]), [2, 1]).tolist()
    [[3.0], [4.0]]
    """
    return torch.stack([part.sum(dim=0) for part in parts(values, lengths)])


def softmax_over_time(logits: Float[Tensor, "n k"], lengths: Sequence[int]) -> Float[Tensor, "n k"]:
    """The softmax of each column over each video's snippets."""
    return torch.cat([torch.softmax(part, dim=0) for part in parts(logits, lengths)])


def pooled(
    weights: Float[Tensor, "n k"], values: Float[Tensor, "n m"], lengths: Sequence[int]
) -> Float[Tensor, "b k m"]:
    """Σ weight·value over each video's snippets, for each column of weights.

    >>> pooled(torch.tensor([[1.0], [2.0], [1.0]]), torch.tensor([[1.0], [1.0], [5.0]]), [2, 1]).flatten().tolist()
    [3.0, 5.0]
    """
    pairs = zip(parts(weights, lengths), parts(values, lengths), strict=True)
    return torch.stack([weight.t() @ value for weight, value in pairs])


def products(
    values: Float[Tensor, "n k"], matrices: Float[Tensor, "b k m"], lengths: Sequence[int]
) -> Float[Tensor, "n m"]:
    """Each video's rows times its own matrix."""
    return torch.cat([part @ matrix for part, matrix in zip(parts(values, lengths), matrices, strict=True)])


def dropout(x: Float[Tensor, "n k"], probability: float, batch: Batch, *, layer: int = 1) -> Float[Tensor, "n k"]:
    """Dropout whose masks follow the videos' seeds; another `layer`, another mask."""
    if not probability:
        return x
    mask = torch.full_like(x, 1 / kept_share(probability), requires_grad=False)
    for part, seed in zip(parts(mask, batch.lengths), seeds_of(batch), strict=True):
        drop_(part, probability, (seed, layer))
    return x * mask


def seeds_of(batch: Batch) -> tuple[int, ...]:
    """The seeds of a batch's videos; from torch's generator if it has none."""
    return batch.seeds or tuple(torch.randint(2**62, (len(batch.lengths),)).tolist())


def drop_(x: Float[Tensor, "n k"], probability: float, seed: int | tuple[int, ...]) -> None:
    """Zero entries of x in place. 16 random bits decide each, at a tenth of the cost of torch's own dropout."""
    words = np.random.Generator(np.random.SFC64(seed)).integers(2**64, size=(x.numel() + 3) // 4, dtype=np.uint64)
    bits = torch.from_numpy(words.view(np.int16))[: x.numel()].view_as(x).to(x.device)
    if x.dtype == torch.bfloat16:  # by integers of its size: a third of the time that a product takes
        x.view(torch.int16).bitwise_and_(torch.ge(bits, _threshold(probability), out=torch.empty_like(bits)).neg_())
    else:
        x.mul_(torch.ge(bits, _threshold(probability), out=torch.empty_like(x)))


def kept_share(probability: float) -> float:
    """The share of entries that `drop_` really keeps: `probability` is rounded to 16 bits."""
    return (2**15 - _threshold(probability)) / 2**16


def _threshold(probability: float) -> int:
    return round(probability * 2**16) - 2**15
