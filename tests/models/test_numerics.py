"""Numbers that stay numbers: hostile features, signed targets over many steps, one thread and two."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from small import RECIPE, make_store, outcome
from wtal.card import Card
from wtal.data.arrays import LARGEST
from wtal.data.video_record import VideoRecord
from wtal.data.writer import new_store
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.localize import Localizer
from wtal.losses import signed_cross_entropy
from wtal.models import MODELS, build
from wtal.models.protocol import Batch, Model
from wtal.training import Execution, train
from wtal.training.loop import pseudo_loss

C, D, LENGTHS = 3, 6, (9, 1, 4)
HOSTILE = {
    "zeros": 0.0,
    "denormal": 1e-40,
    "tiny": 1e-30,
    "largest": LARGEST,
    "negative": -LARGEST,
}
OPTIONS = {"detector": {"width": 4, "levels": 2}, "wum": {"hidden": 8}}


def small(name: str, precision: str = "float32") -> Model:
    torch.manual_seed(0)
    return build(name, C, D, precision=precision, **OPTIONS.get(name, {})).train()


def batch_of(features: torch.Tensor) -> Batch:
    boxes = Instances([[2.0, 6.0]], [0.8], [0], unit="snippets"), *[Instances.empty("snippets")] * 2
    tags = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 0, 0]])
    return Batch(features, LENGTHS, tags, (1, 2, 3), boxes)


def one_step(model: Model, batch: Batch, target: np.ndarray, weight: float = 1.0, *, own: bool = True) -> torch.Tensor:
    """Gradients of all losses that a training step has; their sum."""
    output = model(batch)
    losses = list(model.losses(output, batch, 0).values()) if own else []
    if output.supervised:
        losses.append(weight * pseudo_loss(output, batch, target))
    total = torch.stack(losses).sum()
    model.zero_grad()
    total.backward()
    return total.detach()


@pytest.mark.parametrize("kind", [*HOSTILE, "one snippet", "mixed"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_losses_gradients_and_maps_are_finite_on_hostile_features(name: str, precision: str, kind: str) -> None:
    features = torch.rand(sum(LENGTHS), D)
    if kind == "one snippet":
        features[3] = LARGEST
    elif kind == "mixed":
        features *= torch.tensor(list(HOSTILE.values())).repeat(3)[: len(features), None]
    else:
        features[:] = HOSTILE[kind]
    model, batch = small(name, precision), batch_of(features)
    model.begin([batch])
    target = np.random.default_rng(0).normal(size=(len(features), C))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        assert one_step(model, batch, target).isfinite()
        for parameter, values in model.named_parameters():
            assert values.grad is None or values.grad.isfinite().all(), parameter
        optimizer.step()
        model.end_step(model(batch), batch, 0)
    with torch.no_grad():
        output = model.eval()(replace(batch, tags=None))
    for values in (output.tcam, output.attention, output.video_scores, *model.state_dict().values()):
        assert values.isfinite().all()


@pytest.mark.parametrize("wrong", [1e30, -1e30, np.nan, np.inf])
def test_what_would_not_stay_finite_is_refused_at_every_door(wrong: float, tmp_path: Path) -> None:
    features = np.ones((4, D), np.float32)
    features[2, 1] = wrong
    with (
        pytest.raises(InputError, match="a: features are not finite, or too large"),
        new_store(tmp_path / "s", classes=("Run",)) as writer,
    ):
        writer.add(VideoRecord("a", "train", ("Run",)), features)
    localizer = Localizer(small("bm"), Card("bm", ("a", "b", "c"), D))
    with pytest.raises(InputError, match="finite and within"):
        localizer(features)


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"detector"}))
def test_negative_targets_cannot_run_away_in_a_thousand_steps(name: str) -> None:
    t = 4
    model, batch = small(name), Batch(torch.rand(t, D), (t,), torch.eye(C)[:1], (1,))
    weight, target = 10.0, -np.ones((t, C))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss = torch.tensor(0.0)
    for _ in range(1000):
        loss = one_step(model, batch, target, weight, own=False)
        optimizer.step()
    output = model(batch)
    # where Eq. 9 itself is used, logits are cosines times a scale; elsewhere there is nothing below 0
    (bounded,) = {part.bounded for part in output.supervised}
    scale = model.scale if bounded else 0.0
    assert loss >= -weight * C * (2 * scale + np.log(C + 1) if bounded else 0.0)
    for part in output.supervised:
        assert part.logits.abs().max() < 40
    assert all(values.isfinite().all() for values in model.state_dict().values())


@given(
    st.lists(st.floats(-300, 300), min_size=2, max_size=5),
    st.data(),
)
def test_the_signed_loss_without_bounds_is_minus_log_of_what_is_wanted(
    logits: list[float], data: st.DataObject
) -> None:
    """Against plain double precision, where the probabilities are not too near 0 and 1 for it."""
    target = data.draw(st.lists(st.floats(-2, 2), min_size=len(logits), max_size=len(logits)))
    values = torch.tensor([logits], dtype=torch.float64, requires_grad=True)
    loss = signed_cross_entropy(values, torch.tensor([target], dtype=torch.float64), [1])
    loss.sum().backward()
    assert loss.item() >= 0
    assert values.grad is not None
    assert values.grad.abs().max() <= 2 * sum(map(abs, target)) + 1e-9
    p = torch.softmax(values.detach()[0], dim=0).numpy()
    if p.max() < 1 - 1e-6 and p.min() > 1e-12:
        plain = [-g * np.log(q) if g > 0 else g * np.log(1 - q) for g, q in zip(target, p, strict=True)]
        assert loss.item() == pytest.approx(sum(plain), rel=1e-6, abs=1e-9)


def test_targets_without_a_sign_teach_as_ever() -> None:
    rng = torch.Generator().manual_seed(0)
    logits, target = 5 * torch.randn(7, 4, generator=rng), torch.rand(7, 4, generator=rng)
    ways = [signed_cross_entropy(logits, target, [4, 3], bounded=bounded) for bounded in (True, False)]
    assert torch.equal(*ways)


def test_a_number_of_threads_gives_the_same_bits_and_another_the_same_losses(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", n_train=5, n_test=1)
    (tmp_path / "tiny.yaml").write_text(RECIPE.replace("epochs: 5", "epochs: 3").replace("  - {from_epoch: 4}\n", ""))
    runs = [
        train(tmp_path / "tiny.yaml", store, tmp_path / f"run{number}", execution=Execution(threads=threads))
        for number, threads in enumerate((1, 2, 2))
    ]
    assert outcome(runs[1].path) == outcome(runs[2].path)
    for one, two in zip(runs[0].metrics().epochs, runs[1].metrics().epochs, strict=True):
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-4)
