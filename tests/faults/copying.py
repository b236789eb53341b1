"""Faults of copying: the mixture, the gate, and ids beyond the vocabulary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from eyeline.contracts import UNKNOWN, Source, Step
from eyeline.nn import copying, decoders, embedding, heads, readout

from .registry import fault

PLAIN, COVERED = "pointer-generator-bi-lstm-1x1", "pointer-generator-sum-bi-lstm-1x1"


def mixing(patch: pytest.MonkeyPatch, change: Any) -> None:
    """Has the head mix `change(step, source)`."""
    real = heads.PointOrGenerate.forward
    patch.setattr(heads.PointOrGenerate, "forward", lambda self, step, source: real(self, *change(step, source)))


def advancing(patch: pytest.MonkeyPatch, change: Any) -> None:
    """Puts `change(decoder, step, state, after, embedded)`, a step and a state, in the place of what the decoder answers."""
    real = copying.StepThenAttendGated.advance

    def advance(self: Any, embedded: Tensor, state: Any, memory: Any) -> Any:
        return change(self, *real(self, embedded, state, memory), state, embedded)

    patch.setattr(copying.StepThenAttendGated, "advance", advance)


@fault(PLAIN, "probabilities_sum_to_one")
def scatter_that_assigns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tensor, "scatter_add", lambda self, dim, index, source: self.scatter(dim, index, source))


@fault(PLAIN, "probabilities_sum_to_one")
def copies_not_weighed_by_the_gate(patch: pytest.MonkeyPatch) -> None:
    real = heads.logsigmoid
    calls: list[int] = []

    def logsigmoid(logit: Tensor) -> Tensor:
        calls.append(1)
        return real(logit) if len(calls) % 2 else torch.zeros_like(logit)

    patch.setattr(heads, "logsigmoid", logsigmoid)


@fault(PLAIN, "every_parameter_gets_a_gradient")
def gate_not_applied(patch: pytest.MonkeyPatch) -> None:
    mixing(patch, lambda step, source: (replace(step, gate=torch.zeros_like(step.gate)), source))


@fault(PLAIN, "float64_equals_the_reference_formula")
def gate_the_wrong_way_round(patch: pytest.MonkeyPatch) -> None:
    mixing(patch, lambda step, source: (replace(step, gate=-step.gate), source))


@fault(PLAIN, "float64_equals_the_reference_formula")
def gate_from_the_state_before_the_step(patch: pytest.MonkeyPatch) -> None:
    def change(decoder: Any, step: Step, after: Any, state: Any, embedded: Tensor) -> Any:
        return replace(step, gate=decoder.gate(after.feed, state.hidden[:, -1, 0], embedded)), after

    advancing(patch, change)


@fault(PLAIN, "float64_equals_the_reference_formula")
def gate_from_the_cell_plane(patch: pytest.MonkeyPatch) -> None:
    def change(decoder: Any, step: Step, after: Any, state: Any, embedded: Tensor) -> Any:
        return replace(step, gate=decoder.gate(after.feed, after.hidden[:, -1, 1], embedded)), after

    advancing(patch, change)


@fault(PLAIN, "every_parameter_gets_a_gradient")
def gate_without_the_graph(patch: pytest.MonkeyPatch) -> None:
    real = readout.Gate.forward
    patch.setattr(readout.Gate, "forward", lambda self, *vectors: real(self, *vectors).detach())


@fault(PLAIN, "float64_equals_the_reference_formula")
def output_layer_reads_the_context_of_the_step_before(patch: pytest.MonkeyPatch) -> None:
    def change(decoder: Any, step: Step, after: Any, state: Any, embedded: Tensor) -> Any:
        return replace(step, features=decoder.readout(after.hidden[:, -1, 0], state.feed)), after

    advancing(patch, change)


@fault(COVERED, "what_is_handed_on_changes_and_is_read")
def first_context_handed_on_for_ever(patch: pytest.MonkeyPatch) -> None:
    advancing(patch, lambda decoder, step, after, state, embedded: (step, replace(after, feed=state.feed)))


@fault(COVERED, "what_is_handed_on_changes_and_is_read")
def coverage_of_the_first_step_handed_on_for_ever(patch: pytest.MonkeyPatch) -> None:
    advancing(patch, lambda decoder, step, after, state, embedded: (step, replace(after, looked=state.looked)))


@fault(COVERED, "select_equals_recomputing")
def select_leaves_the_context_where_it_was(patch: pytest.MonkeyPatch) -> None:
    def select(self: Any, rows: Tensor) -> Any:
        return decoders.Fed(self.hidden[rows], self.feed if len(rows) == len(self.feed) else self.feed[rows], self.looked[rows])

    patch.setattr(decoders.Fed, "select", select)


@fault(PLAIN, "float64_equals_the_reference_formula")
def copied_words_fed_as_the_last_entry(patch: pytest.MonkeyPatch) -> None:
    def forward(self: Any, ids: Tensor) -> Tensor:
        return self.held(ids.clamp(max=self.held.table.num_embeddings - 1))  # type: ignore[no-any-return]

    patch.setattr(embedding.ExtendedEmbedding, "forward", forward)


@fault(PLAIN, "neighbours_change_nothing")
def extended_ids_of_the_neighbour(patch: pytest.MonkeyPatch) -> None:
    mixing(patch, lambda step, source: (step, replace(source, copy_ids=source.copy_ids.roll(1, 0))))


@fault(PLAIN, "hypotheses_share_their_source")
def copying_rows_interleaved_the_other_way(patch: pytest.MonkeyPatch) -> None:
    """Row k·N + n is taken to copy from source n, where it is row n·K + k."""
    real = heads.PointOrGenerate.forward

    def forward(self: Any, step: Step, source: Source) -> Tensor:
        rows = torch.arange(len(step.features)).view(len(source.ids), -1).T.flatten()
        return real(self, step.at(rows), source)[rows.argsort()]

    patch.setattr(heads.PointOrGenerate, "forward", forward)


@fault(PLAIN, "garbage_in_the_padding_changes_nothing")
def words_of_the_padding_are_possible(patch: pytest.MonkeyPatch) -> None:
    real = heads._first_places
    patch.setattr(heads, "_first_places", lambda ids, mask, nowhere: real(ids, torch.zeros_like(mask), nowhere))


@fault(COVERED, "float64_equals_the_reference_formula")
def own_words_copied_as_unknown(patch: pytest.MonkeyPatch) -> None:
    """What the target vocabulary does not hold loses its copy probability to UNKNOWN."""

    def change(step: Step, source: Source) -> Any:
        vocabulary = int(source.copy_ids.max()) + 1 - source.extra  # type: ignore[union-attr]
        held = source.copy_ids.masked_fill(source.copy_ids >= vocabulary, UNKNOWN)  # type: ignore[union-attr]
        return step, replace(source, copy_ids=held)

    mixing(patch, change)


@fault(COVERED, "padding_changes_nothing")
def symbols_copied_from_one_column_to_the_left(patch: pytest.MonkeyPatch) -> None:
    mixing(patch, lambda step, source: (step, replace(source, copy_ids=source.copy_ids.roll(-1, 1))))
