"""Embedded snippets whose gradients stay low-rank factors: the engine under RSKP and FAC-Net, at the cost of two GEMMs.

The embedded features x = dropout(relu(linear(features))) (n, d) are the only large array of a training step. They are
made once and never copied: normalising, pooling and propagating them is expressed by products with a few vectors. Such
a product with k vectors sends a gradient of rank k to x; those gradients are kept as factors and multiplied out
together, once, where the embedding's backward pass needs them.

Why it is here: the same formulas under plain autograd (with the walk solved in k dimensions, too) give the same losses
to 7 digits, but an epoch of RSKP takes 1.37 times as long. A model that does not mind needs nothing of this module;
the helpers in `wtal.models.packed` do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from wtal.models.packed import drop_, kept_share, parts, seeds_of
from wtal.models.protocol import Batch


class EmbeddedSnippets:
    """A batch's embedded snippets x; what is computed from them carries gradients to the embedding.

    The products take several sets of vectors or weights, so that one reading of x serves all of them, and give as many
    results.
    """

    def __init__(self, batch: Batch, linear: nn.Linear, *, dropout: float = 0.0, rounded: bool = False) -> None:
        """x = dropout(relu(linear(features))); pass `dropout` 0 outside of training.

        `rounded`: x is of bfloat16 numbers, which halves what every product with it has to read and multiply. Sums
        are carried out in single precision, and results are given in it.
        """
        self.lengths = batch.lengths
        self._tape = _Tape(batch.lengths, linear.weight.dtype)
        dtype = torch.bfloat16 if rounded else linear.weight.dtype
        # the token stands for x in autograd's graph: every product takes it, so backward comes here after all of them
        self._token = _run(_Embed, batch.features, linear.weight, linear.bias, self._tape, dropout, batch, dtype)

    def dots(self, *vectors: Float[Tensor, "b _ d"] | Float[Tensor, "_ d"]) -> tuple[Float[Tensor, "n _"], ...]:
        """x·v for the vectors of each snippet's video, or for vectors that all videos share."""
        all_dots = _run(_Dots, self._token, torch.cat(vectors, dim=-2), self._tape)
        return torch.split(all_dots, [one.shape[-2] for one in vectors], dim=1)

    def pool(self, *weights: Float[Tensor, "n _"]) -> tuple[Float[Tensor, "b _ d"], ...]:
        """Σ weight·x over each video's snippets, for each column of weights."""
        return self._by_weights(_Pool, weights)

    def squared_sums(self, *weights: Float[Tensor, "n _"]) -> tuple[Float[Tensor, "b _"], ...]:
        """‖Σ weight·x‖² over each video's snippets, for each column of weights."""
        return self._by_weights(_SquaredSums, weights)

    def squared_norms(self) -> Float[Tensor, " n"]:
        """‖x‖² of each snippet."""
        return _run(_SquaredNorms, self._token, self._tape)

    def _by_weights(self, product: type[Function], weights: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        result = _run(product, self._token, torch.cat(weights, dim=1), self._tape)
        return torch.split(result, [one.shape[1] for one in weights], dim=1)


@dataclass(eq=False)
class _Tape:
    """The embedded features and their pending gradients as factors: dx = 2 rows·x + Σ left_i right_i per video.

    Factors have the precision of x; what the products give has that of the weights, `dtype`.
    """

    lengths: Sequence[int]
    dtype: torch.dtype
    x: Tensor = field(init=False)
    squares: Tensor = field(init=False)  # ‖x‖²
    factors: list[list[tuple[Tensor, Tensor]]] = field(init=False)  # of each video: (t, k) and (k, d)
    rows: list[Tensor] = field(default_factory=list)  # (n,)

    def __post_init__(self) -> None:
        self.factors = [[] for _ in self.lengths]

    def parts(self, *arrays: Tensor) -> list[tuple[Tensor, ...]]:
        """The rows of each video, of each array."""
        return [parts(array, self.lengths) for array in arrays]

    def add(self, left: Tensor, right: Tensor) -> None:
        """Factors (n, k) and (b, k, d), or (k, d) for all videos alike."""
        right = right.to(self.x.dtype)
        rights = right if right.dim() == 3 else [right] * len(self.factors)
        for pending, left_part, right_part in zip(
            self.factors, *self.parts(left.to(self.x.dtype)), rights, strict=True
        ):
            pending.append((left_part, right_part))

    def dots(self, vectors: Tensor) -> Tensor:
        """x·v with the few vectors of each video. GEMM is up to twice as fast with the few as rows, not as columns."""
        out = self.x.new_empty(self.x.shape[0], vectors.shape[-2], dtype=self.dtype)
        matrices = vectors.to(self.x.dtype).expand(len(self.lengths), -1, -1)
        for part, matrix, result in zip(*self.parts(self.x), matrices, *self.parts(out), strict=True):
            result.copy_((matrix @ part.t()).t())
        return out

    def pool(self, weights: Tensor) -> Tensor:
        """Σ weight·x over each video's snippets."""
        out = self.x.new_empty(len(self.lengths), weights.shape[1], self.x.shape[1])
        for weight, part, result in zip(*self.parts(weights.to(self.x.dtype), self.x), out, strict=True):
            torch.mm(weight.t(), part, out=result)
        return out.to(self.dtype)

    def pooled_together(self, weights: Tensor) -> Tensor:
        """Σ weight·x over the snippets of all videos."""
        return (weights.to(self.x.dtype).t() @ self.x).to(self.dtype)


def _run(function: type[Function], *inputs: Any) -> Tensor:
    result: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]
    return result


