"""RSKP's memory: per class the few representative vectors that the model itself rates highest, over all videos."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, distributed, nn


class MemoryBank(nn.Module):
    """`slots` vectors per class with their scores; part of the model's state, but not learned by gradients."""

    vectors: Tensor
    scores: Tensor
    filled: Tensor

    def __init__(self, n_classes: int, d: int, *, slots: int = 5) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(n_classes, slots, d))
        self.register_buffer("scores", torch.zeros(n_classes, slots))
        self.register_buffer("filled", torch.tensor(False))

    @torch.no_grad()
    def update(
        self, vectors: Float[Tensor, "b k d"], scores: Float[Tensor, "b k c"], tags: Float[Tensor, "b c"]
    ) -> None:
        """Let each video's vectors compete for the slots of each class it is tagged with; the older wins a tie."""
        for c in tags.any(dim=0).nonzero().flatten().tolist():
            tagged = tags[:, c] > 0
            all_scores = torch.cat([self.scores[c], scores[tagged, :, c].flatten()])
            all_vectors = torch.cat([self.vectors[c], vectors[tagged].flatten(0, 1)])
            order = all_scores.argsort(descending=True, stable=True)[: self.scores.shape[1]]
            self.scores[c], self.vectors[c] = all_scores[order], all_vectors[order]

    def zero(self) -> None:
        """Forget every vector; what comes next takes the slots, whatever its score."""
        self.vectors.zero_()
        self.scores.zero_()

    def slots_of(self, tags: Float[Tensor, "b c"]) -> tuple[Float[Tensor, "b k d"], Bool[Tensor, "b k"]]:
        """The slots of all classes of each video, and which of them are one's own rather than filling.

        As many as the video with the most tags needs; a video without tags has none of its own.
        """
        slots = self.scores.shape[1]
        classes = [row.nonzero().flatten() for row in tags]
        most = max(1, max(len(row) for row in classes))
        vectors = self.vectors.new_zeros(len(tags), most * slots, self.vectors.shape[2])
        own = torch.zeros(len(tags), most * slots, dtype=torch.bool, device=vectors.device)
        for video, row in enumerate(classes):
            if len(row):
                vectors[video, : len(row) * slots] = self.vectors[row].flatten(0, 1)
                own[video, : len(row) * slots] = True
        return vectors, own


def of_all_processes(*tensors: Tensor, places: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """Each tensor joined along its first axis with those of the other training processes.

    They are in the order of `places`, of which every process knows those of its own rows, and rows of a process that
    has no place are left out; None: by rank.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return tensors
    gathered: list[Any] = [()] * distributed.get_world_size()
    distributed.all_gather_object(gathered, (tensors, places))
    joined = zip(tensors, *(parts for parts, _ in gathered), strict=True)
    whole = tuple(torch.cat([part.to(own.device) for part in parts]) for own, *parts in joined)
    if places is None:
        return whole
    starts = accumulate((len(parts[0]) for parts, _ in gathered), initial=0)
    rows = [(place, at + n) for at, (_, some) in zip(starts, gathered, strict=False) for n, place in enumerate(some)]
    return tuple(one[[row for _, row in sorted(rows)]] for one in whole)
