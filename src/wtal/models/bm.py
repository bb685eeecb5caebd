"""BM (Nguyen et al., ICCV 2019): background is a class of its own, which what attention leaves out must show.

Attention splits a video into a foreground and a background feature; the first is classified as the tags, the second as
background. What the classifier says of each snippet guides the attention, and the two features are told apart.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import conv1d, log_softmax, logsigmoid, pad, softmax

from wtal.losses import normalised_cross_entropy, video_means
from wtal.models.layers import Attention, Embedding, check_shares
from wtal.models.packed import parts, pooled, sums_over_time
from wtal.models.precision import Precision
from wtal.models.protocol import Batch, Model, Output, Supervised

REACH = 4  # standard deviations that the smoothing kernel covers on either side


@dataclass(frozen=True, eq=False)
class _Inner:
    """Per video the logits of the foreground and background feature, and how far either is on its own side."""

    foreground: Float[Tensor, "b c"]
    background: Float[Tensor, "b c"]
    foreground_side: Float[Tensor, " b"]
    background_side: Float[Tensor, " b"]
    frames: Float[Tensor, "n c"]


class BM(Model):
    """BM; `hidden` is the width of an embedding in front, 0 for none.

    Its weights were never published in code. The defaults are those of the closest released form, stage 1 of DGAM,
    which leaves the clustering out. `floor` is the least share that a snippet has in either feature, whatever attention
    says of it: with 0 a single snippet can stand for a whole side, and attention closes on it or opens to all the rest.
    `precision` is that of the embedding while it learns.
    """

    def __init__(
        self,
        n_classes: int,
        d: int,
        *,
        hidden: int = 0,
        dropout: float = 0.0,
        attention_hidden: int = 256,
        foreground_weight: float = 1.0,
        background_weight: float = 0.03,
        guide_weight: float = 0.1,
        cluster_weight: float = 0.0,
        floor: float = 0.0,
        smoothing: float = 1.0,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        check_shares(floor=floor)
        self.embedding = Embedding(d, hidden, dropout, precision)
        width = self.embedding.width
        self.attention = Attention(width, attention_hidden)
        self.classifier = nn.Linear(width, n_classes + 1)  # the last is background
        self.sides = nn.Linear(width, 2, bias=False)
        self.foreground_weight, self.background_weight = foreground_weight, background_weight
        self.guide_weight, self.cluster_weight, self.smoothing = guide_weight, cluster_weight, smoothing
        self.floor = floor

    def forward(self, batch: Batch) -> Output:
        """Snippet logits of the classes and background; the TCAM is attention times their softmax."""
        x = self.embedding(batch)
        attention = self.attention(x)
        shares = self.floor + (1 - self.floor) * torch.stack([attention, 1 - attention], dim=1)
        mass = sums_over_time(shares, batch.lengths) + 1e-6
        foreground, background = (pooled(shares, x, batch.lengths) / mass[:, :, None]).unbind(dim=1)
        frames = self.classifier(x)
        apart = self.sides.weight[0] - self.sides.weight[1]
        inner = _Inner(
            self.classifier(foreground), self.classifier(background), foreground @ apart, -(background @ apart), frames
        )
        return Output(
            tcam=(attention[:, None] * softmax(frames, dim=1)).detach(),
            attention=attention,
            video_scores=softmax(inner.foreground, dim=1).detach(),
            supervised=(Supervised(frames),),
            inner=inner,
        )

    def losses(self, output: Output, batch: Batch, epoch: int) -> dict[str, Float[Tensor, ""]]:  # noqa: ARG002
        """`foreground`, `background`, `guide` and `cluster`."""
        inner: _Inner = output.inner
        tags = batch.known_tags()
        guides = zip(parts(softmax(inner.frames.detach(), dim=1), batch.lengths), tags, strict=True)
        wanted = torch.cat([_guidance(smoothed(part, self.smoothing), own) for part, own in guides])
        off = (output.attention[:, None] - wanted).abs().sum(dim=1)
        return {
            "foreground": self.foreground_weight
            * normalised_cross_entropy(inner.foreground, pad(tags, (0, 1), value=0.0)).sum(),
            "background": -self.background_weight * log_softmax(inner.background, dim=1)[:, -1].sum(),
            "guide": self.guide_weight * video_means(off, batch.lengths).sum(),
            "cluster": -self.cluster_weight
            * (logsigmoid(inner.foreground_side) + logsigmoid(inner.background_side)).sum(),
        }


def _guidance(probabilities: Float[Tensor, "t c"], tags: Float[Tensor, " k"]) -> Float[Tensor, "t 2"]:
    """What attention should be: the largest probability of the video's classes, and that of anything but background."""
    foreground = (probabilities[:, :-1] * tags).amax(dim=1)
    return torch.stack([foreground, 1 - probabilities[:, -1]], dim=1)


def smoothed(curves: Float[Tensor, "t c"], sigma: float) -> Float[Tensor, "t c"]:
    """Each column under a Gaussian of `sigma` snippets; beyond the ends a curve goes on as it ends."""
    if not sigma:
        return curves
    radius = int(REACH * sigma + 0.5)
    at = torch.arange(-radius, radius + 1, dtype=curves.dtype, device=curves.device)
    kernel = torch.softmax(-0.5 * (at / sigma) ** 2, dim=0)
    wide = pad(curves.t()[:, None], (radius, radius), mode="replicate")
    return conv1d(wide, kernel[None, None])[:, 0].t()
