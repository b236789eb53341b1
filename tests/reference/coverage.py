"""Log-probabilities of the rungs with coverage, one source position and one step at a time. Knows the names of weights.

The coverage of a step holds the looks before it: it enters the scores first, and the step's own weights enter it afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eyeline.config_models import BahdanauSettings, LuongSettings
from eyeline.contracts import Source

from . import attention
from .cells import Array, attentional, log_softmax, sigmoid
from .models import bridge, deep_output, encode, move

Settings = BahdanauSettings | LuongSettings
LOOK = "decoder.attention"
FERTILITY = 2.0  # N of Tu et al. 2016
REACH = 2  # positions to either side that `location` knows of


def log_probabilities(
    settings: Settings, weights: Mapping[str, Array], source: Source, inputs: Sequence[int]
) -> tuple[Array, Array]:
    """log p(· | inputs[:t+1], source) for each t, [T, V], and the attention [T, S]."""
    states, finals = encode(settings, weights, "encoder", source.ids[0].tolist())
    state = bridge(settings, weights, finals)
    covered = [np.zeros(weights[f"{LOOK}.term.weight"].shape[1]) for _ in states]
    fed, answers, looked = np.zeros(settings.decoder_size), [], []
    for token in inputs:
        e = weights["decoder.embedding.table.weight"][token]
        if isinstance(settings, BahdanauSettings):
            query = state[-1][0]
            alpha = look(settings, weights, query, states, covered)
            context = attention.weighted_sum(alpha, np.stack(states))
            h, state = move(settings, weights, np.concatenate([e, context]), state)
            features = deep_output(weights, h, context, e)
        else:
            query, state = move(settings, weights, np.concatenate([e, fed]) if settings.input_feeding else e, state)
            alpha = look(settings, weights, query, states, covered)
            context = attention.weighted_sum(alpha, np.stack(states))
            fed = features = attentional(context, query, weights["decoder.readout.linear.weight"])
        covered = after_a_look(settings, weights, covered, alpha, states, query)
        answers.append(log_softmax(weights["head.project.weight"] @ features + weights["head.project.bias"]))
        looked.append(alpha)
    return np.stack(answers), np.stack(looked)


def look(settings: Settings, weights: Mapping[str, Array], q: Array, states: list[Array], covered: list[Array]) -> Array:
    """The weights [S] of a look from q: each position's score has its own coverage in it."""
    V = weights[f"{LOOK}.term.weight"]
    return attention.softmax(np.array([score(settings, weights, q, h, V @ c) for h, c in zip(states, covered, strict=True)]))


def score(settings: Settings, weights: Mapping[str, Array], q: Array, h: Array, term: Array) -> Array:
    """Tu et al. 2016, section 3.2, and See et al. 2017, equation 11: the term is inside the tanh. Without one: qᵀ(k + term)."""
    at = f"{LOOK}.score"
    if isinstance(settings, BahdanauSettings):
        inner = weights[f"{at}.query.weight"] @ q + weights[f"{at}.query.bias"] + weights[f"{at}.key.weight"] @ h + term
        return weights[f"{at}.vector.weight"][0] @ np.tanh(inner)
    if settings.score == "concat":
        inner = weights[f"{at}.mix.weight"] @ np.concatenate([q, h]) + term
        return weights[f"{at}.vector.weight"][0] @ np.tanh(inner)
    key = h if settings.score in ("dot", "scaled-dot") else weights[f"{at}.key.weight"] @ h
    query = weights[f"{at}.query.weight"] @ q if settings.score == "projected-dot" else q
    scale = len(key) ** 0.5 if settings.score in ("scaled-dot", "projected-dot") else 1.0
    return query @ (key + term) / scale


def after_a_look(
    settings: Settings, weights: Mapping[str, Array], covered: list[Array], looked: Array, states: list[Array], q: Array
) -> list[Array]:
    """The coverage of each position after a look with the weights `looked` [S] from q."""
    before = zip(covered, states, strict=True)
    return [after(settings, weights, c, looked, j, h, q) for j, (c, h) in enumerate(before)]


def after(settings: Settings, weights: Mapping[str, Array], c: Array, looked: Array, j: int, h: Array, q: Array) -> Array:
    """Coverage of position j after a look: Σ α; Σ α / Φ with Φ = N σ(U h); Σ α and the α of the positions around it; or a GRU
    that reads α, h and the query."""
    at, alpha = f"{LOOK}.coverage", looked[j]
    if settings.coverage == "location":
        around = [looked[at] if 0 <= at < len(looked) else 0.0 for at in range(j - REACH, j + REACH + 1)]
        return np.array([c[0] + alpha, *around])
    if settings.coverage == "sum":
        return c + alpha
    if settings.coverage == "fertility":
        return c + alpha / (FERTILITY * sigmoid(weights[f"{at}.fertility.weight"] @ h))
    W = np.concatenate([weights[f"{at}.{name}.weight"] for name in ("look", "key", "query")], axis=1)
    x = W @ np.concatenate([[alpha], h, q]) + weights[f"{at}.key.bias"]
    u = weights[f"{at}.before.weight"] @ c + weights[f"{at}.before.bias"]
    n = len(c)
    reset, update = sigmoid(x[:n] + u[:n]), sigmoid(x[n : 2 * n] + u[n : 2 * n])
    new = np.tanh(x[2 * n :] + reset * u[2 * n :])
    return update * c + (1 - update) * new
