"""Faults of the Transformer: masks, heads, norms, what is shown and what is copied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from eyeline.contracts import PAD, Source, Step
from eyeline.nn import (
    Dropout,
    feedforward,
    linear_attention,
    multihead,
    positions,
    self_attention,
    transformer,
    transformer_copying,
    window_attention,
)

from .registry import fault

DEFAULT = "transformer-pre-relu-sinusoidal-tied"
ROTARY = "transformer-post-swiglu-rotary"
WINDOW = "transformer-pre-relu-window"
LINEAR = "transformer-pre-relu-linear"


# Masks and windows


@fault(DEFAULT, "padding_changes_nothing")
def mask_lost_in_cross_attention(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(multihead, "visible", torch.ones_like)


@fault(DEFAULT, "padding_changes_nothing")
def mask_lost_in_the_encoder(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(self_attention, "visible", torch.ones_like)


@fault(LINEAR, "padding_changes_nothing")
def mask_lost_in_sums(patch: pytest.MonkeyPatch) -> None:
    real = linear_attention.LinearSelfAttention.forward
    patch.setattr(
        linear_attention.LinearSelfAttention, "forward", lambda self, inputs, mask, _: real(self, inputs, torch.zeros_like(mask))
    )


@fault(DEFAULT, "an_empty_source_stays_finite")
def weights_of_minus_infinity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(multihead, "masked_softmax", lambda scores, mask: scores.masked_fill(mask, -torch.inf).softmax(-1))


@fault(DEFAULT, "nan_in_hidden_states_stays_there")
def hidden_states_times_zero(patch: pytest.MonkeyPatch) -> None:
    real = multihead.MultiHeadAttention.remember
    nowhere = torch.zeros(1, 1, dtype=torch.bool)

    def remember(self: Any, states: Tensor, mask: Tensor, _: Any) -> Any:
        return replace(real(self, states * ~mask[..., None], nowhere.expand_as(mask)), mask=mask)

    patch.setattr(multihead.MultiHeadAttention, "remember", remember)


@fault(DEFAULT, "the_future_is_not_seen")
def causal_mask_off_by_one(patch: pytest.MonkeyPatch) -> None:
    def attend(queries: Tensor, keys: Tensor, values: Tensor, seen: Any, dropout: Any, causal: bool = False) -> Tensor:
        if causal:
            seen = torch.ones(queries.shape[2], keys.shape[2], dtype=torch.bool).tril(1)
        return multihead.heads_attend(queries, keys, values, seen, dropout)

    patch.setattr(self_attention, "heads_attend", attend)


@fault("transformer-pre-swiglu-alibi-2x1", "the_future_is_not_seen")
def bias_in_the_place_of_the_mask(patch: pytest.MonkeyPatch) -> None:
    def attend(self: Any, queries: Tensor, keys: Tensor, values: Tensor, seen: Tensor, bias: Tensor | None) -> Tensor:
        return scaled_dot_product_attention(queries, keys, values, attn_mask=seen if bias is None else bias)

    patch.setattr(self_attention.Heads, "attend", attend)


@fault(LINEAR, "the_future_is_not_seen")
def sums_over_the_whole_chunk(patch: pytest.MonkeyPatch) -> None:
    real = linear_attention.sums_before

    def sums_before(queries: Tensor, keys: Tensor, values: Tensor, totals: Tensor) -> Any:
        last = real(queries, keys, values, totals)[1]
        return queries @ last, last

    patch.setattr(linear_attention, "sums_before", sums_before)


@fault(WINDOW, "float64_equals_the_reference_formula")
def causal_window_one_too_wide(patch: pytest.MonkeyPatch) -> None:
    real = window_attention.CausalWindowSelfAttention.__init__
    patch.setattr(
        window_attention.CausalWindowSelfAttention,
        "__init__",
        lambda self, size, heads, order, window, dropout: real(self, size, heads, order, window + 1, dropout),
    )


@fault(WINDOW, "float64_equals_the_reference_formula")
def window_of_the_encoder_looks_back_alone(patch: pytest.MonkeyPatch) -> None:
    real = window_attention.look_around

    def look_around(heads: Any, queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor, before: int, after: int) -> Tensor:
        width = queries.shape[2] + before
        return real(heads, queries, keys[:, :, :width], values[:, :, :width], hidden[:, :width], before, 0)

    patch.setattr(window_attention, "look_around", look_around)


@fault(WINDOW, "teacher_forcing_equals_stepping")
def window_cache_one_too_short(patch: pytest.MonkeyPatch) -> None:
    real = window_attention.CausalWindowSelfAttention.forward

    def forward(self: Any, inputs: Tensor, past: Any, together: int = 1, real_ones: Any = None) -> Any:
        output, now = real(self, inputs, past)
        return output, replace(now, keys=now.keys[:, :, -1:], values=now.values[:, :, -1:])

    patch.setattr(window_attention.CausalWindowSelfAttention, "forward", forward)


# Heads, orders, norms


@fault(DEFAULT, "hypotheses_share_their_source")
def queries_of_hypotheses_interleaved(patch: pytest.MonkeyPatch) -> None:
    real = multihead.MultiHeadAttention.forward

    def forward(self: Any, query: Tensor, keys: Any, _: Any) -> Tensor:
        turn = torch.arange(len(query)).view(-1, len(keys.mask)).T.flatten()
        return real(self, query[turn], keys)[turn.argsort()]

    patch.setattr(multihead.MultiHeadAttention, "forward", forward)


@fault(DEFAULT, "teacher_forcing_equals_stepping")
def heads_split_by_view(patch: pytest.MonkeyPatch) -> None:
    """[R, T, H·E] viewed as [R, H, T, E]: heads that are made of positions."""

    def split_heads(vectors: Tensor, heads: int, parts: int, _: Any) -> list[Tensor]:
        return [part.reshape(part.shape[0], heads, part.shape[1], -1) for part in vectors.chunk(parts, -1)]

    patch.setattr(self_attention, "split_heads", split_heads)


@fault(DEFAULT, "float64_equals_the_reference_formula")
def scaled_by_the_width_of_the_model(patch: pytest.MonkeyPatch) -> None:
    def attend(queries: Tensor, *others: Any, **named: Any) -> Tensor:
        return scaled_dot_product_attention(queries, *others, **named, scale=8**-0.5)

    patch.setattr(multihead, "scaled_dot_product_attention", attend)


@fault(ROTARY, "float64_equals_the_reference_formula")
def rotary_on_keys_alone(patch: pytest.MonkeyPatch) -> None:
    def split(self: Any, inputs: Tensor, places: Tensor, _: Any) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = self_attention.split_heads(self.inward(inputs), self.heads, 3)
        return queries, self.order.turn(keys, places), values

    patch.setattr(self_attention.Heads, "split", split)


@fault("transformer-pre-gelu-window-alibi", "float64_equals_the_reference_formula")
def slopes_counted_from_head_zero(patch: pytest.MonkeyPatch) -> None:
    real = positions.Alibi.bias
    patch.setattr(positions.Alibi, "bias", lambda self, *given: 2 ** (8 / self.heads) * real(self, *given))


@fault(DEFAULT, "float64_equals_the_reference_formula")
def embeddings_not_scaled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        transformer.PlacedEmbedding,
        "forward",
        lambda self, ids, start=0, mask=None: self.dropout(self.positions(self.embedding(ids), start, mask)),
    )


@fault(DEFAULT, "float64_equals_the_reference_formula")
def residual_of_what_was_normed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(feedforward.PreNorm, "leave", lambda self, stream, added: self.norm(stream) + added)


@fault(DEFAULT, "float64_equals_the_reference_formula")
def no_norm_on_top(patch: pytest.MonkeyPatch) -> None:
    def forward(self: Any, source: Source) -> Any:
        stream = self.embedding(source.ids.masked_fill(source.mask, PAD))
        for layer in self.layers:
            stream = layer(stream, source.mask)
        return transformer.Encoded(stream, source.mask)

    patch.setattr(transformer.TransformerEncoder, "forward", forward)


@fault(DEFAULT, "dropout_acts_in_training_alone")
def weights_dropped_in_eval_mode(patch: pytest.MonkeyPatch) -> None:
    def attend(queries: Tensor, keys: Tensor, values: Tensor, seen: Any, dropout: Any, causal: bool = False) -> Tensor:
        return multihead.heads_attend(queries, keys, values, seen, Dropout(dropout.p), causal)

    patch.setattr(self_attention, "heads_attend", attend)


# What is shown, and what is copied


@fault(ROTARY, "float64_equals_the_reference_formula")
def another_layer_shown(patch: pytest.MonkeyPatch) -> None:
    real = transformer.TransformerDecoder.__init__
    patch.setattr(
        transformer.TransformerDecoder,
        "__init__",
        lambda self, embedding, layers, norm, layer, head: real(self, embedding, layers, norm, -1, head),
    )


@fault("pointer-generator-transformer-head-1", "float64_equals_the_reference_formula")
def copied_from_the_mean_of_heads(patch: pytest.MonkeyPatch) -> None:
    real = transformer.TransformerDecoder.__init__
    patch.setattr(
        transformer.TransformerDecoder,
        "__init__",
        lambda self, embedding, layers, norm, layer, head: real(self, embedding, layers, norm, layer, None),
    )


@fault("pointer-generator-transformer-learned", "float64_equals_the_reference_formula")
def generating_taken_for_copying(patch: pytest.MonkeyPatch) -> None:
    real = transformer_copying.GatedTransformerDecoder.advance

    def advance(self: Any, *given: Any) -> Any:
        step, after = real(self, *given)
        return Step(step.features, step.attention, -step.gate), after

    patch.setattr(transformer_copying.GatedTransformerDecoder, "advance", advance)


@fault("pointer-generator-transformer-head-1", "hypotheses_share_their_source")
def contexts_of_hypotheses_interleaved(patch: pytest.MonkeyPatch) -> None:
    def look(self: Any, step: Step, keys: Any) -> tuple[Tensor, Tensor]:
        weights = step.attention["source"]
        values = keys.values.repeat(len(weights) // len(keys.values), 1, 1)
        return weights @ values, weights

    patch.setattr(transformer_copying.ShownLook, "forward", look)
