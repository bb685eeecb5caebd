"""The videos of one split as batches for a model; features stay on disk until a batch needs them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from wtal.data.sampling import perturbed
from wtal.data.store import Store
from wtal.forward import packed
from wtal.instances import Instances
from wtal.models.protocol import Batch
from wtal.training.config import SegmentSampling
from wtal.training.corrections import taught_snippets

#: videos that a pass over all of them takes at a time: enough to keep the processor busy
PASS_VIDEOS = 10


class Videos:
    """A split's videos by number, in the order of the store."""

    def __init__(
        self,
        store: Store,
        split: str,
        device: torch.device,
        boxes: Sequence[Instances] | None = None,
        *,
        corrected: Mapping[str, Instances] | None = None,
    ) -> None:
        self.store, self.names, self.device, self.boxes = store, store.names(split), device, boxes
        self.tags: Float[np.ndarray, "n c"] = store.tags(split)
        self.taught: csr_array | None = None
        """Shares of the classes and of background in each snippet of a corrected video; None: none is corrected."""
        if corrected:
            self.taught = taught_snippets(corrected, self.names, store)
            for number, name in enumerate(self.names):
                if name in corrected:  # in the place of its tags
                    self.tags[number] = np.isin(np.arange(len(store.classes)), corrected[name].class_ids)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each video's snippets begin if those of all videos are concatenated, and the end of the last."""
        return tuple(np.cumsum([0, *(self.store.length(name) for name in self.names)]).tolist())

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many snippets each video has."""
        return tuple(np.diff(self.offsets).tolist())

    def sampled(
        self, numbers: Sequence[int], seeds: Sequence[int], sampling: SegmentSampling
    ) -> list[Int[np.ndarray, " _"]]:
        """Which of its snippets a training step sees of each of these videos."""
        return [
            _sampled(self.store.length(self.names[number]), seed, sampling)
            for number, seed in zip(numbers, seeds, strict=True)
        ]

    def batch(
        self,
        numbers: Sequence[int],
        *,
        seeds: Sequence[int] | None = None,
        snippets: Sequence[Int[np.ndarray, " _"]] | None = None,
    ) -> Batch:
        """These videos with their tags, whole or these `snippets` of theirs."""
        parts = [self.store.features(self.names[number]) for number in numbers]
        if snippets is not None:
            parts = [part[rows] for part, rows in zip(parts, snippets, strict=True)]
        boxes = None if self.boxes is None else [self.boxes[number] for number in numbers]
        return packed(parts, self.device, tags=torch.from_numpy(self.tags[list(numbers)]), seeds=seeds, boxes=boxes)

    def rows(self, numbers: Sequence[int], snippets: Sequence[Int[np.ndarray, " _"]]) -> Int[np.ndarray, " n"]:
        """Where these snippets of these videos lie if the snippets of all videos are concatenated."""
        return np.concatenate([self.offsets[n] + some for n, some in zip(numbers, snippets, strict=True)])

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


def _sampled(length: int, seed: int, sampling: SegmentSampling) -> Int[np.ndarray, " _"]:
    wanted = sampling.segments
    if wanted is None or (length <= wanted and not sampling.repeat):
        return np.arange(length)
    return perturbed(length, wanted, np.random.default_rng(seed))


def video_seeds(seed: int, epoch: int, numbers: Sequence[int]) -> list[int]:
    """A seed for what is random in a model, of each video in an epoch: whatever step or process it falls to."""
    return [int(np.random.SeedSequence([seed, epoch, number]).generate_state(1)[0]) for number in numbers]


def shuffled(n: int, *, seed: int, epoch: int) -> list[int]:
    """The order of `n` videos in an epoch."""
    order: list[int] = np.random.default_rng([seed, epoch]).permutation(n).tolist()
    return order
