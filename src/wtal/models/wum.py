"""WUM (Lee et al., AAAI 2021): background is what is uncertain, and uncertainty is a small feature.

Snippets with the largest feature magnitudes are taken for action, those with the smallest for background. A video's
score is that of each class's best snippets; background must look like no class in particular, and the magnitudes of
the two kinds are driven apart.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy, relu, softmax

from wtal.errors import InputError
from wtal.models.layers import Reduction, check_shares, over_classes
from wtal.models.packed import dropout, parts
from wtal.models.precision import Precision, chosen, linear
from wtal.models.protocol import Batch, Model, Output, Supervised


@dataclass(frozen=True, eq=False)
class _Inner:
    """Per video: class scores, those of its background, and the lengths of its mean action and background feature."""

    scores: Float[Tensor, "b c"]
    background_scores: Float[Tensor, "b c"]
    action: Float[Tensor, " b"]
    background: Float[Tensor, " b"]


class WUM(Model):
    """WUM with the settings of its THUMOS14 code as defaults.

    Of t snippets, t // action_divisor are taken for action and t // background_divisor for background, one at least.
    `class_reduction` is how the losses of the classes become one: a mean, as published, lets the losses fade as the
    number of classes grows. `precision` is that of the convolution while it learns.
    """

    def __init__(
        self,
        n_classes: int,
        d: int,
        *,
        hidden: int = 2048,
        dropout: float = 0.7,
        choice_dropout: float = 0.7,
        action_divisor: int = 9,
        background_divisor: int = 4,
        margin: float = 100.0,
        background_weight: float = 1.0,
        magnitude_weight: float = 5e-4,
        class_reduction: Reduction = "mean",
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        if n_classes < 2:
            raise InputError("WUM tells classes from each other and needs two at least; for one class use bm or stpn")
        check_shares(dropout=dropout, choice_dropout=choice_dropout)
        self.dropout, self.choice_dropout, self.margin = dropout, choice_dropout, margin
        self.action_divisor, self.background_divisor = action_divisor, background_divisor
        self.background_weight, self.magnitude_weight = background_weight, magnitude_weight
        self.class_reduction: Reduction = class_reduction
        self.precision = chosen(precision)
        self.convolution = nn.Linear(3 * d, hidden)  # over a snippet and its two neighbours
        self.classifier = nn.Linear(hidden, n_classes, bias=False)

    def forward(self, batch: Batch) -> Output:
        """Activations times magnitude, each scaled to 0 to 1 within the video; the attention is the magnitude."""
        rounded = self.training and self.precision == "bfloat16"
        x = relu(linear(self.convolution, _with_neighbours(batch, rounded=rounded), rounded=rounded))
        cas = self.classifier(dropout(x, self.dropout if self.training else 0.0, batch))
        magnitudes = torch.linalg.vector_norm(x, dim=1)
        kept = dropout(torch.ones_like(x[:, :1]), self.choice_dropout if self.training else 0.0, batch, layer=2)[:, 0]
        by_video = zip(*(parts(values, batch.lengths) for values in (x, cas, magnitudes, kept)), strict=True)
        videos = [self._video(*part) for part in by_video]
        inner = _Inner(*(torch.stack(values) for values in zip(*(one for one, _, _ in videos), strict=True)))
        return Output(
            tcam=torch.cat([tcam for _, tcam, _ in videos]),
            attention=torch.cat([attention for _, _, attention in videos]),
            video_scores=inner.scores.detach(),
            supervised=(Supervised(cas),),
            inner=inner,
        )

    def _video(
        self, x: Tensor, cas: Tensor, magnitudes: Tensor, kept: Tensor
    ) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """What `_Inner` holds of one video, its activation map, and its attention."""
        t = x.shape[0]
        # sym_max, since t is a symbol while the model is exported
        least_one = partial(torch.sym_max, 1)
        k_action, k_background = least_one(t // self.action_divisor), least_one(t // self.background_divisor)
        with torch.no_grad():
            action = (magnitudes * kept).topk(k_action).indices
            background = ((magnitudes.max() - magnitudes) * kept).topk(k_background).indices
            high, low = magnitudes[action].mean(), magnitudes[background].mean()
            attention = ((magnitudes - low) / torch.where(high > low, high - low, 1.0)).clamp(0, 1)
            tcam = softmax(cas, dim=1) * attention[:, None]
            least, most = tcam.amin(dim=0), tcam.amax(dim=0)
            tcam = (tcam - least) / torch.where(most > least, most - least, 1.0)
        of_video = (
            softmax(cas.topk(k_action, dim=0).values.mean(dim=0), dim=0),
            softmax(cas[background].mean(dim=0), dim=0),
            torch.linalg.vector_norm(x[action].mean(dim=0)),
            torch.linalg.vector_norm(x[background].mean(dim=0)),
        )
        return of_video, tcam, attention

    def losses(self, output: Output, batch: Batch, epoch: int) -> dict[str, Float[Tensor, ""]]:  # noqa: ARG002
        """`video`, `background` and `magnitude`."""
        inner: _Inner = output.inner
        tags = batch.known_tags()
        share = tags / (tags.sum(dim=1, keepdim=True) + 1e-8)
        even = torch.full_like(share, 1 / share.shape[1])

        def cross_entropy(scores: Tensor, target: Tensor) -> Tensor:
            return over_classes(binary_cross_entropy(scores, target, reduction="none"), self.class_reduction).sum()

        apart = relu(self.margin - inner.action) + inner.background
        return {
            "video": cross_entropy(inner.scores, share),
            "background": self.background_weight * cross_entropy(inner.background_scores, even),
            "magnitude": self.magnitude_weight * apart.square().sum(),
        }


def _with_neighbours(batch: Batch, *, rounded: bool) -> Float[Tensor, "n d3"]:
    """Each snippet's features between those of the snippet before and after it; beyond the video's ends there are 0."""
    x = batch.features.bfloat16() if rounded else batch.features
    before, after = torch.zeros_like(x), torch.zeros_like(x)
    before[1:], after[:-1] = x[:-1], x[1:]
    before[list(batch.offsets[1:-1])] = 0
    after[[end - 1 for end in batch.offsets[1:-1]]] = 0
    return torch.cat([before, x, after], dim=1)
