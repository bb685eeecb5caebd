"""STPN (Nguyen et al., CVPR 2018): a sparse attention pools a video's snippets, and its classifier reads each of them.

With an embedding in front it is the first base model of the paper's plug-in table.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from wtal.losses import video_means
from wtal.models.layers import Attention, Embedding, Reduction, over_classes
from wtal.models.packed import pooled
from wtal.models.precision import Precision
from wtal.models.protocol import Batch, Model, Output, Supervised


class STPN(Model):
    """STPN; `hidden` is the width of the embedding, 0 for none.

    `sparsity_weight` is that of the mean attention: 0.04 is 1e-4 times the sum over 400 snippets, as published, but
    does not depend on how many there are. `precision` is that of the embedding while it learns.
    """

    def __init__(
        self,
        n_classes: int,
        d: int,
        *,
        hidden: int = 0,
        dropout: float = 0.0,
        attention_hidden: int = 256,
        sparsity_weight: float = 0.04,
        class_reduction: Reduction = "mean",
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        self.embedding = Embedding(d, hidden, dropout, precision)
        self.attention = Attention(self.embedding.width, attention_hidden)
        self.classifier = nn.Linear(self.embedding.width, n_classes)
        self.sparsity_weight = sparsity_weight
        self.class_reduction: Reduction = class_reduction

    def forward(self, batch: Batch) -> Output:
        """Snippet logits are the features' products with the classifier's weights; the TCAM is attention times their
        sigmoid."""
        x = self.embedding(batch)
        attention = self.attention(x)
        lengths = torch.tensor(batch.lengths, dtype=x.dtype, device=x.device)
        means = pooled(attention[:, None], x, batch.lengths)[:, 0] / lengths[:, None]
        frames, video = x @ self.classifier.weight.t(), self.classifier(means)
        return Output(
            tcam=(attention[:, None] * torch.sigmoid(frames)).detach(),
            attention=attention,
            video_scores=torch.sigmoid(video).detach(),
            supervised=(Supervised(frames),),
            inner=video,
        )

    def losses(self, output: Output, batch: Batch, epoch: int) -> dict[str, Float[Tensor, ""]]:  # noqa: ARG002
        """`video` and `sparsity`."""
        entropies = binary_cross_entropy_with_logits(output.inner, batch.known_tags(), reduction="none")
        return {
            "video": over_classes(entropies, self.class_reduction).sum(),
            "sparsity": self.sparsity_weight * video_means(output.attention, batch.lengths).sum(),
        }
