"""The layers and the careful arithmetic that several models share."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from wtal.errors import InputError
from wtal.models.packed import dropout
from wtal.models.precision import Precision, chosen, linear
from wtal.models.protocol import Batch

Reduction = Literal["mean", "sum"]

EPS = 1e-9  # beside norms and sums that may be 0


def check_shares(**values: float) -> None:
    """Make sure that these settings are shares that leave something: 0 or more, and less than 1."""
    for name, value in values.items():
        if not 0 <= value < 1:
            raise InputError(f"{name} must be in [0, 1), got {value}")


class Embedding(nn.Module):
    """dropout(relu(linear(features))) of each snippet; with `hidden` 0 the features themselves."""

    def __init__(self, d: int, hidden: int, probability: float, precision: Precision = "float32") -> None:
        super().__init__()
        check_shares(dropout=probability)
        self.linear = nn.Linear(d, hidden) if hidden else None
        self.width, self.probability, self.precision = hidden or d, probability, chosen(precision)

    def forward(self, batch: Batch) -> Float[Tensor, "n d"]:
        """The batch's embedded snippets."""
        x = batch.features
        if self.linear is not None:
            x = relu(linear(self.linear, x, rounded=self.training and self.precision == "bfloat16"))
        return dropout(x, self.probability if self.training else 0.0, batch)


class Attention(nn.Module):
    """How much each snippet matters, whatever its class: d → hidden → 1 with a sigmoid (STPN)."""

    def __init__(self, d: int, hidden: int = 256) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Between 0 and 1 for each snippet."""
        return torch.sigmoid(self.layers(x)[:, 0])


def unit(vectors: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """Vectors scaled to length 1; zero vectors stay what they are."""
    return vectors / (torch.linalg.vector_norm(vectors, dim=-1, keepdim=True) + EPS)


def root(squares: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """√ whose gradient at 0 is 0 rather than infinite."""
    return squares.clamp(min=1e-30).sqrt()


def over_classes(values: Float[Tensor, "b c"], reduction: Reduction) -> Float[Tensor, " b"]:
    """Each video's mean or sum over classes. A mean weakens what one class can teach as their number grows."""
    return values.mean(dim=1) if reduction == "mean" else values.sum(dim=1)
