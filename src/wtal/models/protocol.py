"""What goes into a model and what comes out: the types by which any model plugs into training and localization."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.pseudo.candidates import Candidates


@dataclass(frozen=True, eq=False)
class Batch:
    """Whole videos, concatenated: nothing is spent on padding, however different their lengths.

    `tags` are 1 for each class that a video is tagged with (background is no class). `seeds`, one per video, make
    what is random in a model (dropout) depend on the video and the step alone, not on how videos are spread over
    batches or processes; without them it comes from torch's global generator. `boxes` are what
    a detector is taught beside the tags. `places` are where the videos stand in a training step that processes share.

    >>> two = Batch.pack([torch.zeros(3, 8), torch.zeros(1, 8)])
    >>> two.features.shape, two.lengths, two.offsets
    (torch.Size([4, 8]), (3, 1), (0, 3, 4))
    """

    features: Float[Tensor, "n d"]
    lengths: tuple[int, ...]
    tags: Float[Tensor, "b c"] | None = None
    seeds: tuple[int, ...] | None = None
    boxes: tuple[Instances, ...] | None = None
    places: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        # here and in models .shape[0], not len(), which would fix the number while a model is exported
        if not self.lengths or min(self.lengths) < 1 or sum(self.lengths) != self.features.shape[0]:
            raise InputError(
                f"a batch needs videos of at least one snippet that add up to its {len(self.features)} rows of "
                f"features, got lengths {self.lengths}"
            )
        for name, given in (("tags", self.tags), ("seeds", self.seeds), ("boxes", self.boxes)):
            if given is not None and len(given) != len(self.lengths):
                raise InputError(f"{name} of {len(self.lengths)} videos must be as many, got {len(given)}")

    @classmethod
    def pack(
        cls,
        videos: Sequence[Float[Tensor, "_ d"]],
        tags: Float[Tensor, "b c"] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> "Batch":
        """A batch of these videos' features."""
        lengths = tuple(len(video) for video in videos)
        return cls(torch.cat(list(videos)), lengths, tags, None if seeds is None else tuple(seeds))

    @property
    def offsets(self) -> tuple[int, ...]:
        """Row where each video begins, and the end of the last."""
        return tuple(accumulate(self.lengths, initial=0))

    @property
    def n_videos(self) -> int:
        """How many of a step's videos these are."""
        return len(self.lengths) if self.places is None else len(self.places)

    def known_tags(self) -> Float[Tensor, "b c"]:
        """The tags, without which nothing can be learned."""
        if self.tags is None:
            raise InputError("learning needs the videos' tags, got a batch without")
        return self.tags

    def known_boxes(self) -> tuple[Instances, ...]:
        """Each video's boxes, in snippets, their weights as scores: what a detector is taught."""
        if self.boxes is None:
            raise InputError("a detector is taught boxes, got a batch without; train it with a teacher")
        return self.boxes

    def untagged(self) -> "Batch":
        """The same videos as if they carried no tag and were none of the step's."""
        tags = None if self.tags is None else torch.zeros_like(self.tags)
        boxes = None if self.boxes is None else tuple(one[:0] for one in self.boxes)
        return replace(self, tags=tags, boxes=boxes, places=())

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        tags = None if self.tags is None else self.tags.to(device)
        return replace(self, features=self.features.to(device), tags=tags)


@dataclass(frozen=True, eq=False)
class Supervised:
    """Snippet logits that pseudo labels teach, and the share of the pseudo-label loss that falls to them.

    `bounded` says that they cannot grow without a limit, as scaled cosines: then signed labels teach by Eq. 9 itself.
    """

    logits: Float[Tensor, "n c"]
    weight: float = 1.0
    bounded: bool = False


@dataclass(frozen=True, eq=False)
class Output:
    """What every model says about a batch.

    The classes' columns may be followed by one for background. `tcam` is what instances are cut from at test,
    `target_tcam` what they are cut from to make pseudo labels; most models have one for both. `inner` is the model's
    own: it comes back to the model's `losses` and is nobody else's concern.

    Several streams (RGB and flow, wtal.models.streams) each say their own in `streams`; then instances are looked
    for in each, their scores count by its `weight`, and the fields of the whole are the weighted means, to be shown.
    """

    tcam: Float[Tensor, "n c"]
    attention: Float[Tensor, " n"]
    video_scores: Float[Tensor, "b c"]
    supervised: tuple[Supervised, ...]
    target_tcam: Float[Tensor, "n c"] | None = None
    inner: Any = None
    weight: float = 1.0
    streams: tuple["Output", ...] = ()

    @property
    def maps(self) -> tuple["Output", ...]:
        """What instances are cut from: each of the streams, or the one output that there is."""
        return self.streams or (self,)


class Model(nn.Module):
    """A model: `forward` and `losses` are required, the hooks are for models that remember something.

    Constructed as `model(n_classes, d, **options)`. It knows nothing of candidates, fusion or pseudo labels.
    """

    def forward(self, batch: Batch) -> Output:
        """What the model says about each video of the batch."""
        raise NotImplementedError

    def losses(self, output: Output, batch: Batch, epoch: int) -> dict[str, Float[Tensor, ""]]:
        """The model's own losses by name, weighted, each *summed* over the batch's videos; their sum is minimised.

        `epoch` counts from 0. Sums, so that a step does not depend on how its videos are divided.
        """
        raise NotImplementedError

    def candidates(self, output: Output, batch: Batch) -> tuple[Candidates, ...] | None:
        """The candidates that a detector finds by itself in each video; None: they are cut from the maps."""

    def begin(self, batches: Iterable[Batch]) -> None:
        """Called once, before the first epoch, with the training videos in order."""

    def end_step(self, output: Output, batch: Batch, epoch: int) -> None:
        """Called after each optimizer step with what its forward pass gave."""

    def end_epoch(self, epoch: int, batches: Iterable[Batch]) -> None:
        """Called after each epoch; `batches` goes over the labelled training videos in order, as often as asked."""

    def targets_changed(self) -> None:
        """Called when what supervises the model beside its own losses has been renewed."""
