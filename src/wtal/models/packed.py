"""Embedding of a batch's snippets, and products with it video by video, at little more than the cost of two GEMMs.

The embedded features x (n, d) are the only large array of a training step, so they are made once and never copied:
normalising, pooling and propagating them is expressed by products with a few vectors. What gradients those products
send to x are low-rank; they are kept as factors and multiplied out together, once, where the embedding's backward pass
needs them. `products` and `outers` are the same products for the small arrays, under ordinary autograd.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from wtal.models.protocol import Batch

Offsets = tuple[int, ...]
Precision = Literal["float32", "bfloat16"]


@dataclass(eq=False)
class _Tape:
    """Embedded features and pending gradients, kept as low-rank factors: dx = 2 rows·x + Σ left_i right_i per video."""

    offsets: Offsets
    x: Tensor = field(init=False)
    squares: Tensor = field(init=False)  # ‖x‖²
    factors: list[list[tuple[Tensor, Tensor]]] = field(init=False)  # of each video: (t, k) and (k, d)
    rows: list[Tensor] = field(default_factory=list)  # (n,)

    def __post_init__(self) -> None:
        self.factors = [[] for _ in pairwise(self.offsets)]

    def owe(self, left: Tensor, right: Tensor) -> None:
        """Factors (n, k) and (b, k, d), or (k, d) for all videos alike."""
        rights = right if right.dim() == 3 else [right] * len(self.factors)
        for owed, left_part, right_part in zip(self.factors, _parts(left, self.offsets), rights, strict=True):
            owed.append((left_part, right_part))


class Snippets:
    """A batch's embedded snippets x; what is computed from them carries gradients to the embedding."""

    def __init__(
        self, batch: Batch, linear: nn.Linear, *, dropout: float = 0.0, precision: Precision = "float32"
    ) -> None:
        """x = dropout(relu(linear(features))); pass `dropout` 0 outside of training.

        `precision` is that of the two large GEMMs' arrays; all else keeps the precision of the weights.
        """
        self._tape = _Tape(batch.offsets)
        # the token stands for x in autograd's graph: every product takes it, so backward comes here after all of them
        self.offsets = batch.offsets
        dtype = torch.bfloat16 if precision == "bfloat16" else linear.weight.dtype
        self._token = _run(_Embed, batch.features, linear.weight, linear.bias, self._tape, dropout, batch.seeds, dtype)

    def dots(self, vectors: Float[Tensor, "b k d"] | Float[Tensor, "k d"]) -> Float[Tensor, "n k"]:
        """x·v for the k vectors of each snippet's video, or for k vectors that all videos share."""
        return _run(_Dots, self._token, vectors, self._tape)

    def pool(self, weights: Float[Tensor, "n k"]) -> Float[Tensor, "b k d"]:
        """Σ weight·x over each video's snippets, for each of the k columns of weights."""
        return _run(_Pool, self._token, weights, self._tape)

    def squared_sums(self, weights: Float[Tensor, "n k"]) -> Float[Tensor, "b k"]:
        """‖Σ weight·x‖² over each video's snippets, for each of the k columns of weights."""
        return _run(_SquaredSums, self._token, weights, self._tape)

    def squared_norms(self) -> Float[Tensor, " n"]:
        """‖x‖² of each snippet."""
        return _run(_SquaredNorms, self._token, self._tape)


def softmax_over_time(logits: Float[Tensor, "n k"], lengths: Sequence[int]) -> Float[Tensor, "n k"]:
    """The softmax of each column over each video's snippets."""
    return torch.cat([torch.softmax(part, dim=0) for part in torch.split(logits, list(lengths))])


def products(a: Float[Tensor, "n k"], matrices: Float[Tensor, "b k m"], offsets: Offsets) -> Float[Tensor, "n m"]:
    """Each video's rows of `a` times its own matrix."""
    return _run(_Products, a, matrices, offsets)


def outers(a: Float[Tensor, "n k"], c: Float[Tensor, "n m"], offsets: Offsets) -> Float[Tensor, "b k m"]:
    """Σ over each video's rows of the outer products of `a` and `c`."""
    return _run(_Outers, a, c, offsets)


def _run(function: type[Function], *inputs: Any) -> Tensor:
    result: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]
    return result


def _parts(a: Tensor, offsets: Offsets) -> tuple[Tensor, ...]:
    return torch.split(a, [end - start for start, end in pairwise(offsets)])


def _products(a: Tensor, matrices: Tensor, offsets: Offsets) -> Tensor:
    out = a.new_empty(len(a), matrices.shape[-1])
    for part, matrix, result in zip(_parts(a, offsets), matrices, _parts(out, offsets), strict=True):
        torch.mm(part, matrix, out=result)
    return out


