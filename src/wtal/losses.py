"""The losses that weakly supervised models share, one value per video: what becomes of them is the caller's matter.

The videos of a batch are concatenated, so snippet losses take the videos' `lengths` beside the values.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax, softmax

from wtal.errors import InputError


def video_means(values: Float[Tensor, " n"], lengths: Sequence[int]) -> Float[Tensor, " b"]:
    """Mean of each video's snippets.

    >>> video_means(torch.tensor([1.0, 3.0, 5.0]), [2, 1]).tolist()
    [2.0, 5.0]
    """
    return torch.stack([part.mean() for part in torch.split(values, list(lengths))])


def normalised_cross_entropy(logits: Float[Tensor, "b c"], target: Float[Tensor, "b c"]) -> Float[Tensor, " b"]:
    """Cross-entropy of softmax(logits) with a target that is scaled to sum to 1, so each tag of a video counts alike.

    A video without any tag costs nothing.

    >>> normalised_cross_entropy(torch.zeros(1, 4), torch.tensor([[1.0, 1.0, 0.0, 0.0]])).exp().round().tolist()
    [4.0]
    """
    share = target / (target.sum(dim=1, keepdim=True) + 1e-8)
    return -(share * log_softmax(logits, dim=1)).sum(dim=1)


def attention_contrast(
    attention: Float[Tensor, " n"], lengths: Sequence[int], *, divisor: int = 8
) -> Float[Tensor, " b"]:
    """Mean of the lowest t // divisor attentions minus mean of the highest ones: small when the two sides part.

    >>> attention_contrast(torch.tensor([0.0, 0.5, 0.5, 1.0]), [4]).tolist()
    [-1.0]
    """
    values = []
    for part in torch.split(attention, list(lengths)):
        k = max(len(part) // divisor, 1)
        values.append(part.topk(k, largest=False).values.mean() - part.topk(k).values.mean())
    return torch.stack(values)


def soft_cross_entropy(
    logits: Float[Tensor, "n c"],
    target_logits: Float[Tensor, "n c"],
    lengths: Sequence[int],
    *,
    temperature: float = 0.2,
) -> Float[Tensor, " b"]:
    """Cross-entropy of the sharpened softmax of `logits` with that of `target_logits`, which is no path for gradients.

    Mean over snippets. This is RSKP's loss by which the propagated branch teaches the original one.
    """
    target = softmax(target_logits.detach() / temperature, dim=1)
    return video_means(-(target * log_softmax(logits / temperature, dim=1)).sum(dim=1), lengths)


def signed_cross_entropy(
    logits: Float[Tensor, "n c"], target: Float[Tensor, "n k"], lengths: Sequence[int], *, bounded: bool = False
) -> Float[Tensor, " b"]:
    """Cross-entropy of softmax(logits) with a signed target (Eq. 9), summed over classes, mean over snippets.

    A target may leave out the last column of the logits, the background: then it says nothing of it. A negative entry
    −g of the equation gains g·|log p| without an end, as p falls. Where logits are `bounded`, as cosines are,
    p cannot fall far and this is the equation; where they are not, −g costs −g·log(1 − p) instead, which is 0
    once the class is gone: the loss is never negative, and nothing can run away.

    >>> up = signed_cross_entropy(torch.zeros(1, 2), torch.tensor([[0.5]]), [1], bounded=True)
    >>> down = signed_cross_entropy(torch.zeros(1, 2), torch.tensor([[-0.5, 0.0]]), [1], bounded=True)
    >>> bool(up == -down)
    True
    >>> gone, wanted = torch.tensor([[-99.0, 0.0]]), torch.tensor([[-0.5]])
    >>> [round(signed_cross_entropy(gone, wanted, [1], bounded=bounded).item(), 3) for bounded in (True, False)]
    [-49.5, 0.0]
    """
    c, k = logits.shape[1], target.shape[1]
    if k not in (c, c - 1):
        raise InputError(f"pseudo labels for {c} logits must have {c} columns, or {c - 1} without background, got {k}")
    log_p = log_softmax(logits, dim=1)[:, :k]
    if bounded:
        return video_means(-(target * log_p).sum(dim=1), lengths)
    costs = target.clamp(min=0) * log_p + target.clamp(max=0).neg() * _log_others(logits)[:, :k]
    return video_means(-costs.sum(dim=1), lengths)


def _log_others(logits: Float[Tensor, "n c"]) -> Float[Tensor, "n c"]:
    """log(1 − p) of each class's probability p, exact also where p is nearly 1; 0 where there is one class alone."""
    if logits.shape[1] == 1:
        return torch.zeros_like(logits)
    # only the largest p can be near 1: there the others are summed, elsewhere 1 − p loses nothing
    largest = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, logits.argmax(dim=1, keepdim=True), True)
    others = logits.masked_fill(largest, -torch.inf).logsumexp(dim=1) - logits.logsumexp(dim=1)
    rest = torch.log1p(-softmax(logits, dim=1).masked_fill(largest, 0.0))
    return torch.where(largest, others[:, None], rest)


def focal_loss(
    logits: Float[Tensor, "n c"], target: Float[Tensor, "n c"], *, alpha: float = 0.25, gamma: float = 2.0
) -> Float[Tensor, "n c"]:
    """Binary cross-entropy of each logit that counts less, the surer and righter it is (Lin et al., 2017).

    >>> sure, unsure = focal_loss(torch.tensor([[5.0, 0.0]]), torch.ones(1, 2))[0].tolist()
    >>> sure < unsure / 1000
    True
    """
    loss = binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.sigmoid(logits)
    right = p * target + (1 - p) * (1 - target)
    return (alpha * target + (1 - alpha) * (1 - target)) * (1 - right) ** gamma * loss


def box_loss(
    distances: Float[Tensor, "n 2"], wanted: Float[Tensor, "n 2"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """1 − tIoU + (distance of the centres / length of the hull)², and the tIoU, of boxes around one point each.

    Both boxes are given by the distances from that point to their start and to their end.

    >>> loss, iou = box_loss(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 3.0]]))
    >>> loss.tolist(), iou.tolist()
    ([0.5625], [0.5])
    """
    shared = torch.minimum(distances, wanted).sum(dim=1)
    iou = shared / (distances.sum(dim=1) + wanted.sum(dim=1) - shared)
    hull = torch.maximum(distances, wanted).sum(dim=1)
    apart = ((distances[:, 1] - distances[:, 0]) - (wanted[:, 1] - wanted[:, 0])) / 2
    return 1 - iou + (apart / hull) ** 2, iou
