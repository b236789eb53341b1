"""Faults of pointing: positions off by one, elements of another source, visits that are forgotten, END in the wrong column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from eyeline import loss
from eyeline.contracts import END, Source, Step
from eyeline.nn import pointing, recurrent

from .registry import fault

SYMBOLS, COPIED = "pointer-network-symbols-lstm-1x1", "pointer-network-symbols-gru-1x1-copied"
VECTORS, DISTINCT = "pointer-network-vectors-gru-1x2", "pointer-network-vectors-distinct-lstm-1x1"


def other_tokens(change: Any) -> Any:
    """`feed` with its tokens changed first."""
    real = pointing.PointMemory.feed
    return lambda self, tokens: real(self, change(tokens))


@fault(SYMBOLS, "float64_equals_the_reference_formula")
def element_after_the_one_pointed_at_is_fed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pointing.PointMemory, "feed", other_tokens(lambda tokens: torch.where(tokens > END, tokens + 1, tokens)))


@fault(SYMBOLS, "float64_equals_the_reference_formula")
def ids_taken_for_positions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pointing.PointMemory, "feed", other_tokens(lambda tokens: tokens + pointing.FIRST))


@fault(SYMBOLS, "neighbours_change_nothing")
def element_of_the_neighbour_fed(patch: pytest.MonkeyPatch) -> None:
    real = pointing.PointMemory.feed
    patch.setattr(pointing.PointMemory, "feed", lambda self, tokens: real(replace(self, fed=self.fed.roll(1, 0)), tokens))


@fault(SYMBOLS, "hypotheses_share_their_source")
def elements_fed_to_hypotheses_the_other_way_round(patch: pytest.MonkeyPatch) -> None:
    """Row k·N + n is taken to read source n, where it is row n·K + k."""

    def feed(self: Any, tokens: Tensor) -> Tensor:
        sources = torch.arange(len(tokens)) % len(self.fed)
        return self.fed[sources[:, None], tokens.masked_fill(tokens >= self.fed.shape[1], 0)]

    patch.setattr(pointing.PointMemory, "feed", feed)


@fault(VECTORS, "teacher_forcing_equals_stepping")
def element_of_the_previous_step_fed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pointing.PointMemory, "feed", other_tokens(lambda tokens: torch.cat([tokens[:, :1], tokens[:, :-1]], 1)))


@fault(SYMBOLS, "neighbours_change_nothing")
def last_element_of_the_batch_fed_for_what_is_outside(patch: pytest.MonkeyPatch) -> None:
    """Ids beyond the width are held to the last column, which is another one in every batch."""
    real = pointing.PointMemory.feed
    patch.setattr(pointing.PointMemory, "feed", lambda self, tokens: real(self, tokens.clamp(max=self.fed.shape[1] - 1)))


@fault(SYMBOLS, "every_parameter_gets_a_gradient")
def begin_feeds_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pointing.PointMemory, "feed", other_tokens(lambda tokens: torch.where(tokens > END, tokens, 0)))


@fault(COPIED, "every_parameter_gets_a_gradient")
def what_is_fed_is_cut_from_the_graph(patch: pytest.MonkeyPatch) -> None:
    real = pointing.PointMemory.feed
    patch.setattr(pointing.PointMemory, "feed", lambda self, tokens: real(self, tokens).detach())


@fault(COPIED, "float64_equals_the_reference_formula")
def encoder_states_fed_for_elements(patch: pytest.MonkeyPatch) -> None:
    real = pointing.StepThenPoint.remember

    def remember(self: Any, encoding: Any) -> Any:
        states = encoding.states[..., : encoding.elements.shape[-1]]
        return real(self, replace(encoding, elements=states.masked_fill(encoding.mask[..., None], 0.0)))

    patch.setattr(pointing.StepThenPoint, "remember", remember)


@fault(COPIED, "float64_equals_the_reference_formula")
def points_with_the_state_before_the_step(patch: pytest.MonkeyPatch) -> None:
    real = recurrent.Stack.forward

    def forward(self: Any, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        outputs, after = real(self, inputs, state)
        return torch.cat([state[:, -1, 0][:, None], outputs[:, :-1]], 1), after

    patch.setattr(recurrent.Stack, "forward", forward)


def moved(change: Any) -> Any:
    """The head with its answer changed."""
    real = pointing.Point.forward
    return lambda self, step, source: change(real(self, step, source), source)


def unmoved(log_probs: Tensor, source: Source) -> Tensor:
    """END's probability left in the column of its position."""
    last = torch.zeros(len(source.ids), source.ids.shape[1]).scatter(1, (source.lengths[:, None] - 1).clamp(min=0), 1.0).bool()
    last = last.repeat_interleave(len(log_probs) // len(last), 0).view(-1, *[1] * (log_probs.dim() - 2), last.shape[1])
    positions = torch.where(last, log_probs[..., END : END + 1], log_probs[..., pointing.FIRST :])
    nothing = torch.full_like(log_probs[..., : pointing.FIRST], -torch.inf)
    return torch.cat([nothing, positions], -1)


@fault(SYMBOLS, "float64_equals_the_reference_formula")
def end_left_in_its_column(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pointing.Point, "forward", moved(unmoved))


@fault(SYMBOLS, "probabilities_sum_to_one")
def end_in_both_columns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pointing.Point, "forward", moved(lambda answer, source: torch.maximum(answer, unmoved(answer, source))))


