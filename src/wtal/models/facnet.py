"""FAC-Net (Huang et al., ICCV 2021): foreground and action attention made consistent.

One head of cosines reads the embedded snippets: with a prototype per class and background, and with one of foreground.
Softmax over time turns each row of cosines into attention, at several temperatures. Features pooled by a class's
attention must look like foreground (`classwise`), features pooled by the foreground's must look like the class
(`agnostic`), and the class logits under their own attention are multiple-instance learning (`mil`).
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad, relu, softmax

from wtal.errors import InputError
from wtal.losses import normalised_cross_entropy
from wtal.models.layers import EPS, check_shares, root, unit
from wtal.models.low_rank import EmbeddedSnippets
from wtal.models.packed import dropout, softmax_over_time, sums_over_time
from wtal.models.precision import Precision, chosen, linear
from wtal.models.protocol import Batch, Model, Output, Supervised


class FACNet(Model):
    """FAC-Net on one stream, with the settings of its THUMOS14 code as defaults.

    `precision` is that of the embedding's two layers while they learn.
    """

    def __init__(
        self,
        n_classes: int,
        d: int,
        *,
        hidden: int | None = None,
        dropout: float = 0.5,
        scale: float = 5.0,
        video_factor: float = 2.0,
        temperatures: Sequence[float] = (1.0, 2.0, 5.0),
        classwise_weight: float = 1.0,
        agnostic_weight: float = 0.1,
        mil_weight: float = 0.1,
        precision: Precision = "float32",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_shares(dropout=dropout)
        if not temperatures:
            raise InputError("temperatures must name at least one")
        self.dropout, self.scale, self.video_factor, self.temperatures = dropout, scale, video_factor, temperatures
        self.weights = {"classwise": classwise_weight, "agnostic": agnostic_weight, "mil": mil_weight}
        self.precision = chosen(precision)
        hidden = hidden or d
        self.first, self.second = nn.Linear(d, d), nn.Linear(d, hidden)
        self.prototypes = nn.Parameter(torch.empty(n_classes + 1, hidden))  # the last is background
        for weight in (self.first.weight, self.second.weight, self.prototypes):
            nn.init.xavier_uniform_(weight, generator=generator)
        nn.init.zeros_(self.first.bias)
        nn.init.zeros_(self.second.bias)
        self.foreground = nn.Parameter(-self.prototypes[-1:].detach().clone())

    def forward(self, batch: Batch) -> Output:
        """Snippet logits of the classes and background; video scores are those of foreground attention."""
        probability = self.dropout if self.training else 0.0
        rounded = self.training and self.precision == "bfloat16"
        first = dropout(relu(linear(self.first, batch.features, rounded=rounded)), probability, batch)
        x = EmbeddedSnippets(replace(batch, features=first), self.second, dropout=probability, rounded=rounded)
        prototypes = unit(torch.cat([self.prototypes, self.foreground]))
        (dots,) = x.dots(prototypes)
        logits = self.scale * dots / (root(x.squared_norms()) + EPS)[:, None]
        attentions = [softmax_over_time(t * logits, batch.lengths) for t in self.temperatures]
        # cosines of what each attention pools (rows: classes, background, foreground) with each prototype (columns)
        pooled = torch.stack(x.pool(*attentions), dim=1)
        video = self.video_factor * self.scale * (unit(pooled) @ prototypes.t()).mean(dim=1)
        own = torch.stack(attentions).mean(dim=0)[:, :-1] * logits[:, :-1]
        frames = logits[:, :-1]
        return Output(
            tcam=softmax(frames.detach(), dim=1),
            attention=torch.sigmoid(logits[:, -1].detach()),
            video_scores=softmax(video[:, -1, :-1].detach(), dim=1),
            supervised=(Supervised(frames, bounded=True),),
            inner={  # the video logits of the three branches
                "classwise": video[:, :-1, -1],
                "agnostic": video[:, -1, :-1],
                "mil": self.video_factor * sums_over_time(own, batch.lengths),
            },
        )

    def losses(self, output: Output, batch: Batch, epoch: int) -> dict[str, Float[Tensor, ""]]:  # noqa: ARG002
        """`classwise`, `agnostic` and `mil`; only the last knows that every video has background."""
        logits: dict[str, Tensor] = output.inner
        tags = batch.known_tags()
        targets = {name: pad(tags, (0, 1), value=1.0 if name == "mil" else 0.0) for name in logits}
        values = {name: normalised_cross_entropy(logits[name], targets[name]) for name in logits}
        return {name: self.weights[name] * value.sum() for name, value in values.items()}
