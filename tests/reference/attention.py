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


def projected_dot(query: Array, keys: Array, W_Q: Array, W_K: Array) -> Array:
    """One head of Vaswani et al. 2017, section 3.2.2: (W_Q q)ᵀ (W_K kⱼ) / √r; W_Q [r, Dq], W_K [r, Dk]."""
    return scaled_dot(W_Q @ query, np.array([W_K @ key for key in keys]))


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


def within(scores: Array, centre: float, window: int) -> Array:
    """Luong et al. 2015, section 3.2: softmax over the positions j with |j − p| ≤ D, zero elsewhere."""
    seen = [j for j in range(len(scores)) if centre - window <= j <= centre + window]
    weights = np.zeros(len(scores))
    weights[seen] = softmax(scores[seen])
    return weights


def predicted(query: Array, W: Array, v: Array, length: int) -> float:
    """Luong et al. 2015, equation 9: p = S · sigmoid(vᵀ tanh(W q))."""
    return float(length / (1 + np.exp(-v @ np.tanh(W @ query))))


def favoured(weights: Array, centre: float, window: int) -> Array:
    """Luong et al. 2015, equation 10: aⱼ · exp(−(j − p)² / 2σ²) with σ = D / 2."""
    sigma = window / 2
    return np.array([weight * np.exp(-((j - centre) ** 2) / (2 * sigma**2)) for j, weight in enumerate(weights)])
