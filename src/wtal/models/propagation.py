"""Expectation maximisation and the bipartite random walk of RSKP, without ever making the propagated features.

The walk between a video's snippets x and k vectors μ ends in x' = (1−w)·(I − w²M)⁻¹·(w·zᵀμ + x), where z (k, t) says to
which vector each snippet belongs, z̄ is z normalised over time and M = zᵀz̄. M has rank k, so by Woodbury's identity
x' = (1−w)·(x + zᵀB) with the k vectors B = w·(I − w²z̄zᵀ)⁻¹(μ + w·z̄x). Cosines and weighted sums of x' follow from
those of x.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softmax

from wtal.models.layers import EPS, root
from wtal.models.low_rank import EmbeddedSnippets
from wtal.models.packed import pooled, products, sums_over_time


@dataclass(frozen=True, eq=False)
class Walk:
    """Features y = x + zᵀB of a batch by what they are made of; without z they are x itself.

    What is propagated is `shrink`·y, which matters only next to an ε.
    """

    dots: Float[Tensor, "n p"]  # of y with the unit prototypes
    norms: Float[Tensor, " n"]  # of y
    z: Float[Tensor, "n k"] | None = None
    xb: Float[Tensor, "n k"] | None = None  # products of x with the B
    bb: Float[Tensor, "b k k"] | None = None  # products of the B among themselves
    shrink: float = 1.0

    def cosines(self) -> Float[Tensor, "n p"]:
        """Cosines of the features with the prototypes."""
        return self.dots / (self.norms + EPS / self.shrink)[:, None]

    def pooled_cosines(
        self,
        weights: Float[Tensor, "n p"],
        squares_of_x: Float[Tensor, "b p"],
        lengths: Sequence[int],
    ) -> tuple[Float[Tensor, "b p"], Float[Tensor, "b p"]]:
        """Cosines of the features' weighted means over each video: by the last weights with all prototypes, and by
        each prototype's own weights with that prototype.

        Given are the squared norms of the weighted sums of x. The products need no features, for sums of products are
        products of sums.
        """
        own, mass = sums_over_time(torch.cat([weights * self.dots, weights], dim=1), lengths).chunk(2, dim=1)
        last = pooled(weights[:, -1:], self.dots, lengths)[:, 0]
        squares = squares_of_x
        if self.z is not None and self.xb is not None and self.bb is not None:
            u, of_xb = pooled(weights, torch.cat([self.z, self.xb], dim=1), lengths).chunk(2, dim=2)
            squares = squares + (u * (2 * of_xb + u @ self.bb)).sum(dim=2)
        mean = self.shrink / (mass + 1e-5)
        norms = mean * root(squares) + EPS
        return mean[:, -1:] * last / norms[:, -1:], mean * own / norms


def responsibilities(
    dots: Float[Tensor, "n k"], sharpness: Float[Tensor, "n 1"], own: Bool[Tensor, "n k"] | None = None
) -> Float[Tensor, "n k"]:
    """z: to which of the vectors each snippet belongs, from its products with the unit vectors.

    `sharpness` is that of the softmax over the snippet's norm, which makes the products cosines.

    `own` marks the vectors that a snippet's video has. One that has none belongs nowhere: zeros, nothing is propagated.
    """
    logits = dots * sharpness
    if own is None:
        return softmax(logits, dim=1)
    return softmax(logits.masked_fill(~own, -1e9), dim=1) * own


def time_means(x: EmbeddedSnippets, z: Float[Tensor, "n k"]) -> Float[Tensor, "b k d"]:
    """Each video's z-weighted means of x: the maximisation that makes μ."""
    (sums,) = x.pool(z)
    return sums / (sums_over_time(z, x.lengths) + EPS)[:, :, None]


def walks(
    x: EmbeddedSnippets,
    vectors: Sequence[Float[Tensor, "b _ d"]],
    zs: Sequence[Float[Tensor, "n _"]],
    *,
    dots: Float[Tensor, "n p"],
    squares: Float[Tensor, " n"],
    prototypes: Float[Tensor, "p d"],
    w: float,
) -> list[Walk]:
    """One walk over each set of vectors; they go in step, so that each product with x serves all of them.

    `dots` are the products of x with the unit `prototypes`, `squares` its squared norms.
    """
    bs = []
    for z, mu, zx in zip(zs, vectors, x.pool(*zs), strict=True):
        zz = pooled(z, z, x.lengths)
        mass = zz.sum(dim=2, keepdim=True) + EPS  # Σ z over time, since the rows of z sum to 1
        eye = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
        # inv_ex, which does not ask whether there is an inverse: w < 1 sees to that
        bs.append(w * torch.linalg.inv_ex(eye - w**2 * zz / mass).inverse @ (mu + w * zx / mass))
    result = []
    for z, b, xb in zip(zs, bs, x.dots(*bs), strict=True):
        bb = b @ b.transpose(1, 2)
        of_b = torch.cat([b @ prototypes.t(), bb], dim=2)
        to_prototypes, zbb = torch.split(products(z, of_b, x.lengths), [len(prototypes), z.shape[1]], dim=1)
        # ‖x + zᵀB‖²; behind a relu x and B are not negative, so nothing cancels
        norms = root(squares + (z * (2 * xb + zbb)).sum(dim=1))
        result.append(Walk(dots + to_prototypes, norms, z, xb, bb, 1 - w))
    return result
