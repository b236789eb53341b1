"""The pointer network's log-probabilities of one target given one source, from its weights alone (Vinyals et al. 2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eyeline.config_models import PointerNetworkSettings
from eyeline.contracts import Source

from . import attention
from .cells import Array
from .models import bridge, move, recurrence

BEGIN, END, FIRST = 2, 3, 4


def elements(settings: PointerNetworkSettings, weights: Mapping[str, Array], source: Source) -> list[Array]:
    """What is read at each position: a row of the table; or A x + b of a vector x, and END's own vector at the last position."""
    ids = source.ids[0].tolist()
    if not settings.element_size:
        return [weights["encoder.embedding.symbols.table.weight"][symbol] for symbol in ids]
    assert source.values is not None
    A, b = weights["encoder.embedding.map.weight"], weights["encoder.embedding.map.bias"]
    vectors = source.values[0].double().numpy()
    return [A @ vectors[j] + b for j in range(len(ids) - 1)] + [weights["encoder.embedding.end"]]


def log_probabilities(
    settings: PointerNetworkSettings, weights: Mapping[str, Array], source: Source, inputs: Sequence[int]
) -> tuple[Array, Array]:
    """log p(· | inputs[:t+1], source) for each t, [T, 4 + n], and the pointing distribution [T, n].

    Equation 3: uⱼ = vᵀ tanh(W₁ eⱼ + W₂ d + b), p = softmax(u), with the state d that has read the element pointed at last.
    """
    read = elements(settings, weights, source)
    last = len(read) - 1  # END's position
    states, finals = recurrence(settings, weights, "encoder", read)
    state = bridge(settings, weights, finals)
    score = "decoder.score"
    W2, b = weights[f"{score}.query.weight"], weights[f"{score}.query.bias"]
    W1, v = weights[f"{score}.key.weight"], weights[f"{score}.vector.weight"][0]
    answers, pointed, gone = [], [], set()
    for token in inputs:
        fed = np.zeros(settings.embedding_size)
        if token == BEGIN:
            fed = weights["decoder.begin"]
        elif FIRST <= token <= FIRST + last:
            fed = read[token - FIRST]
            if settings.distinct and token - FIRST != last:
                gone.add(token - FIRST)
        d, state = move(settings, weights, fed, state)
        u = attention.additive(d, np.stack(states), W2, b, W1, v)
        open_ = [j for j in range(len(read)) if j not in gone]
        p = np.zeros(len(read))
        p[open_] = attention.softmax(u[open_])
        answer = np.full(FIRST + len(read), -np.inf)
        answer[END] = np.log(p[last])
        for j in open_:
            if j != last:
                answer[FIRST + j] = np.log(p[j])
        answers.append(answer)
        pointed.append(p)
    return np.stack(answers), np.stack(pointed)