def _outers(a: Tensor, c: Tensor, offsets: Offsets) -> Tensor:
    out = a.new_empty(len(offsets) - 1, a.shape[1], c.shape[1])
    for left, right, result in zip(_parts(a, offsets), _parts(c, offsets), out, strict=True):
        torch.mm(left.t(), right, out=result)
    return out


def _long_products(x: Tensor, vectors: Tensor, offsets: Offsets) -> Tensor:
    """x·v with the few vectors of each video. GEMM takes half the time for 16 columns that it takes for 8 or 13."""
    k = vectors.shape[-2]
    wide = -(-k // 16) * 16 if k < 48 else k
    if wide != k:
        vectors = pad(vectors, (0, 0, 0, wide - k))
    if vectors.dim() == 2:
        vectors = vectors.expand(len(offsets) - 1, wide, -1)
    return _products(x, vectors.transpose(1, 2), offsets)[:, :k]


def dropout(x: Float[Tensor, "n k"], probability: float, batch: Batch, *, layer: int = 1) -> Float[Tensor, "n k"]:
    """Dropout under ordinary autograd whose masks follow the videos' seeds; another `layer`, another mask."""
    if not probability:
        return x
    mask = torch.full_like(x, 1 / _keep(probability), requires_grad=False)
    seeds = batch.seeds or _random_seeds(len(batch.lengths))
    for part, seed in zip(_parts(mask, batch.offsets), seeds, strict=True):
        _dropout_(part, probability, (seed, layer))
    return x * mask


def _random_seeds(n: int) -> tuple[int, ...]:
    return tuple(torch.randint(2**62, (n,)).tolist())


def _dropout_(x: Tensor, probability: float, seed: int | tuple[int, ...]) -> None:
    """Zero entries of x in place. 16 random bits decide each, at a tenth of the cost of torch's own dropout."""
    words = np.random.Generator(np.random.SFC64(seed)).integers(2**64, size=(x.numel() + 3) // 4, dtype=np.uint64)
    bits = torch.from_numpy(words.view(np.int16))[: x.numel()].view_as(x).to(x.device)
    x.mul_(torch.ge(bits, _threshold(probability), out=torch.empty_like(x)))


def _threshold(probability: float) -> int:
    return round(probability * 2**16) - 2**15


def _keep(probability: float) -> float:
    """The share of entries that `_dropout_` really keeps: `probability` is rounded to 16 bits."""
    return (2**15 - _threshold(probability)) / 2**16


class _Embed(Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        tape: _Tape,
        dropout: float,
        seeds: tuple[int, ...] | None,
        dtype: torch.dtype,
    ) -> Tensor:
        # relu(s·h) = s·relu(h): dropout's scale s goes into the GEMM for nothing
        ctx.scale = scale = 1 / _keep(dropout) if dropout else 1.0
        features = features.to(dtype)
        h = features.new_empty(len(features), len(weight))
        torch.addmm(h, features, weight.to(dtype).t(), beta=0, alpha=scale, out=h)
        x = h if dtype == weight.dtype else torch.empty_like(h, dtype=weight.dtype)
        scaled_bias = bias * scale
        if dropout and seeds is None:
            seeds = _random_seeds(len(tape.offsets) - 1)
        norms = []
        rows = zip(_parts(x, tape.offsets), _parts(h, tape.offsets), strict=True)
        for v, (part, h_part) in enumerate(rows):  # video by video: the steps find the rows in the cache
            torch.add(h_part, scaled_bias, out=part).relu_()
            if dropout and seeds is not None:
                _dropout_(part, dropout, seeds[v])
            norms.append(torch.linalg.vector_norm(part, dim=1))
        tape.x, tape.squares = x, torch.cat(norms).square_()
        ctx.tape = tape
        ctx.save_for_backward(features, weight)
        return weight.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> Any:
        features, weight = ctx.saved_tensors
        tape: _Tape = ctx.tape
        x, scale = tape.x, ctx.scale
        rows = 2 * torch.stack([x.new_zeros(len(x)), *tape.rows]).sum(dim=0)[:, None]
        dh, d_bias = torch.empty_like(x, dtype=features.dtype), torch.zeros_like(weight[:, 0])
        parts = [_parts(a, tape.offsets) for a in (x, dh, rows)]
        for owed, x_part, dh_part, row in zip(tape.factors, *parts, strict=True):
            part = dh_part if dh.dtype == x.dtype else torch.empty_like(x_part)
            left, right = zip(*owed, strict=True) if owed else ([row[:, :0]], [x[:0]])
            torch.mm(torch.cat(left, dim=1), torch.cat(right), out=part)
            part.addcmul_(x_part, row)
            # x is positive where relu let through and dropout kept: no mask needs to be remembered
            torch.ops.aten.threshold_backward.grad_input(part, x_part, 0, grad_input=part)
            d_bias += part.sum(dim=0)
            if part is not dh_part:
                dh_part.copy_(part)
        tape.rows.clear()
        for owed in tape.factors:
            owed.clear()
        d_features = scale * (dh.to(weight.dtype) @ weight) if ctx.needs_input_grad[0] else None
        d_weight = torch.empty_like(weight, dtype=features.dtype)
        torch.addmm(d_weight, dh.t(), features, beta=0, alpha=scale, out=d_weight)
        return d_features, d_weight.to(weight.dtype), scale * d_bias, None, None, None, None


class _Dots(Function):
    @staticmethod
    def forward(ctx: Any, _: Tensor, vectors: Tensor, tape: _Tape) -> Tensor:
        ctx.tape = tape
        ctx.save_for_backward(vectors)
        return _long_products(tape.x, vectors, tape.offsets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (vectors,) = ctx.saved_tensors
        x, offsets = ctx.tape.x, ctx.tape.offsets
        if ctx.needs_input_grad[0]:
            ctx.tape.owe(grad, vectors)
        d_vectors = None
        if ctx.needs_input_grad[1]:
            d_vectors = grad.t() @ x if vectors.dim() == 2 else _outers(grad, x, offsets)
        return x.new_zeros(()), d_vectors, None


class _Pool(Function):
    @staticmethod
    def forward(ctx: Any, _: Tensor, weights: Tensor, tape: _Tape) -> Tensor:
        ctx.tape = tape
        ctx.save_for_backward(weights)
        return _outers(weights, tape.x, tape.offsets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (weights,) = ctx.saved_tensors
        x, offsets = ctx.tape.x, ctx.tape.offsets
        if ctx.needs_input_grad[0]:
            ctx.tape.owe(weights, grad)
        d_weights = _long_products(x, grad, offsets) if ctx.needs_input_grad[1] else None
        return x.new_zeros(()), d_weights, None


class _SquaredSums(Function):
    """Of many columns and few snippets, ‖Σ w·x‖² = wᵀ(xxᵀ)w: the sums themselves would be the step's largest array."""

    @staticmethod
    def forward(ctx: Any, _: Tensor, weights: Tensor, tape: _Tape) -> Tensor:
        ctx.tape, ctx.kept = tape, []
        ctx.save_for_backward(weights)
        out = weights.new_empty(len(tape.offsets) - 1, weights.shape[1])
        for w, x, squares in zip(_parts(weights, tape.offsets), _parts(tape.x, tape.offsets), out, strict=True):
            if _few(w):
                kept = x @ x.t() @ w
                torch.sum(w * kept, dim=0, out=squares)
            else:
                kept = w.t() @ x
                torch.linalg.vector_norm(kept, dim=1, out=squares).square_()
            ctx.kept.append(kept)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (weights,) = ctx.saved_tensors
        tape: _Tape = ctx.tape
        d_weights = torch.empty_like(weights)
        parts = [_parts(a, tape.offsets) for a in (weights, tape.x, d_weights)]
        for w, x, d_w, kept, g, owed in zip(*parts, ctx.kept, 2 * grad, tape.factors, strict=True):
            if _few(w):
                torch.mul(kept, g, out=d_w)
                owed.append(((w * g) @ w.t(), x))
            else:
                right = kept * g[:, None]
                torch.mm(x, right.t(), out=d_w)
                owed.append((w, right))
        return grad.new_zeros(()), d_weights, None


def _few(weights: Tensor) -> bool:
    """Whether the products of a video's snippets with each other (twice) cost less than those with sums (thrice)."""
    return 2 * weights.shape[0] < 3 * weights.shape[1]


class _SquaredNorms(Function):
    @staticmethod
    def forward(ctx: Any, _: Tensor, tape: _Tape) -> Tensor:
        ctx.tape = tape
        return tape.squares.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        if ctx.needs_input_grad[0]:
            ctx.tape.rows.append(grad)
        return grad.new_zeros(()), None


class _Products(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, matrices: Tensor, offsets: Offsets) -> Tensor:
        ctx.offsets = offsets
        ctx.save_for_backward(a, matrices)
        return _products(a, matrices, offsets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        a, matrices = ctx.saved_tensors
        d_a = _products(grad, matrices.transpose(1, 2), ctx.offsets) if ctx.needs_input_grad[0] else None
        d_matrices = _outers(a, grad, ctx.offsets) if ctx.needs_input_grad[1] else None
        return d_a, d_matrices, None


class _Outers(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, c: Tensor, offsets: Offsets) -> Tensor:
        ctx.offsets = offsets
        ctx.save_for_backward(a, c)
        return _outers(a, c, offsets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        a, c = ctx.saved_tensors
        d_a = _products(c, grad.transpose(1, 2), ctx.offsets) if ctx.needs_input_grad[0] else None
        d_c = _products(a, grad, ctx.offsets) if ctx.needs_input_grad[1] else None
        return d_a, d_c, None
