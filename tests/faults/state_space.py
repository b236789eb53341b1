"""Faults of selective state spaces: what is handed on, the way back, the recurrence, the layer's wiring."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from eyeline.contracts import Source, Step
from eyeline.nn import scan, state_space

from .registry import fault

TIED, SMALL, WIDE = "state-space-tied", "state-space-1x1", "state-space-1x2-wide"


def layers(patch: pytest.MonkeyPatch, change: Any) -> None:
    """Puts `change(outputs, past, after)` in the place of what a selective layer hands on."""
    real = state_space.SelectiveLayer.forward

    def forward(self: Any, inputs: Tensor, past: Any) -> Any:
        outputs, after = real(self, inputs, past)
        return outputs, change(past, after)

    patch.setattr(state_space.SelectiveLayer, "forward", forward)


def scanned(patch: pytest.MonkeyPatch, change: Any) -> None:
    """Puts `change(real scan, x, Δ, A, B, C, initial)` in the place of the scan."""
    real = scan.selective_scan
    patch.setattr(state_space, "selective_scan", lambda *given: change(real, *given))


@fault(TIED, "what_is_handed_on_changes_and_is_read")
def window_not_handed_on(patch: pytest.MonkeyPatch) -> None:
    layers(patch, lambda past, after: replace(after, window=past.window))


@fault(TIED, "teacher_forcing_equals_stepping")
def window_emptied_at_each_step(patch: pytest.MonkeyPatch) -> None:
    layers(patch, lambda past, after: replace(after, window=torch.zeros_like(after.window)))


@fault(TIED, "teacher_forcing_equals_stepping")
def window_of_the_oldest_inputs(patch: pytest.MonkeyPatch) -> None:
    real = state_space.CausalConvolution.forward

    def forward(self: Any, inputs: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        outputs, _ = real(self, inputs, window)
        return outputs, torch.cat([window, inputs], 1)[:, : window.shape[1]]

    patch.setattr(state_space.CausalConvolution, "forward", forward)


@fault(WIDE, "what_is_handed_on_changes_and_is_read")
def hidden_not_handed_on(patch: pytest.MonkeyPatch) -> None:
    layers(patch, lambda past, after: replace(after, hidden=past.hidden))


@fault(TIED, "neighbours_change_nothing")
def state_of_a_neighbour(patch: pytest.MonkeyPatch) -> None:
    layers(patch, lambda past, after: replace(after, hidden=after.hidden.roll(1, 0)))


@fault(SMALL, "teacher_forcing_equals_stepping")
def scan_starts_anew_at_each_step(patch: pytest.MonkeyPatch) -> None:
    scanned(patch, lambda real, *given: real(*given[:-1], torch.zeros_like(given[-1])))


@fault(TIED, "teacher_forcing_equals_stepping")
def lower_layer_handed_on_for_all(patch: pytest.MonkeyPatch) -> None:
    real = state_space.StateSpaceDecoder.advance

    def advance(self: Any, tokens: Tensor, state: Any, memory: Any) -> Any:
        step, after = real(self, tokens, state, memory)
        return step, replace(after, layers=after.layers[:1] * len(after.layers))

    patch.setattr(state_space.StateSpaceDecoder, "advance", advance)


@fault(TIED, "select_equals_recomputing")
def select_leaves_the_window_where_it_was(patch: pytest.MonkeyPatch) -> None:
    def select(self: Any, rows: Tensor) -> Any:
        return replace(self, window=self.window if len(rows) == len(self.window) else self.window[rows], hidden=self.hidden[rows])

    patch.setattr(state_space.Selected, "select", select)


@fault(TIED, "a_step_leaves_its_arguments_alone")
def hidden_overwritten_in_place(patch: pytest.MonkeyPatch) -> None:
    layers(patch, lambda past, after: replace(after, hidden=past.hidden.copy_(after.hidden)))


@fault(TIED, "padding_changes_nothing")
def backward_scan_through_padding(patch: pytest.MonkeyPatch) -> None:
    def turns(source: Source) -> Tensor:
        return torch.arange(source.ids.numel()).view_as(source.ids).flip(1).flatten()

    patch.setattr(state_space, "turns", turns)


@fault(SMALL, "neighbours_change_nothing")
def sources_turned_as_long_as_the_first(patch: pytest.MonkeyPatch) -> None:
    real = state_space.turns

    def turns(source: Source) -> Tensor:
        return real(replace(source, lengths=source.lengths[:1].expand_as(source.lengths)))

    patch.setattr(state_space, "turns", turns)


@fault(SMALL, "float64_equals_the_reference_formula")
def backward_scan_never_turned_back(patch: pytest.MonkeyPatch) -> None:
    def forward(self: Any, stream: Tensor, turned: Tensor) -> Tensor:
        inputs = self.around.enter(stream)
        start = self.forwards.start(len(inputs), inputs)
        back, _ = self.backwards(inputs.flatten(0, 1)[turned].view_as(inputs), start)
        return self.around.leave(stream, self.forwards(inputs, start)[0] + back)

    patch.setattr(state_space.TwoWayLayer, "forward", forward)


@fault(SMALL, "float64_equals_the_reference_formula")
def both_ways_go_forwards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(state_space, "turns", lambda source: torch.arange(source.ids.numel()))


@fault(SMALL, "float64_equals_the_reference_formula")
def decay_of_the_wrong_sign(patch: pytest.MonkeyPatch) -> None:
    scanned(patch, lambda real, x, delta, A, *others: real(x, delta, -A, *others))


@fault(SMALL, "float64_equals_the_reference_formula")
def decay_to_the_base_two(patch: pytest.MonkeyPatch) -> None:
    scanned(patch, lambda real, x, delta, A, *others: real(x, delta, A * torch.tensor(2.0).log(), *others))


@fault(SMALL, "the_future_is_not_seen")
def scan_off_by_one(patch: pytest.MonkeyPatch) -> None:
    """y_t read from h_{t+1}."""

    def early(real: Any, x: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
        outputs, last = real(x, *others)
        return outputs.roll(-1, 1), last

    scanned(patch, early)


@fault(SMALL, "float64_equals_the_reference_formula")
def state_read_before_it_is_written(patch: pytest.MonkeyPatch) -> None:
    """y_t read from h_{t-1}."""
    real = scan._matched

    def matched(weights: Tensor, of: Tensor) -> Tensor:
        return real(weights, torch.cat([torch.zeros_like(of[:, :1]), of[:, :-1]], 1))

    patch.setattr(scan, "_matched", matched)


@fault(SMALL, "float64_equals_the_reference_formula")
def scan_forgets_at_every_position(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scan, "recur", lambda decay, states: None)


@fault(SMALL, "float64_equals_the_reference_formula")
def pairs_never_joined_into_fours(patch: pytest.MonkeyPatch) -> None:
    """One round of the associative scan."""

    def in_pairs(links: Tensor, states: Tensor) -> None:
        length = states.shape[1]
        states[:, 1::2].addcmul_(links[:, ::2], states[:, : length // 2 * 2 : 2])
        states[:, 2::2].addcmul_(links[:, 1::2], states[:, 1 : length - 1 : 2])

    patch.setattr(scan, "_in_pairs", in_pairs)


@fault(SMALL, "float64_equals_the_reference_formula")
def chunks_start_where_the_first_did(patch: pytest.MonkeyPatch) -> None:
    def pieces(real: Any, x: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, initial: Tensor) -> Any:
        pairs = zip(*(each.split(2, 1) for each in (x, delta, B, C)), strict=True)
        done = [real(x, delta, A, B, C, initial) for x, delta, B, C in pairs]
        return torch.cat([outputs for outputs, _ in done], 1), done[-1][1]

    scanned(patch, pieces)


@fault(SMALL, "the_future_is_not_seen")
def convolution_sees_the_next_position(patch: pytest.MonkeyPatch) -> None:
    real = state_space.CausalConvolution.forward

    def forward(self: Any, inputs: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        outputs, after = real(self, torch.cat([inputs[:, 1:], inputs[:, -1:]], 1), window)
        return outputs, after

    patch.setattr(state_space.CausalConvolution, "forward", forward)


@fault(SMALL, "float64_equals_the_reference_formula")
def convolution_turned_round(patch: pytest.MonkeyPatch) -> None:
    real = state_space.CausalConvolution.forward

    def forward(self: Any, inputs: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        turned = state_space.CausalConvolution(self.weight.shape[1], len(self.weight)).to(self.weight.dtype)
        turned.load_state_dict({"weight": self.weight.flip(0), "bias": self.bias})
        return real(turned, inputs, window)

    patch.setattr(state_space.CausalConvolution, "forward", forward)


@fault(SMALL, "every_parameter_gets_a_gradient")
def step_size_cut_from_the_graph(patch: pytest.MonkeyPatch) -> None:
    scanned(patch, lambda real, x, delta, *others: real(x, delta.detach(), *others))


@fault(SMALL, "float64_equals_the_reference_formula")
def gate_without_its_activation(patch: pytest.MonkeyPatch) -> None:
    real, calls = state_space.silu, [0]

    def every_second(vectors: Tensor) -> Tensor:
        calls[0] += 1
        return vectors if calls[0] % 2 == 0 else real(vectors)

    patch.setattr(state_space, "silu", every_second)


@fault(TIED, "float64_equals_the_reference_formula")
def one_head_shown_for_all(patch: pytest.MonkeyPatch) -> None:
    def shown(self: Any, query: Tensor, keys: Any) -> Tensor:
        weights: Tensor = self.layers[self.layer].cross.weights(query, keys)
        return weights[:, 0]

    patch.setattr(state_space.StateSpaceDecoder, "_shown", shown)


@fault(TIED, "float64_equals_the_reference_formula")
def attention_of_the_first_layer_shown(patch: pytest.MonkeyPatch) -> None:
    real = state_space.StateSpaceDecoder.advance

    def advance(self: Any, tokens: Tensor, state: Any, memory: Any) -> tuple[Step, Any]:
        step, after = real(self, tokens, state, memory)
        first = self.layers[0]
        query = first(self.embedding(tokens), state.layers[0], memory.layers[0])[2]
        return replace(step, attention={"source": first.cross.weights(query, memory.layers[0]).mean(1)}), after

    patch.setattr(state_space.StateSpaceDecoder, "advance", advance)


@fault(TIED, "float64_equals_the_reference_formula")
def keys_of_the_other_layer(patch: pytest.MonkeyPatch) -> None:
    real = state_space.StateSpaceDecoder.remember

    def remember(self: Any, encoded: Any) -> Any:
        keys = real(self, encoded)
        return replace(keys, layers=keys.layers[::-1])

    patch.setattr(state_space.StateSpaceDecoder, "remember", remember)


@fault(TIED, "float64_equals_the_reference_formula")
def nothing_normalised_on_top(patch: pytest.MonkeyPatch) -> None:
    real = state_space.StateSpaceDecoder.__init__

    def init(self: Any, embedding: Any, layers: Any, norm: nn.Module, layer: int, head: int | None) -> None:
        real(self, embedding, layers, norm, layer, head)
        norm.forward = lambda stream: stream + 0.0 * (norm.weight.sum() + norm.bias.sum())  # type: ignore[method-assign]

    patch.setattr(state_space.StateSpaceDecoder, "__init__", init)
