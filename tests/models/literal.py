"""The models' formulas taken literally: one video, explicit features, nothing packed. What comes out is
(losses by name, TCAM, attention, video scores), of RSKP its losses and branches; the oracle of the fast forms."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from wtal.models.bm import BM
from wtal.models.facnet import FACNet
from wtal.models.rskp import RSKP
from wtal.models.stpn import STPN
from wtal.models.wum import WUM

Literal = tuple[dict[str, Tensor], Tensor, Tensor, Tensor]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    share = target / (target.sum() + 1e-8)
    return -(share * torch.log_softmax(logits, dim=0)).sum()


def facnet(model: FACNet, features: Tensor, tags: Tensor) -> Literal:
    x = F.relu(model.second(F.relu(model.first(features))))
    unit = F.normalize(x, dim=1)
    prototypes, foreground = F.normalize(model.prototypes, dim=1), F.normalize(model.foreground, dim=1)[0]
    frames, actionness = model.scale * unit @ prototypes.t(), model.scale * unit @ foreground
    classwise, agnostic, mil = [], [], []
    for t in model.temperatures:
        of_class, of_any = torch.softmax(t * frames, dim=0), torch.softmax(t * actionness, dim=0)
        classwise.append(torch.stack([F.normalize(a @ x, dim=0) @ foreground for a in of_class.t()]))
        agnostic.append(prototypes @ F.normalize(of_any @ x, dim=0))
        mil.append((of_class * frames).sum(dim=0))
    cw, ca = (model.scale * 2 * torch.stack(part).mean(dim=0) for part in (classwise, agnostic))
    zero, one = tags.new_zeros(1), tags.new_ones(1)
    losses = {
        "classwise": 1.0 * cross_entropy(cw, torch.cat([tags, zero])),
        "agnostic": 0.1 * cross_entropy(ca, torch.cat([tags, zero])),
        "mil": 0.1 * cross_entropy(2 * torch.stack(mil).mean(dim=0), torch.cat([tags, one])),
    }
    return losses, torch.softmax(frames, dim=1), torch.sigmoid(actionness), torch.softmax(ca, dim=0)


def wum(model: WUM, features: Tensor, tags: Tensor) -> Literal:
    t, d = features.shape
    kernel = model.convolution.weight.view(-1, 3, d).transpose(1, 2)
    x = F.relu(F.conv1d(features.t()[None], kernel, model.convolution.bias, padding=1))[0].t()
    cas = x @ model.classifier.weight.t()
    magnitude = x.norm(dim=1)
    k_act, k_bkg = max(t // 9, 1), max(t // 4, 1)
    order = magnitude.argsort(descending=True)
    act, bkg = order[:k_act], order.flip(0)[:k_bkg]
    scores = torch.softmax(cas.sort(dim=0, descending=True).values[:k_act].mean(dim=0), dim=0)
    of_background = torch.softmax(cas[bkg].mean(dim=0), dim=0)
    share = tags / (tags.sum() + 1e-8)

    def binary(p: Tensor, y: Tensor) -> Tensor:
        values = -(y * p.log().clamp(min=-100) + (1 - y) * (1 - p).log().clamp(min=-100))
        return values.mean() if model.class_reduction == "mean" else values.sum()

    losses = {
        "video": binary(scores, share),
        "background": 1.0 * binary(of_background, torch.full_like(share, 1 / len(share))),
        "magnitude": 5e-4 * (F.relu(100 - x[act].mean(dim=0).norm()) + x[bkg].mean(dim=0).norm()) ** 2,
    }
    high, low = magnitude[act].mean(), magnitude[bkg].mean()
    attention = ((magnitude - low) / (high - low if high > low else 1.0)).clamp(0, 1)
    curves = torch.softmax(cas, dim=1) * attention[:, None]
    spread = curves.max(dim=0).values - curves.min(dim=0).values
    tcam = (curves - curves.min(dim=0).values) / torch.where(spread > 0, spread, 1.0)
    return losses, tcam, attention, scores


def embedded(model: STPN | BM, features: Tensor) -> tuple[Tensor, Tensor]:
    linear = model.embedding.linear
    x = features if linear is None else F.relu(linear(features))
    first, _, second = model.attention.layers
    return x, torch.sigmoid(second(F.relu(first(x))))[:, 0]


def stpn(model: STPN, features: Tensor, tags: Tensor) -> Literal:
    x, attention = embedded(model, features)
    w, b = model.classifier.weight, model.classifier.bias
    p = torch.sigmoid((attention[:, None] * x).mean(dim=0) @ w.t() + b)
    entropies = -(tags * p.log() + (1 - tags) * (1 - p).log())
    losses = {
        "video": entropies.mean() if model.class_reduction == "mean" else entropies.sum(),
        "sparsity": 1e-4 * 400 * attention.abs().mean(),
    }
    return losses, attention[:, None] * torch.sigmoid(x @ w.t()), attention, p


def bm(model: BM, features: Tensor, tags: Tensor) -> Literal:
    x, attention = embedded(model, features)
    t = len(x)
    shares = [torch.lerp(side, torch.ones_like(side), model.floor) for side in (attention, 1 - attention)]
    foreground, background = ((share[:, None] * x).sum(dim=0) / (share.sum() + 1e-6) for share in shares)
    tcam = torch.softmax(model.classifier(x), dim=1).detach()
    smooth = torch.zeros_like(tcam)
    weights = torch.tensor([-0.5 * k * k for k in range(-4, 5)], dtype=x.dtype).exp()
    for i in range(t):
        for weight, k in zip(weights / weights.sum(), range(-4, 5), strict=True):
            smooth[i] += weight * tcam[min(max(i + k, 0), t - 1)]
    of_tags = smooth[:, :-1][:, tags > 0]
    m_fg = of_tags.max(dim=1).values if of_tags.shape[1] else torch.zeros(t, dtype=x.dtype)
    m_bg = 1 - smooth[:, -1]
    u, v = model.sides.weight
    z_fg = (u @ foreground).exp() / ((u @ foreground).exp() + (v @ foreground).exp())
    z_bg = (v @ background).exp() / ((u @ background).exp() + (v @ background).exp())
    is_background = torch.cat([torch.zeros_like(tags), tags.new_ones(1)])
    losses = {
        "foreground": model.foreground_weight
        * cross_entropy(model.classifier(foreground), torch.cat([tags, tags.new_zeros(1)])),
        "background": model.background_weight * cross_entropy(model.classifier(background), is_background),
        "guide": model.guide_weight * ((attention - m_fg).abs() + (attention - m_bg).abs()).mean(),
        "cluster": model.cluster_weight * -(z_fg.log() + z_bg.log()),
    }
    return losses, attention[:, None] * tcam, attention, torch.softmax(model.classifier(foreground), dim=0)


def rskp(
    model: RSKP, features: Tensor, tags: Tensor, epoch: int
) -> tuple[dict[str, Tensor], dict[str, tuple[Tensor, ...]]]:
    """One video's losses and branches (snippet logits, attention, two video logits), formula by formula."""
    w, scale = model.walk, model.scale
    x = F.dropout(F.relu(model.embedding(features)), model.dropout, model.training)
    prototypes, foreground = unit(model.prototypes), unit(model.foreground)

    def belonging(vectors: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.softmax(model.sharpness * unit(vectors) @ unit(x).t(), dim=0)
        return z, z / (z.sum(dim=1, keepdim=True) + 1e-9)

    def propagated(vectors: Tensor) -> Tensor:
        z, z_bar = belonging(vectors)
        inverse = torch.linalg.inv(torch.eye(len(x), dtype=x.dtype) - w**2 * z.t() @ z_bar)
        return (1 - w) * inverse @ (w * z.t() @ vectors + x)

    def head(x: Tensor) -> tuple[Tensor, ...]:
        logits = scale * unit(x) @ prototypes.t()
        attention = torch.sigmoid(scale * unit(x) @ foreground[0])
        class_wise = torch.sigmoid(logits)
        pooled = (attention / (attention.sum() + 1e-5)) @ x
        class_pooled = (class_wise / (class_wise.sum(dim=0) + 1e-5)).t() @ x
        return (
            logits,
            attention,
            scale * unit(pooled) @ prototypes.t(),
            scale * (unit(class_pooled) * prototypes).sum(dim=1),
        )

    mu: Tensor = model.mu
    for _ in range(model.em_rounds):
        mu = belonging(mu)[1] @ x
    branches = {"o": head(x), "m": head(propagated(mu))}
    if model.bank.filled:
        own = [model.bank.vectors[c] for c in tags.nonzero().flatten()]
        branches["r"] = head(propagated(torch.cat(own)) if own else (1 - w) * x)

    share = {"o": 1.0, "m": 1.0, "r": model.bank_weight}
    fore_target, back_target = torch.cat([tags, tags.new_zeros(1)]), torch.cat([tags, tags.new_ones(1)])
    ordered, k = branches["o"][1].sort().values, max(len(x) // 8, 1)
    teacher = branches["m"][0]
    if "r" in branches:
        teacher = model.spl_mix[0] * teacher + model.spl_mix[1] * branches["r"][0]
    target = torch.softmax(teacher / model.spl_temperature, dim=1).detach()
    spl = -(target * torch.log_softmax(branches["o"][0] / model.spl_temperature, dim=1)).sum(dim=1).mean()
    spl_weight = [value for first, value in model.spl_stages if first <= epoch][-1]
    losses = {
        "fore": torch.stack([share[b] * cross_entropy(out[2], fore_target) for b, out in branches.items()]).sum(),
        "back": model.back_weight
        * torch.stack([share[b] * cross_entropy(out[3], back_target) for b, out in branches.items()]).sum(),
        "attention": model.attention_weight * (ordered[:k].mean() - ordered[-k:].mean()),
        "spl": spl_weight * spl,
    }
    return losses, branches


def unit(vectors: Tensor) -> Tensor:
    return vectors / (torch.linalg.vector_norm(vectors, dim=-1, keepdim=True) + 1e-9)
