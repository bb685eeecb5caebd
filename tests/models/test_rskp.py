"""RSKP's fast form against the formulas taken literally: one video at a time, explicit features, T×T inverse."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from wtal.errors import InputError
from wtal.losses import signed_cross_entropy
from wtal.models.protocol import Batch
from wtal.models.rskp import RSKP

sys.path.insert(0, str(Path(__file__).parent))
import literal

C, D = 5, 24
LENGTHS = (1, 40, 7, 23)
TAGS = torch.tensor([[1, 0, 0, 0, 0], [1, 0, 1, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0]], dtype=torch.float64)


def features(lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(t, D, generator=generator, dtype=torch.float64) for t in lengths]


def make(*, memory: bool = False, **options: object) -> RSKP:
    generator = torch.Generator().manual_seed(1)
    model = RSKP(C, D, generator=generator, **options).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        model.embedding.bias.normal_(0, 0.3, generator=generator)
        model.foreground.normal_(0, 0.3, generator=generator)
        if memory:
            model.bank.vectors.uniform_(generator=generator)
            model.bank.filled.fill_(True)
    return model


def gradients(model: RSKP, loss: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def total(losses: dict[str, Tensor]) -> Tensor:
    return torch.stack(list(losses.values())).sum()


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("options", [{}, {"walk": 0.8, "n_mu": 3, "em_rounds": 3, "scale": 10.0, "hidden": 16}])
def test_outputs_losses_and_gradients_are_those_of_the_formulas(memory: bool, options: dict[str, float]) -> None:
    model = make(memory=memory, **options)
    batch = Batch.pack(features(), TAGS)
    output = model(batch)
    losses = model.losses(output, batch, 0)
    port = [literal.rskp(model, x, tags, 0) for x, tags in zip(features(), TAGS, strict=True)]
    close = {"rtol": 1e-7, "atol": 1e-7}  # the ε beside norms makes a walk over no memory differ in the last digits

    assert set(output.inner.branches) == set(port[0][1]) == set("omr" if memory else "om")
    for name, branch in output.inner.branches.items():
        torch.testing.assert_close(branch.logits, torch.cat([out[name][0] for _, out in port]), **close)
        torch.testing.assert_close(branch.attention, torch.cat([out[name][1] for _, out in port]), **close)
        torch.testing.assert_close(branch.agnostic, torch.stack([out[name][2] for _, out in port]), **close)
        torch.testing.assert_close(branch.classwise, torch.stack([out[name][3] for _, out in port]), **close)
    for name, value in losses.items():
        torch.testing.assert_close(value, torch.stack([one[name] for one, _ in port]).sum(), **close)
        ours = gradients(model, model.losses(model(batch), batch, 0)[name])
        again = [literal.rskp(model, x, tags, 0)[0] for x, tags in zip(features(), TAGS, strict=True)]
        theirs = gradients(model, torch.stack([one[name] for one in again]).sum())
        for parameter, gradient in theirs.items():
            torch.testing.assert_close(ours.get(parameter, torch.zeros_like(gradient)), gradient, **close)


def test_gradients_of_everything_at_once_pass_a_numerical_check() -> None:
    model = make(memory=True, n_mu=2)
    batch = Batch.pack(features((3, 6)), TAGS[1:3])
    names, parameters = zip(*model.named_parameters(), strict=True)

    def outputs(*values: Tensor) -> tuple[Tensor, ...]:
        out = torch.func.functional_call(model, dict(zip(names, values, strict=True)), (batch,))
        return tuple(
            getattr(b, part) for b in out.inner.branches.values() for part in ("logits", "agnostic", "classwise")
        )

    assert torch.autograd.gradcheck(outputs, parameters, fast_mode=True)


def test_pseudo_labels_teach_through_both_branches() -> None:
    model, batch = make(), Batch.pack(features(), TAGS)
    target = torch.randn(sum(LENGTHS), C + 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    supervised = model(batch).supervised
    assert [one.weight for one in supervised] == [0.8, 0.2]
    loss = sum(s.weight * signed_cross_entropy(s.logits, target, LENGTHS).sum() for s in supervised)
    ours = gradients(model, loss)
    port = [literal.rskp(model, x, tags, 0)[1] for x, tags in zip(features(), TAGS, strict=True)]
    shares = {"o": 0.8, "m": 0.2}
    theirs = gradients(
        model,
        sum(
            share * signed_cross_entropy(torch.cat([out[b][0] for out in port]), target, LENGTHS).sum()
            for b, share in shares.items()
        ),
    )
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, rtol=1e-7, atol=1e-7)


def test_tcam_and_scores_mix_the_branches_as_told() -> None:
    batch = Batch.pack(features(), TAGS)
    model = make(tcam_mix=(0.85, 0.15), target_mix=(0.7, 0.3), score_mix=(0.5, 0.5))
    output = model(batch)
    o, m = output.inner.branches["o"], output.inner.branches["m"]
    maps = [torch.softmax(b.logits, 1) * o.attention[:, None] for b in (o, m)]
    torch.testing.assert_close(output.tcam, 0.85 * maps[0] + 0.15 * maps[1])
    torch.testing.assert_close(output.target_tcam, 0.7 * maps[0] + 0.3 * maps[1])
    scores = (torch.softmax(o.agnostic, 1) + torch.softmax(m.agnostic, 1)) / 2
    torch.testing.assert_close(output.video_scores, scores)
    assert not output.tcam.requires_grad


def test_a_video_does_not_depend_on_its_company() -> None:
    model, videos = make(memory=True).train(), features()
    together = model(Batch.pack(videos, TAGS, seeds=[5, 6, 7, 8]))
    alone = model(Batch.pack(videos[1:2], TAGS[1:2], seeds=[6]))
    assert together.supervised[1].logits.shape == (sum(LENGTHS), C + 1)
    torch.testing.assert_close(together.tcam[1:41], alone.tcam)
    torch.testing.assert_close(together.video_scores[1:2], alone.video_scores)


def test_bfloat16_changes_training_by_its_rounding_and_testing_not_at_all() -> None:
    videos, tags = [video.float() for video in features()], TAGS.float()
    found = {}
    for precision in ("float32", "bfloat16"):
        model = make(precision=precision, dropout=0.5).float()
        batch = Batch.pack(videos, tags, seeds=range(len(videos)))
        tested = model(batch).tcam
        model.train()
        gradient = gradients(model, total(model.losses(model(batch), batch, 0)))["embedding.weight"]
        found[precision] = tested, gradient
    (tested, gradient), (low_tested, low_gradient) = found["float32"], found["bfloat16"]
    assert torch.equal(tested, low_tested)
    off = torch.linalg.vector_norm(low_gradient - gradient) / torch.linalg.vector_norm(gradient)
    assert 0 < off < 0.02  # one entry is rounded by up to 1/256


def test_dropout_follows_the_seeds_or_torch_and_keeps_the_expectation() -> None:
    model = make().train()
    videos = features((400,))

    def run(seed: int | None) -> Tensor:
        logits: Tensor = model(Batch.pack(videos, seeds=None if seed is None else [seed])).supervised[0].logits
        return logits

    assert torch.equal(run(3), run(3))
    assert not torch.equal(run(3), run(4))
    torch.manual_seed(0)
    first, state = run(None), torch.get_rng_state()
    second = run(None)
    torch.set_rng_state(state)
    assert not torch.equal(first, second)
    assert torch.equal(run(None), second)


@pytest.mark.parametrize("dropout", [0.6, 0.1, 1e-6])
def test_dropout_drops_its_share_and_scales_the_rest(dropout: float) -> None:
    from wtal.models.low_rank import EmbeddedSnippets

    linear = torch.nn.Linear(D, 512)
    torch.nn.init.zeros_(linear.weight)
    torch.nn.init.ones_(linear.bias)
    batch = Batch(torch.zeros(600, D), (599, 1), seeds=(1, 2))
    (x,) = EmbeddedSnippets(batch, linear, dropout=dropout).dots(torch.eye(512))
    assert x.mean().item() == pytest.approx(1, abs=0.02)
    assert (x == 0).float().mean().item() == pytest.approx(dropout, abs=0.01)
    assert x.unique().numel() <= 2


@pytest.mark.parametrize("memory", [False, True])
def test_all_zero_features_give_finite_outputs_and_gradients(memory: bool) -> None:
    model = make(memory=memory).train().float()
    with torch.no_grad():
        model.embedding.bias.zero_()
    batch = Batch.pack([torch.zeros(6, D), torch.rand(4, D), torch.zeros(1, D)], TAGS[:3].float())
    output = model(batch)
    assert all(torch.isfinite(part).all() for part in (output.tcam, output.attention, output.video_scores))
    for name, gradient in gradients(model, total(model.losses(output, batch, 0))).items():
        assert torch.isfinite(gradient).all(), name


def test_a_video_of_20000_snippets_needs_memory_in_proportion() -> None:
    model = RSKP(C, D, generator=torch.Generator().manual_seed(0))
    batch = Batch.pack([torch.rand(20_000, D)], TAGS[:1].float())  # a 20000×20000 inverse would need 1.6 GB
    output = model(batch)
    assert torch.isfinite(output.tcam).all()
    assert all(torch.isfinite(g).all() for g in gradients(model, total(model.losses(output, batch, 0))).values())


def test_losses_follow_the_stages() -> None:
    model, batch = make(spl_stages=((0, 1.0), (101, 0.5), (201, 2.0))), Batch.pack(features(), TAGS)
    output = model(batch)
    spl = [model.losses(output, batch, epoch)["spl"].item() for epoch in (0, 100, 101, 200, 201, 349)]
    assert [value / spl[0] for value in spl] == pytest.approx([1, 1, 0.5, 0.5, 2, 2])


def test_memory_is_filled_once_by_true_classes_and_then_renewed_by_every_step() -> None:
    model, batch = make(warmup_epoch=2).train(), Batch.pack(features(), TAGS)

    def never() -> object:
        raise AssertionError("the training set was read although nothing is to be filled")

    for epoch in (0, 1):
        model.end_step(model(batch), batch, epoch)
        model.end_epoch(epoch, (never() for _ in range(1)))  # type: ignore[misc]
    assert not model.bank.vectors.any()
    assert set(model(batch).inner.branches) == {"o", "m"}

    model.end_epoch(2, [batch])
    assert model.training
    assert model.bank.filled
    assert set(model(batch).inner.branches) == {"o", "m", "r"}
    assert set(model(Batch.pack(features())).inner.branches) == {"o", "m"}  # nobody's tags are known at test
    inner = model.eval()(batch).inner
    candidates = [(inner.mu_scores[v, k, 0].item(), v, k) for v in (0, 1) for k in range(8)]  # tagged with class 0
    best = sorted(candidates, reverse=True)[:5]
    torch.testing.assert_close(model.bank.scores[0], torch.tensor([s for s, _, _ in best], dtype=torch.float64))
    torch.testing.assert_close(model.bank.vectors[0], torch.stack([inner.mu[v, k] for _, v, k in best]))
    assert not model.bank.vectors[3].any()  # no video has this tag

    worst = model.bank.scores[1].min().item()
    better = Batch.pack(features((9,), seed=9), TAGS[3:])
    model.bank.scores[1] = 0
    model.end_step(model(better), better, 3)
    mine = model(better).inner
    assert worst > 0
    assert model.bank.scores[1].max() == mine.mu_scores[0, :, 1].max()


def read_by(model: RSKP, batch: Batch) -> list[set[int]]:
    """The classes whose memory changes what the model says of each video."""
    before, read = model(batch).inner.branches["r"].logits.split(LENGTHS), [set() for _ in LENGTHS]
    for c in range(C):
        kept = model.bank.vectors[c].clone()
        model.bank.vectors[c] += 1.0
        after = model(batch).inner.branches["r"].logits.split(LENGTHS)
        model.bank.vectors[c] = kept
        for video, (old, new) in enumerate(zip(before, after, strict=True)):
            if not torch.equal(old, new):
                read[video].add(c)
    return read


def test_whose_memory_is_read() -> None:
    tagged = [set(row.nonzero().flatten().tolist()) for row in TAGS]
    batch = Batch.pack(features(), TAGS, seeds=[3, 4, 5, 6])
    assert read_by(make(memory=True), batch) == tagged
    assert read_by(make(memory=True, bank_class="first"), batch) == [{0}, {0}, set(), {0}]
    for way in ("random", "hardest"):
        model = make(memory=True, bank_class=way)
        for own, read in zip(tagged, read_by(model, batch), strict=True):
            assert len(read) == bool(own)
            assert not read & own
        everything = Batch.pack(features((5,)), torch.ones(1, C, dtype=torch.float64))
        assert torch.isfinite(model(everything).inner.branches["r"].logits).all()  # there is no other class
    random = make(memory=True, bank_class="random")
    drawn = [read_by(random, Batch.pack(features(), TAGS, seeds=[seed] * 4)) for seed in range(6)]
    assert len({tuple(map(tuple, one)) for one in drawn}) > 1


def test_the_memory_of_class_0_takes_what_looks_like_class_0_from_every_video() -> None:
    model, batch = make(warmup_epoch=0, bank_class="first"), Batch.pack(features(), TAGS)
    model.end_epoch(0, [batch])
    assert not model.bank.vectors[1:].any()
    tagged = model(batch).inner.mu_scores[TAGS.any(dim=1), :, 0]
    torch.testing.assert_close(model.bank.scores[0], tagged.flatten().sort(descending=True).values[:5])


def test_memory_is_in_the_state_and_can_be_forgotten_with_new_targets() -> None:
    model, batch = make(warmup_epoch=0, zero_bank_with_targets=True), Batch.pack(features(), TAGS)
    model.end_epoch(0, [batch])
    copy = make()
    copy.load_state_dict(model.state_dict())
    assert torch.equal(copy(batch).inner.branches["r"].logits, model(batch).inner.branches["r"].logits)
    model.targets_changed()
    assert not model.bank.vectors.any()
    assert torch.isfinite(total(model.losses(model(batch), batch, 1)))
    copy.targets_changed()
    assert copy.bank.vectors.any()


def test_training_is_reproducible_and_learns() -> None:
    def train() -> tuple[list[float], Tensor]:
        model = RSKP(C, D, dropout=0.3, generator=torch.Generator().manual_seed(0), warmup_epoch=20)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.99), weight_decay=5e-4)
        batch = Batch.pack([f.float() for f in features()], TAGS.float())
        history = []
        for epoch in range(30):
            batch = Batch(batch.features, batch.lengths, batch.tags, seeds=tuple(range(epoch, epoch + 4)))
            output = model.train()(batch)
            loss = total(model.losses(output, batch, epoch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.end_step(output, batch, epoch)
            model.end_epoch(epoch, [batch])
            history.append(loss.item())
        return history, model.embedding.weight.detach()

    (history, weight), (_, again) = train(), train()
    assert history[20] < 0.5 * history[0]
    assert torch.equal(weight, again)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: RSKP(C, D, dropout=1.0), "dropout must be in"),
        (lambda: RSKP(C, D, em_rounds=0), "em_rounds"),
        (lambda: Batch(torch.zeros(4, D), (3, 2)), "add up to its 4 rows"),
        (lambda: Batch(torch.zeros(4, D), (4, 0)), "at least one snippet"),
        (lambda: Batch(torch.zeros(4, D), (4,), seeds=(1, 2)), "seeds of 1 videos"),
    ],
)
def test_wrong_input_is_refused_with_a_reason(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()


def test_losses_without_labels_are_refused() -> None:
    model, batch = make(), Batch.pack(features())
    with pytest.raises(InputError, match="tags"):
        model.losses(model(batch), batch, 0)
