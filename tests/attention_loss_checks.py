"""What the losses on attention must keep, as functions that raise AssertionError; see loss_checks."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from eyeline import loss


def rows(*weights: list[float]) -> Tensor:
    """Attention [1, T, S] that asks for a gradient."""
    return torch.tensor([list(weights)], dtype=torch.float64, requires_grad=True)


def shown(attention: Tensor) -> Tensor:
    """A mask that hides nothing."""
    return torch.zeros(attention.shape[:2], dtype=torch.bool)


def near(value: Tensor, wanted: float, tolerance: float = 1e-9) -> None:
    assert abs(float(value.detach()) - wanted) < tolerance, f"{float(value.detach())} is not {wanted}"


def some_attention(B: int = 3, T: int = 5, S: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    """Attention, gold links of some rows, and a mask that hides the ends of all but the last target."""
    random = torch.Generator().manual_seed(0)
    attention = torch.rand(B, T, S, generator=random, dtype=torch.float64).softmax(-1)
    links = (torch.rand(B, T, S, generator=random) < 0.3).double()
    links = links / links.sum(-1, keepdim=True).clamp(min=1)
    return attention, links, torch.arange(T) >= torch.tensor([2, 3, T])[:B, None]


def coverage_holds_the_steps_before() -> None:
    """O16: rows [.5, .5, 0] twice cost 0 and 1; rows that look apart cost 0 and 0, where the fault makes it 1 and 1."""
    same = rows([0.5, 0.5, 0.0], [0.5, 0.5, 0.0])
    near(loss.coverage_loss(same[:, :1], shown(same)[:, :1]), 0.0)
    near(loss.coverage_loss(same, shown(same)), 1.0)
    apart = rows([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    near(loss.coverage_loss(apart, shown(apart)), 0.0)
    thrice = rows([1.0, 0.0], [1.0, 0.0], [1.0, 0.0])
    near(loss.coverage_loss(thrice, shown(thrice)), 2.0)  # what is covered twice costs no more than the look itself


def coverage_equals_a_loop() -> None:
    attention, _, mask = some_attention()
    wanted = 0.0
    for b, t, j in torch.cartesian_prod(torch.arange(3), torch.arange(5), torch.arange(4)).tolist():
        if not mask[b, t]:
            wanted += min(float(attention[b, t, j]), sum(float(attention[b, before, j]) for before in range(t)))
    near(loss.coverage_loss(attention, mask), wanted)


def padded_steps_and_columns_cost_nothing() -> None:
    """Hidden target steps, whatever stands in them, and source padding change neither the sums nor the gradients."""
    for number in (0, 1):
        small, links, _ = some_attention(1, 3, 4)
        small = small.requires_grad_()
        wide = torch.full((1, 6, 7), torch.nan, dtype=torch.float64)
        wide[:, :3, 4:] = 0.0
        wide[:, :3, :4] = small.detach()
        wide.requires_grad_()
        wide_links = torch.full((1, 6, 7), 0.2, dtype=torch.float64)
        wide_links[:, :3] = torch.nn.functional.pad(links, (0, 3))
        mask = torch.arange(6)[None] >= 3
        losses = (
            (loss.coverage_loss(small, mask[:, :3]), loss.coverage_loss(wide, mask)),
            (
                loss.guided_alignment_loss(small, links, mask[:, :3]),
                loss.guided_alignment_loss(wide, wide_links, mask),
            ),
        )[number]
        assert torch.allclose(losses[0], losses[1], rtol=0, atol=1e-12), f"{losses}"
        for value in losses:
            value.backward()
        assert small.grad is not None
        assert wide.grad is not None
        assert torch.allclose(wide.grad[:, :3, :4], small.grad)
        assert not wide.grad[:, 3:].any(), "a hidden step has a gradient"


def rows_of_losses_add_up() -> None:
    attention, links, mask = some_attention()
    for whole, part in (
        (loss.coverage_loss(attention, mask), lambda b: loss.coverage_loss(attention[b], mask[b])),
        (
            loss.guided_alignment_loss(attention, links, mask),
            lambda b: loss.guided_alignment_loss(attention[b], links[b], mask[b]),
        ),
    ):
        near(whole, sum(float(part(slice(b, b + 1))) for b in range(len(attention))))


def links_are_the_gold_of_their_rows() -> None:
    """-log .5 for a single link; (-log .2 - log .3) / 2 for two; a row without links costs nothing."""
    attention = rows([0.5, 0.25, 0.25], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0])
    links = torch.tensor([[[1.0, 0, 0], [0.5, 0.5, 0], [0, 0, 0]]], dtype=torch.float64)
    wanted = -math.log(0.5) - (math.log(0.2) + math.log(0.3)) / 2
    value = loss.guided_alignment_loss(attention, links, shown(attention))
    near(value, wanted)
    value.backward()
    assert attention.grad is not None
    assert not attention.grad[0, 2].any(), "a row without links has a gradient"
    assert attention.grad[0, 0].tolist() == [-2.0, 0.0, 0.0]


def a_gold_link_without_attention_stays_finite() -> None:
    """Attention of exactly 0 on the gold link, as single precision makes it: a finite loss, a finite gradient."""
    logits = torch.tensor([[[0.0, 200.0]]], requires_grad=True)
    attention = logits.softmax(-1)
    assert float(attention.detach()[0, 0, 0]) == 0.0
    value = loss.guided_alignment_loss(attention, torch.tensor([[[1.0, 0.0]]]), shown(attention))
    assert 40 < float(value.detach()) < 50
    value.backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


def a_little_attention_on_a_gold_link_learns() -> None:
    """The gradient is that of cross-entropy of a softmax, α - A, down to weights of 1e-15."""
    logits = torch.tensor([[[0.0, 34.0]]], requires_grad=True)
    loss.guided_alignment_loss(logits.softmax(-1), torch.tensor([[[1.0, 0.0]]]), torch.zeros(1, 1, dtype=torch.bool)).backward()
    assert logits.grad is not None
    assert torch.allclose(logits.grad, torch.tensor([[[-1.0, 1.0]]]), atol=1e-5)


ATTENTION_LOSS_CHECKS: dict[str, Callable[[], None]] = {
    check.__name__: check
    for check in (
        coverage_holds_the_steps_before,
        coverage_equals_a_loop,
        padded_steps_and_columns_cost_nothing,
        rows_of_losses_add_up,
        links_are_the_gold_of_their_rows,
        a_gold_link_without_attention_stays_finite,
        a_little_attention_on_a_gold_link_learns,
    )
}
