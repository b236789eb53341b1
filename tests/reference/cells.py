"""Recurrent cells and the small layers around them, one step of one example. Knows vectors only; all float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@dataclass(frozen=True)
class Weights:
    """Of one cell, its gates stacked in PyTorch's order."""

    W: Array  # [G·D, I] reads the input
    U: Array  # [G·D, D] reads the state
    b: Array  # [G·D]
    c: Array  # [G·D] the bias beside U; it matters apart from b only in the GRU

    def gate(self, number: int, gates: int) -> Weights:
        """The block of one gate."""
        size = self.U.shape[1]
        assert len(self.W) == gates * size
        rows = slice(number * size, (number + 1) * size)
        return Weights(self.W[rows], self.U[rows], self.b[rows], self.c[rows])

    def of(self, x: Array, h: Array) -> Array:
        """W x + U h + biases."""
        return self.W @ x + self.b + self.U @ h + self.c


def rnn(x: Array, state: Array, w: Weights) -> Array:
    """Elman 1990 with tanh: h = tanh(W x + U h₋ + b). State [1, D]."""
    return np.tanh(w.of(x, state[0]))[None]


def lstm(x: Array, state: Array, w: Weights) -> Array:
    """Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000, without peepholes. State [2, D]: h and c."""
    h, c = state
    keep_new, forget, output = (sigmoid(w.gate(number, 4).of(x, h)) for number in (0, 1, 3))
    candidate = np.tanh(w.gate(2, 4).of(x, h))
    c = forget * c + keep_new * candidate
    return np.stack([output * np.tanh(c), c])


def gru(x: Array, state: Array, w: Weights) -> Array:
    """PyTorch's GRU: the reset gate multiplies U h₋ + c, after the product. State [1, D]."""
    (h,) = state
    reset, update = (sigmoid(w.gate(number, 3).of(x, h)) for number in (0, 1))
    new = w.gate(2, 3)
    candidate = np.tanh(new.W @ x + new.b + reset * (new.U @ h + new.c))
    return (update * h + (1 - update) * candidate)[None]


def gru_of_cho(x: Array, state: Array, w: Weights) -> Array:
    """Cho et al. 2014, equations 5 to 8: the reset gate multiplies h₋, before the product. State [1, D]."""
    (h,) = state
    reset, update = (sigmoid(w.gate(number, 3).of(x, h)) for number in (0, 1))
    new = w.gate(2, 3)
    candidate = np.tanh(new.W @ x + new.b + new.U @ (reset * h) + new.c)
    return (update * h + (1 - update) * candidate)[None]


CELLS = {"rnn": rnn, "lstm": lstm, "gru": gru}


def maxout(x: Array, W: Array, b: Array) -> Array:
    """max(t₂ⱼ₋₁, t₂ⱼ) of t = W x + b: Bahdanau et al. 2015, A.2.2 (pieces counted from 1 there)."""
    t = W @ x + b
    return np.array([max(t[2 * j], t[2 * j + 1]) for j in range(len(t) // 2)])


def attentional(context: Array, h: Array, W: Array) -> Array:
    """tanh(W [c; h]): Luong et al. 2015, equation 5."""
    return np.tanh(W @ np.concatenate([context, h]))


def log_softmax(x: Array) -> Array:
    return x - x.max() - np.log(np.exp(x - x.max()).sum())
