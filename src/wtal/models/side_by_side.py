"""Several models of one kind that are trained side by side: one for each stream of the features, or an ensemble."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wtal.errors import InputError
from wtal.models.protocol import Batch, Model, Output


class SideBySide(Model):
    """Models that learn independently of each other, from batches that each sees in its own way.

    What is random in one differs from the others. `Output.inner` holds what each of them says.
    """

    def __init__(self, parts: Iterable[Model]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, batch: Batch) -> Output:
        """What all of them say together."""
        return self.together(tuple(part(self.seen_by(i, batch)) for i, part in enumerate(self.parts)))

    def seen_by(self, i: int, batch: Batch) -> Batch:
        """The batch as one of the models sees it."""
        seeds = None if batch.seeds is None else tuple(seed + i for seed in batch.seeds)
        return replace(batch, seeds=seeds)

    def together(self, outputs: tuple[Output, ...]) -> Output:
        """One output of what each of the models says."""
        raise NotImplementedError

    def losses(self, output: Output, batch: Batch, epoch: int) -> dict[str, Float[Tensor, ""]]:
        """The models' losses, those of one name added up."""
        total: dict[str, Tensor] = {}
        for i, part in enumerate(self._models()):
            for name, loss in part.losses(output.inner[i], self.seen_by(i, batch), epoch).items():
                total[name] = total[name] + loss if name in total else loss
        return total

    def begin(self, batches: Iterable[Batch]) -> None:
        """Pass it on."""
        for i, part in enumerate(self._models()):
            part.begin(_SeenBy(self, i, batches))

    def end_step(self, output: Output, batch: Batch, epoch: int) -> None:
        """Pass it on."""
        for i, part in enumerate(self._models()):
            part.end_step(output.inner[i], self.seen_by(i, batch), epoch)

    def end_epoch(self, epoch: int, batches: Iterable[Batch]) -> None:
        """Pass it on."""
        for i, part in enumerate(self._models()):
            part.end_epoch(epoch, _SeenBy(self, i, batches))

    def targets_changed(self) -> None:
        """Pass it on."""
        for part in self._models():
            part.targets_changed()

    def _models(self) -> Iterator[Model]:
        for part in self.parts:
            assert isinstance(part, Model)
            yield part


class Ensemble(SideBySide):
    """Models that differ in nothing but what is random in them; their mean is better than any of them.

    Labels are made from the mean of their maps, and teach all of them.

    Args:
        n: How many.
        make: Makes one.
    """

    def __init__(self, n: int, make: Callable[[], Model]) -> None:
        super().__init__(make() for _ in range(n))

    def together(self, outputs: tuple[Output, ...]) -> Output:
        """Their mean."""
        return replace(_mean(outputs, [1 / len(outputs)] * len(outputs)), inner=outputs)


class PerStream(SideBySide):
    """A model for each stream of the features (RGB, flow), which sees its own columns; what they find is pooled.

    Args:
        widths: How many columns each stream has, by name, from left to right, as the store says.
        weights: What each stream's instances count when they are pooled (RGB counts a tenth in FAC-Net).
        make: The model of one stream for features of so many dimensions.
    """

    def __init__(self, widths: Mapping[str, int], weights: Mapping[str, float], make: Callable[[int], Model]) -> None:
        if set(weights) != set(widths):
            raise InputError(
                f"stream_weights must weigh the streams of the features, {', '.join(widths) or 'which have no names'}; "
                f"it weighs {', '.join(weights)}"
            )
        if not all(weight > 0 for weight in weights.values()):
            raise InputError(f"stream_weights must be above 0, got {dict(weights)}")
        super().__init__(make(width) for width in widths.values())
        self.widths, self.weights = list(widths.values()), tuple(weights[name] for name in widths)

    def seen_by(self, i: int, batch: Batch) -> Batch:
        """The batch with the columns of one stream."""
        features = torch.split(batch.features, self.widths, dim=1)[i].contiguous()
        return replace(super().seen_by(i, batch), features=features)

    def together(self, outputs: tuple[Output, ...]) -> Output:
        """Each stream's output, and their weighted mean."""
        weighted = tuple(replace(one, weight=weight) for one, weight in zip(outputs, self.weights, strict=True))
        shares = [weight / sum(self.weights) for weight in self.weights]
        return replace(_mean(outputs, shares), inner=outputs, streams=weighted, target_tcam=None)


def _mean(outputs: Sequence[Output], shares: Sequence[float]) -> Output:
    def mean(values: Iterable[Tensor]) -> Tensor:
        return torch.stack([share * value for share, value in zip(shares, values, strict=True)]).sum(dim=0)

    of_targets = [one.tcam if one.target_tcam is None else one.target_tcam for one in outputs]
    return Output(
        tcam=mean(one.tcam for one in outputs),
        target_tcam=mean(of_targets),
        attention=mean(one.attention for one in outputs),
        video_scores=mean(one.video_scores for one in outputs),
        supervised=tuple(one for output in outputs for one in output.supervised),
    )


@dataclass(frozen=True, eq=False)
class _SeenBy:
    """Batches as one of the models sees them, made when they are asked for."""

    models: SideBySide
    i: int
    batches: Iterable[Batch]

    def __iter__(self) -> Iterator[Batch]:
        return (self.models.seen_by(self.i, batch) for batch in self.batches)
