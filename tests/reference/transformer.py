"""The Transformer of one source and one target, position by position and head by head, from weights alone. All float64.

It knows the names that weights have in a state_dict, and the settings that say which equations apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from eyeline.config_models import AttentiveSettings, PointerGeneratorTransformerSettings, TransformerSettings
from eyeline.contracts import UNKNOWN, Source

from . import attention, copying
from .cells import Array, log_softmax, sigmoid

Weights = Mapping[str, Array]
Part = Callable[[list[Array]], list[Array]]
EPSILON = 1e-5  # of PyTorch's layer norm


def log_probabilities(
    settings: TransformerSettings, weights: Weights, source: Source, inputs: Sequence[int]
) -> tuple[Array, Array]:
    """log p(· | inputs[:t+1], source) for each t, [T, V], and the shown cross-attention [T, S]."""
    states = encode(settings, weights, source.ids[0].tolist())
    features, looked = decode(settings, weights, states, inputs)
    return np.stack([log_softmax(linear(weights, "head.project", f)) for f in features]), shown(settings, looked)


def copying_log_probabilities(
    settings: PointerGeneratorTransformerSettings, weights: Weights, source: Source, inputs: Sequence[int]
) -> tuple[Array, Array]:
    """log p(· | inputs[:t+1], source) for each t, [T, V + extra], and where copying looks [T, S].

    See et al. 2017, equations 8 and 9, over the Transformer's features. Copying looks with an attention of its own, one head of
    Vaswani et al. 2017 without biases or values, or as a head of the last layer does.
    """
    assert source.copy_ids is not None
    states = encode(settings, weights, source.ids[0].tolist())
    inner = {name.replace("decoder.decoder.", "decoder.", 1).replace(".held.", "."): w for name, w in weights.items()}
    known = [token if token < len(inner["decoder.embedding.embedding.table.weight"]) else UNKNOWN for token in inputs]
    features, looked = decode(settings, inner, states, known)
    answers, alphas = [], []
    for t, (f, x) in enumerate(zip(features, embed(settings, inner, "decoder", known), strict=True)):
        if settings.copy_head == "learned":
            W_q, W_k = (weights[f"decoder.look.attention.score.{name}.weight"] for name in ("query", "key"))
            alpha = attention.softmax(attention.scaled_dot(W_q @ f, np.stack([W_k @ state for state in states])))
        else:
            alpha = looked[-1][t, settings.copy_head]
        p_gen = copying.gate(weights, attention.weighted_sum(alpha, np.stack(states)), f, x)
        p_vocabulary = np.exp(log_softmax(linear(weights, "head.generate.project", f)))
        p = copying.mixture(p_vocabulary, p_gen, alpha, source.copy_ids[0].tolist(), source.extra)
        answers.append(np.array([np.log(each) if each else -np.inf for each in p]))
        alphas.append(alpha)
    return np.stack(answers), np.stack(alphas)


def shown(settings: TransformerSettings, looked: list[Array]) -> Array:
    """[T, S] from the weights [T, H, S] of each decoder layer."""
    chosen = looked[settings.alignment_layer]
    if settings.alignment_head is not None:
        return chosen[:, settings.alignment_head]
    return np.array([[sum(heads) / len(heads) for heads in row.T] for row in chosen])


def linear(weights: Weights, name: str, x: Array) -> Array:
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def layer_norm(weights: Weights, name: str, x: Array) -> Array:
    """Ba et al. 2016, equation 4."""
    mean = sum(x) / len(x)
    variance = sum((value - mean) ** 2 for value in x) / len(x)
    return (x - mean) / np.sqrt(variance + EPSILON) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def sinusoid(position: int, size: int) -> Array:
    """Vaswani et al. 2017, section 3.5."""
    vector = np.zeros(size)
    for i in range(size):
        angle = position / 10000 ** ((i - i % 2) / size)
        vector[i] = math.cos(angle) if i % 2 else math.sin(angle)
    return vector


def embed(settings: AttentiveSettings, weights: Weights, side: str, ids: Sequence[int]) -> list[Array]:
    """√D times the embedding (section 3.4), and the position."""
    vectors = [weights[f"{side}.embedding.embedding.table.weight"][i] * settings.size**0.5 for i in ids]
    for position in range(len(ids)):
        if settings.positions == "sinusoidal":
            vectors[position] = vectors[position] + sinusoid(position, settings.size)
        elif settings.positions == "learned":
            vectors[position] = vectors[position] + weights[f"{side}.embedding.positions.table"][position]
    return vectors


def encode(settings: AttentiveSettings, weights: Weights, ids: Sequence[int]) -> list[Array]:
    stream = embed(settings, weights, "encoder", ids)
    for number in range(settings.encoder_layers):
        name = f"encoder.layers.{number}"
        stream = residual(settings, weights, f"{name}.first", stream, lambda xs, n=name: look_around(settings, weights, n, xs))
        stream = residual(settings, weights, f"{name}.second", stream, lambda xs, n=name: feedforward(settings, weights, n, xs))
    return last_norm(settings, weights, "encoder.norm", stream)


def decode(
    settings: AttentiveSettings, weights: Weights, states: list[Array], inputs: Sequence[int]
) -> tuple[list[Array], list[Array]]:
    """Features of each position, T × [D], and the cross-attention [T, H, S] of each layer."""
    stream, looked = embed(settings, weights, "decoder", inputs), []
    for number in range(settings.decoder_layers):
        name, seen = f"decoder.layers.{number}", []

        def cross(xs: list[Array], name: str = name, seen: list[Array] = seen) -> list[Array]:
            found = [look_at_source(settings, weights, f"{name}.cross", x, states) for x in xs]
            seen.extend(alpha for _, alpha in found)
            return [vector for vector, _ in found]

        stream = residual(settings, weights, f"{name}.first", stream, lambda xs, n=name: look_back(settings, weights, n, xs))
        stream = residual(settings, weights, f"{name}.second", stream, cross)
        stream = residual(settings, weights, f"{name}.third", stream, lambda xs, n=name: feedforward(settings, weights, n, xs))
        looked.append(np.stack(seen))
    return last_norm(settings, weights, "decoder.norm", stream), looked


def residual(settings: AttentiveSettings, weights: Weights, name: str, stream: list[Array], part: Part) -> list[Array]:
    """Post: LayerNorm(x + Sublayer(x)) (section 3.1). Pre: x + Sublayer(LayerNorm(x)) (Xiong et al. 2020)."""
    if settings.norm == "post":
        return [layer_norm(weights, f"{name}.norm", x + y) for x, y in zip(stream, part(stream), strict=True)]
    normed = [layer_norm(weights, f"{name}.norm", x) for x in stream]
    return [x + y for x, y in zip(stream, part(normed), strict=True)]


def last_norm(settings: AttentiveSettings, weights: Weights, name: str, stream: list[Array]) -> list[Array]:
    return stream if settings.norm == "post" else [layer_norm(weights, name, x) for x in stream]


def gelu(x: float) -> float:
    """x Φ(x): Hendrycks and Gimpel 2016."""
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def feedforward(settings: AttentiveSettings, weights: Weights, name: str, xs: list[Array]) -> list[Array]:
    outputs = []
    for x in xs:
        inner = linear(weights, f"{name}.feedforward.inward", x)
        if settings.activation == "swiglu":  # Shazeer 2020, equation 6
            gate, value = inner[: settings.feedforward_size], inner[settings.feedforward_size :]
            inner = gate * sigmoid(gate) * value
        else:
            inner = np.array([max(0.0, v) if settings.activation == "relu" else gelu(v) for v in inner])
        outputs.append(linear(weights, f"{name}.feedforward.outward", inner))
    return outputs


def part_of(vector: Array, head: int, heads: int) -> Array:
    width = len(vector) // heads
    return vector[head * width : (head + 1) * width]


def turned(settings: AttentiveSettings, vector: Array, position: int) -> Array:
    """Su et al. 2021, equation 15, for rotary positions; else as it was."""
    if settings.positions != "rotary":
        return vector
    result = vector.copy()
    for pair in range(len(vector) // 2):
        angle = position * 10000 ** (-2 * pair / len(vector))
        a, b = vector[2 * pair], vector[2 * pair + 1]
        result[2 * pair] = a * math.cos(angle) - b * math.sin(angle)
        result[2 * pair + 1] = a * math.sin(angle) + b * math.cos(angle)
    return result


def phi(vector: Array) -> Array:
    """Katharopoulos et al. 2020, equation 7: elu(x) + 1."""
    return np.array([x + 1 if x > 0 else math.exp(x) for x in vector])


def weigh(settings: AttentiveSettings, query: Array, keys: list[Array], i: int, columns: list[int], head: int) -> Array:
    """The weights of one head's query at position i over the keys at positions `columns`."""
    if settings.attention == "linear":
        scores = np.array([phi(query) @ phi(key) for key in keys])
        return scores / sum(scores)
    scores = attention.scaled_dot(
        turned(settings, query, i), np.stack([turned(settings, k, j) for k, j in zip(keys, columns, strict=True)])
    )
    if settings.positions == "alibi":
        scores = scores - np.array([2 ** (-8 * (head + 1) / settings.heads) * abs(i - j) for j in columns])
    return attention.softmax(scores)


