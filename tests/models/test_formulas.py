"""The packed models against their formulas taken literally, and what all of them promise."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from wtal.errors import InputError
from wtal.losses import signed_cross_entropy
from wtal.models import build
from wtal.models.protocol import Batch, Model

sys.path.insert(0, str(Path(__file__).parent))
import literal

C, D = 5, 12
LENGTHS = (1, 40, 7, 23)
TAGS = torch.tensor([[1, 0, 0, 0, 0], [1, 0, 1, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0]], dtype=torch.float64)
Formulas = Callable[[Any, Tensor, Tensor], literal.Literal]

CASES: list[tuple[str, Formulas, dict[str, Any]]] = [
    ("facnet", literal.facnet, {}),
    ("facnet", literal.facnet, {"hidden": 9, "scale": 3.0, "temperatures": (0.5,)}),
    ("wum", literal.wum, {"hidden": 16}),
    ("wum", literal.wum, {"hidden": 7, "class_reduction": "sum"}),
    ("stpn", literal.stpn, {"attention_hidden": 6}),
    ("stpn", literal.stpn, {"hidden": 10, "class_reduction": "sum"}),
    ("bm", literal.bm, {"cluster_weight": 0.3}),
    ("bm", literal.bm, {"hidden": 10, "background_weight": 0.5, "guide_weight": 0.7, "floor": 0.2}),
]
NAMES = ["facnet", "wum", "stpn", "bm"]
STREAMS = {"rgb": 5, "flow": 7}  # of unequal width


def features(lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(t, D, generator=generator, dtype=torch.float64) for t in lengths]


def make(name: str, **options: Any) -> Model:
    torch.manual_seed(1)
    model = build(name, C, D, **options).double()
    with torch.no_grad():  # nothing may be right only because it is 0
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model.eval()


def streamed(stream_weights: dict[str, float]) -> Model:
    return build("facnet", C, D, streams=STREAMS, stream_weights=stream_weights)


def gradients(model: Model, loss: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    loss.backward()
    return {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in model.named_parameters()}


@pytest.mark.parametrize(("name", "formulas", "options"), CASES)
def test_outputs_losses_and_gradients_are_those_of_the_formulas(
    name: str, formulas: Formulas, options: dict[str, Any]
) -> None:
    model, batch = make(name, **options), Batch.pack(features(), TAGS)
    output = model(batch)
    one_by_one = [formulas(model, x, tags) for x, tags in zip(features(), TAGS, strict=True)]
    close = {"rtol": 1e-7, "atol": 1e-8}
    torch.testing.assert_close(output.tcam, torch.cat([tcam for _, tcam, _, _ in one_by_one]).detach(), **close)
    attention = torch.cat([attention for _, _, attention, _ in one_by_one])
    torch.testing.assert_close(output.attention.detach(), attention.detach(), **close)
    scores = torch.stack([scores for *_, scores in one_by_one])
    torch.testing.assert_close(output.video_scores, scores.detach(), **close)
    assert not output.tcam.requires_grad
    for loss in model.losses(output, batch, 0):
        ours = gradients(model, model.losses(model(batch), batch, 0)[loss])
        again = [formulas(model, x, tags)[0][loss] for x, tags in zip(features(), TAGS, strict=True)]
        torch.testing.assert_close(model.losses(output, batch, 0)[loss].detach(), torch.stack(again).sum().detach())
        theirs = gradients(model, torch.stack(again).sum())
        for parameter, gradient in theirs.items():
            torch.testing.assert_close(ours[parameter], gradient, **close, msg=lambda m, p=parameter: f"{p}: {m}")


@pytest.mark.parametrize("name", NAMES)
def test_pseudo_labels_reach_the_whole_model(name: str) -> None:
    model, batch = make(name, hidden=8), Batch.pack(features(), TAGS)
    target = torch.randn(sum(LENGTHS), C, dtype=torch.float64)
    (supervised,) = model(batch).supervised
    reached = gradients(model, signed_cross_entropy(supervised.logits, target, LENGTHS).sum())
    first_layer = {"facnet": "first", "wum": "convolution"}.get(name, "embedding.linear")
    assert reached[f"{first_layer}.weight"].abs().max() > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stream_weights", [{}, {"rgb": 0.1, "flow": 1.0}])
def test_a_video_does_not_depend_on_its_company(name: str, stream_weights: dict[str, float]) -> None:
    options = {"dropout": 0.4} if name != "bm" else {"dropout": 0.4, "hidden": 8}
    model = make(name, streams=STREAMS, stream_weights=stream_weights, **options).train()
    together = model(Batch.pack(features(), TAGS, seeds=[5, 6, 7, 8]))
    alone = model(Batch.pack(features()[1:2], TAGS[1:2], seeds=[6]))
    torch.testing.assert_close(together.tcam[1:41], alone.tcam)
    torch.testing.assert_close(together.video_scores[1:2], alone.video_scores)
    other = model(Batch.pack(features()[1:2], TAGS[1:2], seeds=[7]))
    assert not torch.equal(other.tcam, alone.tcam)


@pytest.mark.parametrize("name", NAMES)
def test_zero_features_and_videos_without_tags_give_finite_gradients(name: str) -> None:
    model = make(name).train().float()
    batch = Batch.pack([torch.zeros(6, D), torch.rand(9, D), torch.zeros(1, D)], torch.zeros(3, C))
    output = model(batch)
    assert all(torch.isfinite(part).all() for part in (output.tcam, output.attention, output.video_scores))
    loss = torch.stack(list(model.losses(output, batch, 0).values())).sum()
    assert all(torch.isfinite(gradient).all() for gradient in gradients(model, loss).values())


@pytest.mark.parametrize("name", NAMES)
def test_learning_without_labels_is_refused(name: str) -> None:
    model, batch = make(name), Batch.pack(features())
    with pytest.raises(InputError, match="tags"):
        model.losses(model(batch), batch, 0)


def test_a_mean_over_classes_fades_with_their_number_and_a_sum_does_not() -> None:
    def pull(c: int, reduction: str) -> float:
        """How strongly a step pulls the score of the one tag of a video up."""
        torch.manual_seed(0)
        model = build("wum", c, D, hidden=16, class_reduction=reduction).eval()
        batch = Batch.pack([torch.rand(30, D)], torch.eye(c)[:1])
        return gradients(model, model.losses(model(batch), batch, 0)["video"])["classifier.weight"][0].norm().item()

    assert pull(200, "mean") < 0.05 * pull(4, "mean")
    assert pull(200, "sum") > pull(4, "sum")


def test_streams_of_unequal_width_see_their_own_columns_and_learn_apart() -> None:
    # the weights go by name, not by the order in which the recipe has them
    model = make("facnet", streams=STREAMS, stream_weights={"flow": 1.0, "rgb": 0.1})
    batch = Batch.pack(features(), TAGS)
    output = model(batch)
    columns = (slice(0, 5), slice(5, 12))
    halves = [Batch.pack([x[:, at] for x in features()], TAGS) for at in columns]
    alone = [part(half) for part, half in zip(model.parts, halves, strict=True)]
    assert [stream.weight for stream in output.maps] == [0.1, 1.0]
    for stream, one in zip(output.maps, alone, strict=True):
        torch.testing.assert_close(stream.tcam, one.tcam)
    torch.testing.assert_close(output.tcam, (0.1 * alone[0].tcam + alone[1].tcam) / 1.1)
    assert [one.weight for one in output.supervised] == [1.0, 1.0]
    losses = model.losses(output, batch, 0)
    for name, loss in losses.items():
        parts = [part.losses(one, half, 0)[name] for part, one, half in zip(model.parts, alone, halves, strict=True)]
        torch.testing.assert_close(loss, parts[0] + parts[1])


def test_streams_pass_every_hook_on() -> None:
    """RSKP remembers something: both halves have to."""
    model = make("rskp", streams=STREAMS, stream_weights={"rgb": 1.0, "flow": 1.0}, warmup_epoch=0).train()
    batch = Batch.pack(features(), TAGS)
    model.end_epoch(0, [batch])
    banks = [part.bank for part in model.parts]
    assert all(bank.filled and bank.vectors.any() for bank in banks)
    for bank in banks:
        bank.zero()
    model.end_step(model(batch), batch, 1)
    assert all(bank.vectors.any() for bank in banks)
    for part in model.parts:
        part.zero_bank_with_targets = True
    model.targets_changed()
    assert not any(bank.vectors.any() for bank in banks)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: streamed({"rgb": 1.0, "depth": 1.0}), "streams of the features, rgb, flow; it weighs rgb, depth"),
        (lambda: streamed({"rgb": 1.0}), "streams of the features, rgb, flow; it weighs rgb"),
        (lambda: build("facnet", C, D, stream_weights={"rgb": 1.0}), "which have no names; it weighs rgb"),
        (lambda: streamed({"rgb": 0.0, "flow": 1.0}), "stream_weights must be above 0"),
        (lambda: build("facnet", C, D, dropout=1.0), "dropout"),
        (lambda: build("facnet", C, D, temperatures=()), "at least one"),
        (lambda: build("wum", C, D, choice_dropout=1.0), "choice_dropout"),
        (lambda: build("stpn", C, D, dropout=-0.1), "dropout"),
    ],
)
def test_wrong_settings_are_refused_with_a_reason(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()