class _Embed(Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        tape: _Tape,
        dropout: float,
        batch: Batch,
        dtype: torch.dtype,
    ) -> Tensor:
        # relu(s·h) = s·relu(h): dropout's scale s goes into the GEMM for nothing
        ctx.scale = scale = 1 / kept_share(dropout) if dropout else 1.0
        features = features.to(dtype)
        h = features.new_empty(features.shape[0], len(weight))
        torch.addmm(h, features, weight.to(dtype).t(), beta=0, alpha=scale, out=h)
        scaled_bias = (bias * scale).to(dtype)
        seeds = seeds_of(batch) if dropout else batch.lengths
        norms = []
        for part, seed in zip(*tape.parts(h), seeds, strict=True):  # each step finds the rows in the cache
            part.add_(scaled_bias).relu_()
            if dropout:
                drop_(part, dropout, seed)
            norms.append(torch.linalg.vector_norm(part, dim=1, dtype=weight.dtype))
        tape.x, tape.squares = h, torch.cat(norms).square_()
        ctx.tape = tape
        ctx.save_for_backward(features, weight)
        return weight.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> Any:
        features, weight = ctx.saved_tensors
        tape: _Tape = ctx.tape
        x, scale = tape.x, ctx.scale
        rows = 2 * torch.stack([weight.new_zeros(len(x)), *tape.rows]).sum(dim=0)[:, None].to(x.dtype)
        dh, d_bias = torch.empty_like(x), torch.zeros_like(weight[:, 0])
        for pending, x_part, part, row in zip(tape.factors, *tape.parts(x, dh, rows), strict=True):
            left, right = zip(*pending, strict=True) if pending else ([row[:, :0]], [x[:0]])
            torch.mm(torch.cat(left, dim=1), torch.cat(right), out=part)
            part.addcmul_(x_part, row)
            # x is positive where relu let through and dropout kept: no mask needs to be remembered
            torch.ops.aten.threshold_backward.grad_input(part, x_part, 0, grad_input=part)
            d_bias += part.sum(dim=0, dtype=weight.dtype)
        tape.rows.clear()
        for pending in tape.factors:
            pending.clear()
        d_features = scale * (dh @ weight.to(dh.dtype)).to(weight.dtype) if ctx.needs_input_grad[0] else None
        d_weight = torch.empty_like(weight, dtype=features.dtype)
        torch.addmm(d_weight, dh.t(), features, beta=0, alpha=scale, out=d_weight)
        return d_features, d_weight.to(weight.dtype), scale * d_bias, None, None, None, None


class _Dots(Function):
    @staticmethod
    def forward(ctx: Any, _: Tensor, vectors: Tensor, tape: _Tape) -> Tensor:
        ctx.tape = tape
        ctx.save_for_backward(vectors)
        return tape.dots(vectors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (vectors,) = ctx.saved_tensors
        tape: _Tape = ctx.tape
        if ctx.needs_input_grad[0]:
            tape.add(grad, vectors)
        d_vectors = None
        if ctx.needs_input_grad[1]:
            d_vectors = tape.pooled_together(grad) if vectors.dim() == 2 else tape.pool(grad)
        return grad.new_zeros(()), d_vectors, None


class _Pool(Function):
    @staticmethod
    def forward(ctx: Any, _: Tensor, weights: Tensor, tape: _Tape) -> Tensor:
        ctx.tape = tape
        ctx.save_for_backward(weights)
        return tape.pool(weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (weights,) = ctx.saved_tensors
        tape: _Tape = ctx.tape
        if ctx.needs_input_grad[0]:
            tape.add(weights, grad)
        return grad.new_zeros(()), tape.dots(grad) if ctx.needs_input_grad[1] else None, None


class _SquaredSums(Function):
    """Of many columns and few snippets, ‖Σ w·x‖² = wᵀ(xxᵀ)w: the sums themselves would be the step's largest array."""

    @staticmethod
    def forward(ctx: Any, _: Tensor, weights: Tensor, tape: _Tape) -> Tensor:
        ctx.tape, ctx.kept = tape, []
        out = weights.new_empty(len(tape.lengths), weights.shape[1])
        weights = weights.to(tape.x.dtype)
        ctx.save_for_backward(weights)
        for w, x, squares in zip(*tape.parts(weights, tape.x), out, strict=True):
            if _few(w):
                kept = x @ x.t() @ w
                torch.sum((w * kept).to(out.dtype), dim=0, out=squares)
            else:
                kept = w.t() @ x
                torch.linalg.vector_norm(kept, dim=1, dtype=out.dtype, out=squares).square_()
            ctx.kept.append(kept)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (weights,) = ctx.saved_tensors
        tape: _Tape = ctx.tape
        d_weights, grad = torch.empty_like(weights), 2 * grad.to(weights.dtype)
        in_parts = tape.parts(weights, tape.x, d_weights)
        for w, x, d_w, kept, g, pending in zip(*in_parts, ctx.kept, grad, tape.factors, strict=True):
            if _few(w):
                torch.mul(kept, g, out=d_w)
                pending.append(((w * g) @ w.t(), x))
            else:
                right = kept * g[:, None]
                d_w.copy_((right @ x.t()).t())
                pending.append((w, right))
        return grad.new_zeros((), dtype=tape.dtype), d_weights.to(tape.dtype), None


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