@fault(SYMBOLS, "neighbours_change_nothing")
def end_looked_for_in_the_last_column(patch: pytest.MonkeyPatch) -> None:
    real = pointing.Point.forward

    def forward(self: Any, step: Step, source: Source) -> Tensor:
        return real(self, step, replace(source, lengths=torch.full_like(source.lengths, source.ids.shape[1])))

    patch.setattr(pointing.Point, "forward", forward)


@fault(SYMBOLS, "hypotheses_share_their_source")
def end_of_another_source_for_a_hypothesis(patch: pytest.MonkeyPatch) -> None:
    """Lengths laid out k·N + n for rows n·K + k."""
    real = pointing.Point.forward

    def forward(self: Any, step: Step, source: Source) -> Tensor:
        return real(self, step, replace(source, lengths=source.lengths.repeat(len(step.features) // len(source.lengths))))

    patch.setattr(pointing.Point, "forward", forward)


@fault(VECTORS, "float64_equals_the_reference_formula")
def numbers_read_at_end(patch: pytest.MonkeyPatch) -> None:
    real = pointing.Vectors.forward

    def forward(self: Any, source: Source) -> Tensor:
        elements = real(self, source)
        last = torch.arange(source.ids.shape[1]) == source.lengths[:, None] - 1
        return torch.where(last[..., None], self.map.bias, elements)

    patch.setattr(pointing.Vectors, "forward", forward)


@fault(VECTORS, "padding_changes_nothing")
def numbers_in_the_padding_multiplied_by_zero(patch: pytest.MonkeyPatch) -> None:
    def forward(self: Any, source: Source) -> Tensor:
        real = (torch.arange(source.ids.shape[1]) < source.lengths[:, None] - 1)[..., None]
        last = (torch.arange(source.ids.shape[1]) == source.lengths[:, None] - 1)[..., None]
        values = source.values
        assert values is not None
        values = torch.where(last, 0.0, values).to(self.end.dtype)
        return self.map(values) * real + self.end * last

    patch.setattr(pointing.Vectors, "forward", forward)


@fault(DISTINCT, "teacher_forcing_equals_stepping")
def visits_not_handed_on(patch: pytest.MonkeyPatch) -> None:
    real = pointing.Distinct.closed

    def closed(self: Any, tokens: Tensor, looked: Any, memory: Any) -> Any:
        return real(self, tokens, looked, memory)[0], looked

    patch.setattr(pointing.Distinct, "closed", closed)


@fault(DISTINCT, "what_is_handed_on_changes_and_is_read")
def visits_never_read(patch: pytest.MonkeyPatch) -> None:
    real = pointing.Distinct.closed

    def closed(self: Any, tokens: Tensor, looked: Any, memory: Any) -> Any:
        return memory.mask[:, None], real(self, tokens, looked, memory)[1]

    patch.setattr(pointing.Distinct, "closed", closed)


@fault(DISTINCT, "float64_equals_the_reference_formula")
def last_position_alone_is_closed(patch: pytest.MonkeyPatch) -> None:
    real = pointing.Distinct.closed

    def closed(self: Any, tokens: Tensor, looked: Any, memory: Any) -> Any:
        hidden, after = real(self, tokens, looked, memory)
        here = (tokens[..., None] - pointing.FIRST == torch.arange(hidden.shape[-1])).view_as(hidden)
        return hidden & (here | memory.mask[:, None]), after

    patch.setattr(pointing.Distinct, "closed", closed)


@fault(DISTINCT, "the_future_is_not_seen")
def visits_of_the_whole_target(patch: pytest.MonkeyPatch) -> None:
    """What teacher forcing will point at later is closed from the start."""
    real = pointing.Distinct.closed

    def closed(self: Any, tokens: Tensor, looked: Any, memory: Any) -> Any:
        hidden, after = real(self, tokens, looked, memory)
        return hidden[:, -1:].expand_as(hidden), after

    patch.setattr(pointing.Distinct, "closed", closed)


@fault(DISTINCT, "probabilities_sum_to_one")
def closed_after_the_softmax(patch: pytest.MonkeyPatch) -> None:
    visits, point, seen = pointing.Distinct.closed, pointing.Point.forward, []

    def closed(self: Any, tokens: Tensor, looked: Any, memory: Any) -> Any:
        hidden, after = visits(self, tokens, looked, memory)
        seen.append(hidden)
        return memory.mask[:, None], after

    def forward(self: Any, step: Step, source: Source) -> Tensor:
        answer = point(self, step, source)
        return answer.masked_fill(pad(seen[-1].view(step.features.shape), (pointing.FIRST, 0)), -torch.inf)

    patch.setattr(pointing.Distinct, "closed", closed)
    patch.setattr(pointing.Point, "forward", forward)


@fault(DISTINCT, "select_equals_recomputing")
def select_leaves_the_visits_where_they_were(patch: pytest.MonkeyPatch) -> None:
    def select(self: Any, rows: Tensor) -> Any:
        return self if len(rows) == len(self.counts) else pointing.Visits(self.counts[rows])

    patch.setattr(pointing.Visits, "select", select)


@fault("", "an_impossible_gold_symbol_is_refused_by_place")
def target_that_cannot_be_said_is_an_infinite_loss(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loss, "_refuse_the_impossible", lambda *arguments: None)


@fault(DISTINCT, "a_step_leaves_its_arguments_alone")
def visits_counted_in_place(patch: pytest.MonkeyPatch) -> None:
    real = pointing.Distinct.closed

    def closed(self: Any, tokens: Tensor, looked: Any, memory: Any) -> Any:
        hidden, after = real(self, tokens, looked, memory)
        looked.counts.copy_(after.counts)
        return hidden, looked

    patch.setattr(pointing.Distinct, "closed", closed)