def look_around(settings: AttentiveSettings, weights: Weights, name: str, xs: list[Array]) -> list[Array]:
    """Self-attention of an encoder: what each position finds."""
    reach = settings.window if settings.attention == "window" else len(xs)
    return look(settings, weights, name, xs, [[j for j in range(len(xs)) if abs(i - j) <= reach] for i in range(len(xs))])


def look_back(settings: AttentiveSettings, weights: Weights, name: str, xs: list[Array]) -> list[Array]:
    """Self-attention of a decoder."""
    reach = settings.window if settings.attention == "window" else len(xs)
    return look(settings, weights, name, xs, [list(range(max(0, i - reach), i + 1)) for i in range(len(xs))])


def look(settings: AttentiveSettings, weights: Weights, name: str, xs: list[Array], seen: list[list[int]]) -> list[Array]:
    """Position i looks at the positions seen[i]."""
    size, outputs = settings.size, []
    projected = [linear(weights, f"{name}.attention.inward", x) for x in xs]
    for i, columns in enumerate(seen):
        found = []
        for head in range(settings.heads):
            query = part_of(projected[i][:size], head, settings.heads)
            keys = [part_of(projected[j][size : 2 * size], head, settings.heads) for j in columns]
            values = np.stack([part_of(projected[j][2 * size :], head, settings.heads) for j in columns])
            found.append(attention.weighted_sum(weigh(settings, query, keys, i, columns, head), values))
        outputs.append(linear(weights, f"{name}.attention.outward", np.concatenate(found)))
    return outputs


def look_at_source(
    settings: AttentiveSettings, weights: Weights, name: str, x: Array, states: list[Array]
) -> tuple[Array, Array]:
    """What all heads find (section 3.2.2), [D], and where they look, [H, S]."""
    query = linear(weights, f"{name}.query", x)
    projected = [linear(weights, f"{name}.keys_and_values", state) for state in states]
    found, alphas = [], []
    for head in range(settings.heads):
        keys = np.stack([part_of(vector[: settings.size], head, settings.heads) for vector in projected])
        values = np.stack([part_of(vector[settings.size :], head, settings.heads) for vector in projected])
        alpha = attention.softmax(attention.scaled_dot(part_of(query, head, settings.heads), keys))
        found.append(attention.weighted_sum(alpha, values))
        alphas.append(alpha)
    return linear(weights, f"{name}.output", np.concatenate(found)), np.stack(alphas)
