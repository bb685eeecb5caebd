"""RSKP (Huang et al., CVPR 2022): representative snippets summarise a video, and knowledge spreads through them.

A video's snippets x are summarised by a few vectors μ (expectation maximisation), and a random walk between snippets
and μ gives propagated features. One head of cosines with class prototypes reads the original branch `o`, the propagated
branch `m` and, after a warm-up, the branch `r`, which walks over a memory of the best μ that the video's classes had in
any video.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad, softmax

from wtal.errors import InputError
from wtal.losses import attention_contrast, normalised_cross_entropy, soft_cross_entropy
from wtal.models.bank import MemoryBank, of_all_processes
from wtal.models.layers import EPS, check_shares, root, unit
from wtal.models.low_rank import EmbeddedSnippets
from wtal.models.precision import Precision, chosen
from wtal.models.propagation import Walk, responsibilities, time_means, walks
from wtal.models.protocol import Batch, Model, Output, Supervised

#: Whose memory a video's snippets walk over: that of its own classes; of class 0, whatever its tags, as in the released
#: code; or of a class that it does not carry: one drawn at random, or the one that it looks most like.
BankClass = Literal["own", "first", "random", "hardest"]


@dataclass(frozen=True, eq=False)
class Branch:
    """What the head reads from one version of the features."""

    logits: Float[Tensor, "n c"]
    attention: Float[Tensor, " n"]
    agnostic: Float[Tensor, "b c"]  # video logits by class-agnostic attention ("ca")
    classwise: Float[Tensor, "b c"]  # video logits by each class's own attention ("cw")


@dataclass(frozen=True, eq=False)
class _Inner:
    """The branches by name, and each video's μ with their class scores."""

    branches: dict[str, Branch]
    mu: Float[Tensor, "b k d"]
    mu_scores: Float[Tensor, "b k c"]


