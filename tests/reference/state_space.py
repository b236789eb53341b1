"""The state-space rung of one source and one target, position by position and channel by channel, from weights alone; float64.

It knows the names that weights have in a state_dict; the sizes of a layer follow from its weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from eyeline.config_models import StateSpaceSettings
from eyeline.contracts import Source

from .cells import Array, log_softmax, sigmoid
from .transformer import layer_norm, linear, look_at_source

Weights = Mapping[str, Array]


def log_probabilities(
    settings: StateSpaceSettings, weights: Weights, source: Source, inputs: Sequence[int]
) -> tuple[Array, Array]:
    """log p(· | inputs[:t+1], source) for each t, [T, V], and the shown cross-attention [T, S]."""
    states = encode(settings, weights, source.ids[0].tolist())
    features, looked = decode(settings, weights, states, inputs)
    return np.stack([log_softmax(linear(weights, "head.project", f)) for f in features]), shown(settings, looked)


def embed(settings: StateSpaceSettings, weights: Weights, side: str, ids: Sequence[int]) -> list[Array]:
    return [weights[f"{side}.embedding.embedding.table.weight"][i] * settings.size**0.5 for i in ids]


def encode(settings: StateSpaceSettings, weights: Weights, ids: Sequence[int]) -> list[Array]:
    stream = embed(settings, weights, "encoder", ids)
    for number in range(settings.encoder_layers):
        name = f"encoder.layers.{number}"
        read = [layer_norm(weights, f"{name}.around.norm", x) for x in stream]
        there = selective(weights, f"{name}.forwards", read)
        back = selective(weights, f"{name}.backwards", read[::-1])[::-1]
        stream = [x + f + b for x, f, b in zip(stream, there, back, strict=True)]
    return [layer_norm(weights, "encoder.norm", x) for x in stream]


def decode(
    settings: StateSpaceSettings, weights: Weights, states: list[Array], inputs: Sequence[int]
) -> tuple[list[Array], list[Array]]:
    """Features of each position, T × [D], and the cross-attention [T, H, S] of each layer."""
    stream, looked = embed(settings, weights, "decoder", inputs), []
    for number in range(settings.decoder_layers):
        name = f"decoder.layers.{number}"
        added = selective(weights, f"{name}.selective", [layer_norm(weights, f"{name}.first.norm", x) for x in stream])
        stream = [x + y for x, y in zip(stream, added, strict=True)]
        found = [
            look_at_source(settings, weights, f"{name}.cross", layer_norm(weights, f"{name}.second.norm", x), states)
            for x in stream
        ]
        stream = [x + vector for x, (vector, _) in zip(stream, found, strict=True)]
        looked.append(np.stack([heads for _, heads in found]))
    return [layer_norm(weights, "decoder.norm", x) for x in stream], looked


def shown(settings: StateSpaceSettings, looked: list[Array]) -> Array:
    """[T, S] from the weights [T, H, S] of each decoder layer."""
    chosen = looked[settings.alignment_layer]
    if settings.alignment_head is not None:
        return chosen[:, settings.alignment_head]
    return np.stack([sum(heads) / len(heads) for heads in chosen])


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def selective(weights: Weights, name: str, xs: list[Array]) -> list[Array]:
    """Gu & Dao 2023, figure 3 and algorithm 2: what the layer says of each of the vectors `xs`, read from first to last."""
    kernel, bias = weights[f"{name}.convolution.weight"], weights[f"{name}.convolution.bias"]  # [W, E], [E]
    A = -np.exp(weights[f"{name}.log_decay"])  # [E, N]
    E, N = A.shape
    projected = [weights[f"{name}.inward.weight"] @ x for x in xs]
    h, outputs = np.zeros((E, N)), []
    for t in range(len(xs)):
        mixed = bias.copy()
        for back in range(len(kernel)):
            if t - back >= 0:
                mixed = mixed + kernel[len(kernel) - 1 - back] * projected[t - back][:E]
        x, z = silu(mixed), projected[t][E:]
        selected = weights[f"{name}.selection.weight"] @ x
        B, C = selected[len(selected) - 2 * N : len(selected) - N], selected[len(selected) - N :]
        delta = np.log(1 + np.exp(linear(weights, f"{name}.step_size", selected[: len(selected) - 2 * N])))
        y = np.zeros(E)
        for e in range(E):
            for n in range(N):
                h[e, n] = math.exp(delta[e] * A[e, n]) * h[e, n] + delta[e] * B[n] * x[e]
                y[e] += C[n] * h[e, n]
        y = (y + weights[f"{name}.skip"] * x) * silu(z)
        outputs.append(weights[f"{name}.outward.weight"] @ y)
    return outputs
