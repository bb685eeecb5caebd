"""A model for each stream of the features (RGB, flow): trained independently; what they find is pooled."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wtal.errors import InputError
from wtal.models.protocol import Batch, Model, Output


class PerStream(Model):
    """Models of one kind side by side, each for its own columns of a snippet's features.

    Args:
        widths: How many columns each stream has, by name, from left to right, as the store says.
        weights: What each stream's instances count when they are pooled (RGB counts a tenth in FAC-Net).
        make: The model of one stream for features of so many dimensions.
    """

    def __init__(self, widths: Mapping[str, int], weights: Mapping[str, float], make: Callable[[int], Model]) -> None:
        super().__init__()
        if set(weights) != set(widths):
            raise InputError(
                f"stream_weights must weigh the streams of the features, {', '.join(widths) or 'which have no names'}; "
                f"it weighs {', '.join(weights)}"
            )
        if not all(weight > 0 for weight in weights.values()):
            raise InputError(f"stream_weights must be above 0, got {dict(weights)}")
        self.widths, self.weights = list(widths.values()), tuple(weights[name] for name in widths)
        self.parts = nn.ModuleList(make(width) for width in self.widths)

    def forward(self, batch: Batch) -> Output:
        """Each stream's output, and their weighted mean."""
        outputs = [
            replace(part(self._narrowed(batch, i)), weight=weight)
            for i, (part, weight) in enumerate(zip(self.parts, self.weights, strict=True))
        ]
        shares = [weight / sum(self.weights) for weight in self.weights]

        def mean(values: Iterable[Tensor]) -> Tensor:
            return torch.stack([share * value for share, value in zip(shares, values, strict=True)]).sum(dim=0)

        return Output(
            tcam=mean(one.tcam for one in outputs),
            attention=mean(one.attention for one in outputs),
            video_scores=mean(one.video_scores for one in outputs),
            supervised=tuple(one for output in outputs for one in output.supervised),
            streams=tuple(outputs),
        )

    def losses(self, output: Output, batch: Batch, epoch: int) -> dict[str, Float[Tensor, ""]]:
        """The streams' losses, those of one name added up."""
        total: dict[str, Tensor] = {}
        for i, part in enumerate(self._models()):
            for name, loss in part.losses(output.streams[i], self._narrowed(batch, i), epoch).items():
                total[name] = total[name] + loss if name in total else loss
        return total

    def end_step(self, output: Output, batch: Batch, epoch: int) -> None:
        """Pass it on."""
        for i, part in enumerate(self._models()):
            part.end_step(output.streams[i], self._narrowed(batch, i), epoch)

    def end_epoch(self, epoch: int, batches: Iterable[Batch]) -> None:
        """Pass it on."""
        for i, part in enumerate(self._models()):
            part.end_epoch(epoch, _Narrowed(self, batches, i))

    def targets_changed(self) -> None:
        """Pass it on."""
        for part in self._models():
            part.targets_changed()

    def _models(self) -> Iterator[Model]:
        for part in self.parts:
            assert isinstance(part, Model)
            yield part

    def _narrowed(self, batch: Batch, i: int) -> Batch:
        """The batch as stream `i` sees it; what is random in it differs from the other streams."""
        features = torch.split(batch.features, self.widths, dim=1)[i].contiguous()
        seeds = None if batch.seeds is None else tuple(seed + i for seed in batch.seeds)
        return replace(batch, features=features, seeds=seeds)


@dataclass(frozen=True, eq=False)
class _Narrowed:
    """Batches of one stream, made when they are asked for."""

    streams: PerStream
    batches: Iterable[Batch]
    i: int

    def __iter__(self) -> Iterator[Batch]:
        return (self.streams._narrowed(batch, self.i) for batch in self.batches)
