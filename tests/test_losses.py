import pytest
import torch

from wtal.errors import InputError
from wtal.losses import (
    attention_contrast,
    normalised_cross_entropy,
    signed_cross_entropy,
    soft_cross_entropy,
    video_means,
)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_each_tag_of_a_video_counts_alike() -> None:
    logits = random(1, 5)
    both = normalised_cross_entropy(logits, torch.tensor([[1.0, 0, 1, 0, 0]], dtype=torch.float64))
    first = normalised_cross_entropy(logits, torch.tensor([[1.0, 0, 0, 0, 0]], dtype=torch.float64))
    second = normalised_cross_entropy(logits, torch.tensor([[0.0, 0, 1, 0, 0]], dtype=torch.float64))
    torch.testing.assert_close(both, (first + second) / 2)


def test_a_video_without_tags_costs_nothing_and_large_logits_are_no_infinity() -> None:
    logits = torch.tensor([[500.0, -500.0]])
    assert normalised_cross_entropy(logits, torch.zeros(1, 2)).item() == 0
    assert normalised_cross_entropy(logits, torch.tensor([[0.0, 1.0]])).item() == pytest.approx(1000)


def test_attention_contrast_takes_an_eighth_of_each_video_and_at_least_one_snippet() -> None:
    short, long = torch.tensor([0.7]), torch.linspace(0, 1, 24)
    values = attention_contrast(torch.cat([short, long]), [1, 24])
    expected = long[:3].mean() - long[-3:].mean()
    torch.testing.assert_close(values, torch.stack([torch.tensor(0.0), expected]))


def test_soft_cross_entropy_is_least_where_student_and_teacher_agree_and_never_teaches_the_teacher() -> None:
    teacher = random(6, 4, seed=1).requires_grad_()
    student = teacher.detach().clone().requires_grad_()
    soft_cross_entropy(student, teacher, [4, 2]).sum().backward()
    assert teacher.grad is None
    assert student.grad is not None
    torch.testing.assert_close(student.grad, torch.zeros_like(student))


def test_videos_are_independent_and_long_ones_weigh_no_more() -> None:
    logits, target = random(7, 4), random(7, 4, seed=1)
    packed = signed_cross_entropy(logits, target, [5, 2])
    alone = [signed_cross_entropy(logits[:5], target[:5], [5]), signed_cross_entropy(logits[5:], target[5:], [2])]
    torch.testing.assert_close(packed, torch.cat(alone))
    torch.testing.assert_close(video_means(random(3).repeat(4), [6, 6]), random(3).mean().repeat(2))


def test_pseudo_label_loss_raises_positive_and_lowers_negative_classes() -> None:
    logits = torch.zeros(1, 3, requires_grad=True)
    signed_cross_entropy(logits, torch.tensor([[0.4, -0.4, 0.0]]), [1], bounded=True).sum().backward()
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([-0.4, 0.4, 0.0])


def test_a_target_without_background_says_nothing_of_it() -> None:
    logits, target = random(4, 3), random(4, 2, seed=1)
    with_background = torch.cat([target, torch.zeros(4, 1, dtype=torch.float64)], dim=1)
    torch.testing.assert_close(
        signed_cross_entropy(logits, target, [4]), signed_cross_entropy(logits, with_background, [4])
    )
    with pytest.raises(InputError, match="3 columns, or 2 without background, got 1"):
        signed_cross_entropy(logits, target[:, :1], [4])
