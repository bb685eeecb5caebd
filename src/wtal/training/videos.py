"""The videos of one split as batches for a model; features stay on disk until a batch needs them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int

from wtal.data.sampling import perturbed
from wtal.data.store import Store
from wtal.models.protocol import Batch
from wtal.training.config import Sampling

#: videos that a pass over all of them takes at a time: enough to keep the processor busy
PASS_VIDEOS = 10


class Videos:
    """A split's videos by number, in the order of the store."""

    def __init__(self, store: Store, split: str, device: torch.device) -> None:
        self.store, self.names, self.device = store, store.names(split), device
        self.tags: Float[np.ndarray, "n c"] = store.tags(split)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each video's snippets begin if all are concatenated, and the end of the last."""
        return tuple(np.cumsum([0, *(self.store.length(name) for name in self.names)]).tolist())

    def sampled(self, numbers: Sequence[int], seeds: Sequence[int], sampling: Sampling) -> list[Int[np.ndarray, " _"]]:
        """Which of all snippets, concatenated, a training step sees of these videos."""
        chosen = []
        for number, seed in zip(numbers, seeds, strict=True):
            start, end = self.offsets[number : number + 2]
            wanted = sampling.segments
            if wanted is None or (end - start <= wanted and not sampling.repeat):
                chosen.append(np.arange(start, end))
            else:
                chosen.append(start + perturbed(end - start, wanted, np.random.default_rng(seed)))
        return chosen

    def batch(
        self,
        numbers: Sequence[int],
        *,
        tagged: bool = True,
        seeds: Sequence[int] | None = None,
        snippets: Sequence[Int[np.ndarray, " _"]] | None = None,
    ) -> Batch:
        """These videos, whole or these `snippets` of theirs, with their tags unless told otherwise."""
        parts = [self.store.features(self.names[number]) for number in numbers]
        if snippets is not None:
            starts = [self.offsets[number] for number in numbers]
            parts = [part[rows - start] for part, rows, start in zip(parts, snippets, starts, strict=True)]
        lengths = tuple(len(part) for part in parts)
        features = torch.empty(sum(lengths), self.store.dimensions)
        np.concatenate(parts, out=features.numpy(), casting="same_kind")
        labels = torch.from_numpy(self.tags[list(numbers)]) if tagged else None
        batch = Batch(features, lengths, labels, None if seeds is None else tuple(seeds))
        return batch if self.device.type == "cpu" else batch.to(self.device)

    def in_order(self) -> Iterator[list[int]]:
        """The videos' numbers, for a pass over all of them: a few at a time, as whole videos take memory."""
        for start in range(0, len(self), PASS_VIDEOS):
            yield list(range(start, min(start + PASS_VIDEOS, len(self))))


@dataclass(frozen=True)
class Batches:
    """All videos with their tags in order, whole, as often as one goes through them."""

    videos: Videos

    def __iter__(self) -> Iterator[Batch]:
        return (self.videos.batch(numbers) for numbers in self.videos.in_order())


def video_seeds(seed: int, epoch: int, numbers: Sequence[int]) -> list[int]:
    """A seed for what is random in a model, of each video in an epoch: whatever step or process it falls to."""
    return [int(np.random.SeedSequence([seed, epoch, number]).generate_state(1)[0]) for number in numbers]


def shuffled(n: int, *, seed: int, epoch: int) -> list[int]:
    """The order of `n` videos in an epoch."""
    order: list[int] = np.random.default_rng([seed, epoch]).permutation(n).tolist()
    return order
