"""Scores, softmax and weighted sum of one query over one source, as the papers write them. Knows vectors; not batches, not masks.

Shapes: query [Dq], keys [S, Dk], scores and weights [S], context [Dk]; all float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def additive(query: Array, keys: Array, W: Array, b: Array, U: Array, v: Array) -> Array:
    """Bahdanau et al. 2015, appendix A.1.2: vᵀ tanh(W q + b + U kⱼ); W [A, Dq], U [A, Dk], b and v [A]."""
    return np.array([v @ np.tanh(W @ query + b + U @ key) for key in keys])


def concat(query: Array, keys: Array, W: Array, v: Array) -> Array:
    """Luong et al. 2015, equation 8: vᵀ tanh(W [q; kⱼ]); W [A, Dq + Dk], v [A]."""
    return np.array([v @ np.tanh(W @ np.concatenate([query, key])) for key in keys])


def dot(query: Array, keys: Array) -> Array:
    """Luong et al. 2015, equation 8: qᵀ kⱼ."""
    return np.array([sum(q * k for q, k in zip(query, key, strict=True)) for key in keys])


def general(query: Array, keys: Array, W: Array) -> Array:
    """Luong et al. 2015, equation 8: qᵀ W kⱼ; W [Dq, Dk]."""
    return np.array([query @ (W @ key) for key in keys])


def scaled_dot(query: Array, keys: Array) -> Array:
    """Vaswani et al. 2017, equation 1: qᵀ kⱼ / √d."""
    return dot(query, keys) / len(query) ** 0.5


def softmax(scores: Array) -> Array:
    """exp(eⱼ) / Σₖ exp(eₖ), shifted by the largest so that nothing overflows."""
    powers = [np.exp(score - max(scores)) for score in scores]
    return np.array([power / sum(powers) for power in powers])


def weighted_sum(weights: Array, values: Array) -> Array:
    """Σⱼ αⱼ vⱼ: the context vector."""
    context = np.zeros(values.shape[1])
    for weight, value in zip(weights, values, strict=True):
        context = context + weight * value
    return context
