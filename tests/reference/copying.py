"""Log-probabilities of the pointer-generator (See et al. 2017), one symbol of one source at a time. Knows the names of weights.

Probabilities are added up as the paper writes them, and only then is their logarithm taken: -inf for what cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eyeline.config_models import PointerGeneratorSettings
from eyeline.contracts import UNKNOWN, Source

from . import attention
from .cells import Array, log_softmax, sigmoid
from .coverage import after_a_look
from .models import bridge, encode, move

LOOK = "decoder.attention"


def log_probabilities(
    settings: PointerGeneratorSettings, weights: Mapping[str, Array], source: Source, inputs: Sequence[int]
) -> tuple[Array, Array]:
    """log p(· | inputs[:t+1], source) for each t, [T, V + extra], and the attention [T, S]."""
    states, finals = encode(settings, weights, "encoder", source.ids[0].tolist())
    state = bridge(settings, weights, finals)
    assert source.copy_ids is not None
    symbols = source.copy_ids[0].tolist()
    size = 0 if settings.coverage == "none" else weights[f"{LOOK}.term.weight"].shape[1]
    covered = [np.zeros(size) for _ in states]
    context, answers, looked = np.zeros_like(states[0]), [], []
    for token in inputs:
        e = embedded(weights, token)
        s, state = move(settings, weights, np.concatenate([e, context]), state)
        alpha = attention.softmax(np.array([score(weights, s, h, c) for h, c in zip(states, covered, strict=True)]))
        context = attention.weighted_sum(alpha, np.stack(states))
        if size:
            covered = after_a_look(settings, weights, covered, alpha, states, s)
        p = mixture(generated(weights, s, context), gate(weights, context, s, e), alpha, symbols, source.extra)
        answers.append(np.array([np.log(each) if each else -np.inf for each in p]))
        looked.append(alpha)
    return np.stack(answers), np.stack(looked)


def embedded(weights: Mapping[str, Array], token: int) -> Array:
    """What the decoder reads of an extended id: a word of the source's own is UNKNOWN."""
    table = weights["decoder.embedding.held.table.weight"]
    return table[token if token < len(table) else UNKNOWN]


def score(weights: Mapping[str, Array], s: Array, h: Array, c: Array) -> float:
    """Equation 1, vᵀ tanh(W_h h + W_s s + b), and with coverage equation 11, whose w_c c is V c for a vector c."""
    at = f"{LOOK}.score"
    inner = weights[f"{at}.key.weight"] @ h + weights[f"{at}.query.weight"] @ s + weights[f"{at}.query.bias"]
    if len(c):
        inner = inner + weights[f"{LOOK}.term.weight"] @ c
    return float(weights[f"{at}.vector.weight"][0] @ np.tanh(inner))


def generated(weights: Mapping[str, Array], s: Array, context: Array) -> Array:
    """Equation 4: P_vocab = softmax(V'(V [s; h*] + b) + b')."""
    inner = weights["decoder.readout.linear.weight"] @ np.concatenate([s, context]) + weights["decoder.readout.linear.bias"]
    return np.exp(log_softmax(weights["head.generate.project.weight"] @ inner + weights["head.generate.project.bias"]))


def gate(weights: Mapping[str, Array], context: Array, s: Array, x: Array) -> float:
    """Equation 8: p_gen = σ(w_h* h* + w_s s + w_x x + b)."""
    w, b = weights["decoder.gate.linear.weight"][0], weights["decoder.gate.linear.bias"][0]
    return float(sigmoid(w @ np.concatenate([context, s, x]) + b))


def mixture(p_vocabulary: Array, p_gen: float, alpha: Array, symbols: Sequence[int], extra: int) -> list[float]:
    """Equation 9: p_gen P_vocab(w) + (1 - p_gen) Σ_{i: w_i = w} α_i, for each of the V + extra words."""
    p = [0.0] * (len(p_vocabulary) + extra)
    for word, probability in enumerate(p_vocabulary):
        p[word] += p_gen * probability
    for word, weight in zip(symbols, alpha, strict=True):
        p[word] += (1 - p_gen) * weight
    return p
