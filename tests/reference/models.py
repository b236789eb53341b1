"""Each rung's log-probabilities of one target given one source, from a model's weights alone. No batch, no padding, no torch.

It knows the names that weights have in a state_dict, and the settings that say which equations apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eyeline.config_models import BahdanauSettings, LuongSettings, RecurrentSettings, Seq2SeqSettings
from eyeline.contracts import Source

from . import attention
from .cells import CELLS, Array, Weights, attentional, log_softmax, maxout

Settings = Seq2SeqSettings | BahdanauSettings | LuongSettings


def log_probabilities(
    settings: Settings, weights: Mapping[str, Array], source: Source, inputs: Sequence[int]
) -> tuple[Array, Array | None]:
    """log p(· | inputs[:t+1], source) for each t, [T, V], and the attention [T, S] where the rung has one."""
    reverse = isinstance(settings, Seq2SeqSettings) and settings.reverse_source
    reader = "encoder.encoder" if reverse else "encoder"
    ids = source.ids[0].tolist()[::-1] if reverse else source.ids[0].tolist()
    states, finals = encode(settings, weights, reader, ids)
    state = bridge(settings, weights, finals)
    embedded = [weights["decoder.embedding.table.weight"][token] for token in inputs]
    if isinstance(settings, Seq2SeqSettings):
        features, looked = fixed_vector(settings, weights, finals[-1][0], state, embedded), None
    elif isinstance(settings, BahdanauSettings):
        features, looked = look_then_step(settings, weights, states, state, embedded)
    else:
        features, looked = step_then_look(settings, weights, states, state, embedded)
    W, b = weights["head.project.weight"], weights["head.project.bias"]
    return np.stack([log_softmax(W @ f + b) for f in features]), None if looked is None else np.stack(looked)


def cell_weights(weights: Mapping[str, Array], name: str, suffix: str = "") -> Weights:
    return Weights(*(weights[f"{name}.{part}_l0{suffix}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")))


def encode(settings: Settings, weights: Mapping[str, Array], reader: str, ids: Sequence[int]) -> tuple[list[Array], list[Array]]:
    """What `recurrence` makes of embedded symbols."""
    return recurrence(settings, weights, reader, [weights[f"{reader}.embedding.table.weight"][i] for i in ids])


def recurrence(
    settings: RecurrentSettings, weights: Mapping[str, Array], reader: str, inputs: list[Array]
) -> tuple[list[Array], list[Array]]:
    """The top layer's state at each position, S × [D], and each layer's last state, L × [P, D], both directions side by side."""
    cell, length, finals = CELLS[settings.cell], len(inputs), []
    for layer in range(settings.encoder_layers):
        name, sides, last = f"{reader}.layers.{layer}", [], []
        for suffix in ("", "_reverse") if settings.bidirectional else ("",):
            state = np.zeros((2 if settings.cell == "lstm" else 1, settings.encoder_size))
            outputs: dict[int, Array] = {}
            for position in range(length) if not suffix else range(length - 1, -1, -1):
                state = cell(inputs[position], state, cell_weights(weights, name, suffix))
                outputs[position] = state[0]
            sides.append(outputs)
            last.append(state)
        inputs = [np.concatenate([side[position] for side in sides]) for position in range(length)]
        finals.append(np.concatenate(last, axis=1))
    return inputs, finals


def bridge(settings: RecurrentSettings, weights: Mapping[str, Array], finals: list[Array]) -> list[Array]:
    """The decoder's first state, L × [P, D]: a copy where shapes agree; else tanh(W h + b), and W c + b for an LSTM's c."""
    if (len(finals), finals[0].shape[1]) == (settings.decoder_layers, settings.decoder_size):
        return finals
    first = []
    for layer in range(settings.decoder_layers):
        from_the_top = settings.decoder_layers - 1 - layer
        below = finals[max(0, len(finals) - 1 - from_the_top)]
        planes = []
        for plane, vector in enumerate(below):
            name = f"decoder.bridge.maps.{layer}.{plane}"
            mapped = weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"]
            planes.append(np.tanh(mapped) if plane == 0 else mapped)
        first.append(np.stack(planes))
    return first


def move(settings: RecurrentSettings, weights: Mapping[str, Array], x: Array, state: list[Array]) -> tuple[Array, list[Array]]:
    """One step of the decoder's layers: the top h [D] and the state after it."""
    after = []
    for layer, before in enumerate(state):
        after.append(CELLS[settings.cell](x, before, cell_weights(weights, f"decoder.stack.layers.{layer}")))
        x = after[-1][0]
    return x, after