class RSKP(Model):
    """RSKP with the settings of its THUMOS14 code as defaults.

    `bank_class` says whose memory the branch `r` walks over. `spl_stages` are (first epoch, weight), epochs counted
    from 0. The mixes are shares of the original and the propagated branch: in the video scores, in the TCAM at test, in
    the TCAM that labels are made from, and in the pseudo-label loss (`spl_mix`: of the propagated and the memory's
    branch, when they teach the original one). `precision` bfloat16 halves the time of a training step on processors
    that have it; at test all is single precision.
    """

    def __init__(
        self,
        n_classes: int,
        d: int,
        *,
        hidden: int | None = None,
        dropout: float = 0.6,
        n_mu: int = 8,
        em_rounds: int = 2,
        sharpness: float = 5.0,
        walk: float = 0.5,
        scale: float = 20.0,
        bank_slots: int = 5,
        bank_class: BankClass = "own",
        warmup_epoch: int = 100,
        zero_bank_with_targets: bool = False,
        back_weight: float = 0.2,
        attention_weight: float = 0.1,
        bank_weight: float = 0.5,
        spl_stages: Sequence[tuple[int, float]] = ((0, 1.0), (101, 0.5)),
        spl_temperature: float = 0.2,
        spl_mix: tuple[float, float] = (0.8, 0.2),
        score_mix: tuple[float, float] = (0.6, 0.4),
        tcam_mix: tuple[float, float] = (0.6, 0.4),
        target_mix: tuple[float, float] = (0.8, 0.2),
        pseudo_mix: tuple[float, float] = (0.8, 0.2),
        precision: Precision = "float32",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_shares(dropout=dropout, walk=walk)
        if em_rounds < 1:
            raise InputError(f"em_rounds must be at least 1, got {em_rounds}")
        hidden = hidden or d
        self.precision = chosen(precision)
        self.dropout, self.em_rounds, self.sharpness, self.walk = dropout, em_rounds, sharpness, walk
        self.scale, self.warmup_epoch, self.zero_bank_with_targets = scale, warmup_epoch, zero_bank_with_targets
        self.back_weight, self.attention_weight, self.bank_weight = back_weight, attention_weight, bank_weight
        self.spl_stages, self.spl_temperature, self.spl_mix = spl_stages, spl_temperature, spl_mix
        self.score_mix, self.tcam_mix, self.target_mix, self.pseudo_mix = score_mix, tcam_mix, target_mix, pseudo_mix

        self.bank_class: BankClass = bank_class

        self.embedding = nn.Linear(d, hidden)
        self.mu = nn.Parameter(torch.empty(n_mu, hidden))
        self.prototypes = nn.Parameter(torch.empty(n_classes + 1, hidden))  # the last is background
        for weight in (self.embedding.weight, self.mu, self.prototypes):
            nn.init.xavier_uniform_(weight, generator=generator)
        nn.init.zeros_(self.embedding.bias)
        self.foreground = nn.Parameter(-self.prototypes[-1:].detach().clone())
        self.bank = MemoryBank(n_classes, hidden, slots=bank_slots)

    def forward(self, batch: Batch) -> Output:
        """Branches `o` and `m`; and `r`, for training only, if the batch has tags and the memory is filled."""
        dropout, rounded = (self.dropout, self.precision == "bfloat16") if self.training else (0.0, False)
        x = EmbeddedSnippets(batch, self.embedding, dropout=dropout, rounded=rounded)
        prototypes = unit(torch.cat([self.prototypes, self.foreground]))
        dots, mu_dots = x.dots(prototypes, unit(self.mu))
        squares = x.squared_norms()
        norms = root(squares)
        sharpness = (self.sharpness / (norms + EPS))[:, None]
        mu = time_means(x, responsibilities(mu_dots, sharpness))
        for _ in range(self.em_rounds - 1):
            (mu_dots,) = x.dots(unit(mu))
            mu = time_means(x, responsibilities(mu_dots, sharpness))
        vectors: list[Tensor] = [mu]
        owns: list[Tensor | None] = [None]
        if batch.tags is not None and bool(self.bank.filled):
            memory, own = self.bank.slots_of(self._read_from(batch, dots, norms))
            vectors.append(memory)
            owns.append(own.repeat_interleave(torch.tensor(batch.lengths, device=own.device), dim=0))
        vector_dots = x.dots(*map(unit, vectors))
        zs = [responsibilities(one, sharpness, own) for one, own in zip(vector_dots, owns, strict=True)]
        propagated = walks(x, vectors, zs, dots=dots, squares=squares, prototypes=prototypes, w=self.walk)
        branches = self._read(x, [Walk(dots, norms), *propagated], prototypes)
        with torch.no_grad():
            mu_scores = softmax(self.scale * unit(mu) @ prototypes[:-1].t(), dim=2)
        return self._output(_Inner(dict(zip("omr", branches, strict=False)), mu.detach(), mu_scores))

    @torch.no_grad()
    def _read_from(self, batch: Batch, dots: Float[Tensor, "n p"], norms: Float[Tensor, " n"]) -> Float[Tensor, "b c"]:
        """The classes whose memory each video's snippets walk over: 1, others 0."""
        tags = batch.known_tags()
        if self.bank_class in ("own", "first"):
            return self._written_to(tags)
        c = tags.shape[1]
        if self.bank_class == "random":
            rngs = [np.random.default_rng(seed) for seed in batch.seeds or [None] * len(tags)]
            likeness = torch.from_numpy(np.stack([rng.random(c) for rng in rngs])).to(tags)
        else:
            cosines = self.scale * dots / (norms + EPS)[:, None]
            weighted = cosines[:, :c] * torch.sigmoid(cosines[:, -1:])
            likeness = torch.stack([part.mean(dim=0) for part in torch.split(weighted, list(batch.lengths))])
        other = likeness.masked_fill(tags > 0, -torch.inf).argmax(dim=1)
        return one_hot(other, c).to(tags) * tags.any(dim=1, keepdim=True) * (tags == 0)

    def _written_to(self, tags: Float[Tensor, "b c"]) -> Float[Tensor, "b c"]:
        """The classes in whose memory each video's μ compete: 1, others 0."""
        if self.bank_class != "first":
            return tags
        return pad(tags.any(dim=1, keepdim=True).to(tags), (0, tags.shape[1] - 1))

    def _read(self, x: EmbeddedSnippets, versions: list[Walk], prototypes: Float[Tensor, "p d"]) -> list[Branch]:
        """The head's reading of each version of the features; the last prototype is the foreground's."""
        c = len(prototypes) - 1
        logits = [self.scale * version.cosines() for version in versions]
        attentions = [torch.sigmoid(one) for one in logits]
        squared_sums = x.squared_sums(*attentions)
        branches = []
        for version, frames, attention, squares in zip(versions, logits, attentions, squared_sums, strict=True):
            agnostic, classwise = version.pooled_cosines(attention, squares, x.lengths)
            branches.append(
                Branch(
                    logits=frames[:, :c],
                    attention=attention[:, c],
                    agnostic=self.scale * agnostic[:, :c],
                    classwise=self.scale * classwise[:, :c],
                )
            )
        return branches

    def _output(self, inner: _Inner) -> Output:
        o, m = inner.branches["o"], inner.branches["m"]
        with torch.no_grad():
            of_snippets = [softmax(branch.logits, dim=1) * o.attention[:, None] for branch in (o, m)]
            of_videos = [softmax(branch.agnostic, dim=1) for branch in (o, m)]
        return Output(
            tcam=_mix(self.tcam_mix, of_snippets),
            target_tcam=_mix(self.target_mix, of_snippets),
            attention=o.attention,
            video_scores=_mix(self.score_mix, of_videos),
            supervised=tuple(
                Supervised(b.logits, w, bounded=True) for b, w in zip((o, m), self.pseudo_mix, strict=True)
            ),
            inner=inner,
        )

    def losses(self, output: Output, batch: Batch, epoch: int) -> dict[str, Float[Tensor, ""]]:
        """`fore`, `back`, `attention` and `spl`, weighted and summed over the videos."""
        branches: dict[str, Branch] = output.inner.branches
        tags, lengths = batch.known_tags(), batch.lengths
        fore_target, back_target = pad(tags, (0, 1), value=0.0), pad(tags, (0, 1), value=1.0)
        shares = {"o": 1.0, "m": 1.0, "r": self.bank_weight}
        fore = [shares[k] * normalised_cross_entropy(b.agnostic, fore_target) for k, b in branches.items()]
        back = [shares[k] * normalised_cross_entropy(b.classwise, back_target) for k, b in branches.items()]
        teacher = branches["m"].logits
        if "r" in branches:
            teacher = _mix(self.spl_mix, [teacher, branches["r"].logits])
        o = branches["o"]
        spl = soft_cross_entropy(o.logits, teacher, lengths, temperature=self.spl_temperature)
        return {
            "fore": torch.stack(fore).sum(),
            "back": self.back_weight * torch.stack(back).sum(),
            "attention": self.attention_weight * attention_contrast(o.attention, lengths).sum(),
            "spl": _at(self.spl_stages, epoch) * spl.sum(),
        }

    def end_step(self, output: Output, batch: Batch, epoch: int) -> None:
        """After the warm-up, let the step's μ compete for a place in the memory; those of other processes, too."""
        if epoch > self.warmup_epoch:
            inner = output.inner
            found = inner.mu, inner.mu_scores[..., :-1], self._written_to(batch.known_tags())
            self.bank.update(*of_all_processes(*found, places=batch.places))

    def end_epoch(self, epoch: int, batches: Iterable[Batch]) -> None:
        """Fill the memory once, at the end of the warm-up."""
        if epoch != self.warmup_epoch:
            return
        training = self.training
        self.eval()
        with torch.no_grad():
            for batch in batches:
                inner = self(batch).inner
                self.bank.update(inner.mu, inner.mu_scores[..., :-1], self._written_to(batch.known_tags()))
        self.bank.filled.fill_(True)
        self.train(training)

    def targets_changed(self) -> None:
        """Forget the memory if the model was told to, as the authors' released code does."""
        if self.zero_bank_with_targets:
            self.bank.zero()


def _mix(shares: Sequence[float], parts: Sequence[Tensor]) -> Tensor:
    return shares[0] * parts[0] + shares[1] * parts[1]


def _at(stages: Sequence[tuple[int, float]], epoch: int) -> float:
    """The value of the last stage that has begun."""
    return [value for first, value in stages if first <= epoch][-1]