def fixed_vector(
    settings: Seq2SeqSettings, weights: Mapping[str, Array], vector: Array, state: list[Array], embedded: list[Array]
) -> list[Array]:
    """Sutskever et al. 2014: the vector is the first state alone. Cho et al. 2014: it enters each step and the output too."""
    features = []
    for e in embedded:
        if settings.context == "once":
            h, state = move(settings, weights, e, state)
            features.append(h)
        else:
            h, state = move(settings, weights, np.concatenate([e, vector]), state)
            features.append(deep_output(weights, h, vector, e))
    return features


def deep_output(weights: Mapping[str, Array], h: Array, context: Array, e: Array) -> Array:
    return maxout(
        np.concatenate([h, context, e]), weights["decoder.readout.linear.weight"], weights["decoder.readout.linear.bias"]
    )


def look_then_step(
    settings: BahdanauSettings, weights: Mapping[str, Array], states: list[Array], state: list[Array], embedded: list[Array]
) -> tuple[list[Array], list[Array]]:
    """Bahdanau et al. 2015: αᵢ from sᵢ₋₁; cᵢ = Σ αᵢⱼ hⱼ; sᵢ = f(sᵢ₋₁, yᵢ₋₁, cᵢ); output from sᵢ, cᵢ and yᵢ₋₁ (equation 4)."""
    score = "decoder.attention.score"
    W, b = weights[f"{score}.query.weight"], weights[f"{score}.query.bias"]
    U, v = weights[f"{score}.key.weight"], weights[f"{score}.vector.weight"][0]
    keys, features, looked = np.stack(states), [], []
    for e in embedded:
        alpha = attention.softmax(attention.additive(state[-1][0], keys, W, b, U, v))
        context = attention.weighted_sum(alpha, keys)
        h, state = move(settings, weights, np.concatenate([e, context]), state)
        features.append(deep_output(weights, h, context, e))
        looked.append(alpha)
    return features, looked


def luong_scores(settings: LuongSettings, weights: Mapping[str, Array], h: Array, keys: Array) -> Array:
    name = "decoder.attention.score"
    if settings.score == "dot":
        return attention.dot(h, keys)
    if settings.score == "scaled-dot":
        return attention.scaled_dot(h, keys)
    if settings.score == "general":
        return attention.general(h, keys, weights[f"{name}.key.weight"])
    if settings.score == "projected-dot":
        return attention.projected_dot(h, keys, weights[f"{name}.query.weight"], weights[f"{name}.key.weight"])
    return attention.concat(h, keys, weights[f"{name}.mix.weight"], weights[f"{name}.vector.weight"][0])


def luong_weights(settings: LuongSettings, weights: Mapping[str, Array], h: Array, scores: Array, t: int) -> Array:
    """aₜ over all positions, over those around the t-th (the last one, where there is no t-th), or around a predicted one."""
    D, name = settings.window, "decoder.attention"
    if settings.scope == "global":
        return attention.softmax(scores)
    if settings.scope == "local-m":
        return attention.within(scores, min(t, len(scores) - 1), D)
    p = attention.predicted(h, weights[f"{name}.hidden.weight"], weights[f"{name}.place.weight"][0], len(scores))
    return attention.favoured(attention.within(scores, p, D), p, D)


def step_then_look(
    settings: LuongSettings, weights: Mapping[str, Array], states: list[Array], state: list[Array], embedded: list[Array]
) -> tuple[list[Array], list[Array]]:
    """Luong et al. 2015: hₜ from yₜ₋₁ (and h̃ₜ₋₁, zero at first, with input feeding); aₜ from hₜ; h̃ₜ = tanh(W [cₜ; hₜ])."""
    keys, mixed, features, looked = np.stack(states), np.zeros(settings.decoder_size), [], []
    for t, e in enumerate(embedded):
        h, state = move(settings, weights, np.concatenate([e, mixed]) if settings.input_feeding else e, state)
        alpha = luong_weights(settings, weights, h, luong_scores(settings, weights, h, keys), t)
        mixed = attentional(attention.weighted_sum(alpha, keys), h, weights["decoder.readout.linear.weight"])
        features.append(mixed)
        looked.append(alpha)
    return features, looked
