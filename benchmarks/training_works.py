"""What the training benchmark trains on: a synthetic corpus, models as numbers, and the arithmetic that these need at least.

Needs NumPy alone, so that it runs in the environment of every tool.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FIRST = 4  # ids below are reserved, in every tool that is measured
Pair = tuple[list[int], list[int]]  # of ids from FIRST on, without END


@dataclass(frozen=True)
class Work:
    """A model and how it is fed. Widths are those of eyeline's settings."""

    kind: str  # transformer, additive, luong, luong-fed, bahdanau, pointer-generator; look: additive attention alone
    peers: tuple[str, ...]  # the tools that have such a model
    rounds: int  # that are enough for a median, and few enough for a coffee break
    layers: int = 1
    size: int = 256
    inner: int = 1024  # feed-forward
    heads: int = 4
    embedding: int = 256
    vocabulary: int = 8004
    length: float = 22.5  # of sequences, on average; of a look alone, exactly
    spread: float = 0.6  # of the logarithm of the lengths
    longest: int = 100
    pairs: int = 20_000
    tokens: int = 4096  # in a batch, padding included
    sentences: int = 0  # in a batch, in the place of tokens
    own_batches: bool = False  # a round is an epoch in the batches that a tool makes itself


CHARACTERS = {"size": 512, "embedding": 128, "vocabulary": 60, "length": 9.0, "spread": 0.25, "longest": 25}
MT = ("joeynmt", "huggingface", "yoyodyne")
WORKS = {
    "transformer": Work("transformer", MT, 7, layers=3),
    "transformer-large": Work("transformer", MT[:2], 3, layers=6, size=512, inner=2048, heads=8, embedding=512),
    "bilstm-additive": Work("additive", ("joeynmt",), 9),
    "bilstm-luong": Work("luong", ("joeynmt",), 9),
    "bilstm-luong-fed": Work("luong-fed", ("joeynmt",), 9),
    "bilstm-bahdanau": Work("bahdanau", ("yoyodyne",), 5),
    "characters-pointer-32": Work("pointer-generator", ("yoyodyne",), 25, sentences=32, **CHARACTERS),  # type: ignore[arg-type]
    "characters-pointer-1024": Work("pointer-generator", ("yoyodyne",), 3, sentences=1024, **CHARACTERS),  # type: ignore[arg-type]
    "characters-attentive-32": Work("bahdanau", ("yoyodyne",), 25, sentences=32, **CHARACTERS),  # type: ignore[arg-type]
    "epoch": Work("transformer", ("joeynmt",), 2, layers=3, pairs=2000, own_batches=True),
    "additive-attention": Work("look", ("plain",), 5, length=400, sentences=4),
}


def corpus(work: Work, seed: int = 13) -> list[Pair]:
    """Zipfian symbols in sequences of log-normal length, both sides of like length."""
    chance = np.random.default_rng(seed)
    low, uneven = (3, 0.15) if work.vocabulary < 1000 else (4, 0.2)
    share = 1 / (np.arange(work.vocabulary - FIRST) + 2.7)
    mean = np.log(work.length) - work.spread**2 / 2
    sources = np.clip(np.rint(chance.lognormal(mean, work.spread, work.pairs)), low, work.longest).astype(int)
    uneven_by = chance.lognormal(-(uneven**2) / 2, uneven, work.pairs)
    targets = np.clip(np.rint(sources * uneven_by), low, work.longest).astype(int)
    sides = []
    for lengths in (sources, targets):
        ids = FIRST + chance.choice(len(share), lengths.sum(), p=share / share.sum())
        sides.append([part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])])
    return list(zip(*sides, strict=True))


def batches(work: Work, pairs: list[Pair], seed: int = 7) -> list[list[Pair]]:
    """The same for every tool: like lengths together, full ones alone."""
    order = np.argsort([max(len(source), len(target)) for source, target in pairs], kind="stable")
    made: list[list[Pair]] = [[]]
    for index in order:
        width = 1 + max(map(len, pairs[index]))  # no less than what is in the batch already
        full = len(made[-1]) == work.sentences if work.sentences else width * (len(made[-1]) + 1) > work.tokens
        if full and made[-1]:
            made.append([])
        made[-1].append(pairs[index])
    whole = [batch for batch in made if (len(batch) == work.sentences if work.sentences else tokens(batch) > 0.6 * work.tokens)]
    return [whole[index] for index in np.random.default_rng(seed).permutation(len(whole))]


def tokens(batch: list[Pair]) -> int:
    """Real target tokens, END counted."""
    return sum(len(target) + 1 for _, target in batch)


def flops(work: Work, batch: list[Pair], tool: str) -> int:
    """Of a training step over real tokens: two for a multiplication and an addition, and three times the forward pass.

    Padding, softmax, dropout and the optimiser are not counted: whatever time they take lowers the rate.
    """
    return 3 * sum(forward_flops(work, len(source) + 1, len(target) + 1, tool) for source, target in batch)


def forward_flops(work: Work, S: int, T: int, tool: str) -> int:
    """Of S source and T target positions, forward."""
    count = transformer_flops if work.kind == "transformer" else recurrent_flops
    return count(work, S, T, tool)


def transformer_flops(work: Work, S: int, T: int, tool: str) -> int:
    D, F = work.size, work.inner
    encoder = S * 2 * (4 * D * D + 2 * D * F) + 4 * S * S * D
    decoder = T * 2 * (6 * D * D + 2 * D * F) + S * 4 * D * D + 2 * T * T * D + 4 * T * S * D
    return work.layers * (encoder + decoder) + T * 2 * D * work.vocabulary


def recurrent_flops(work: Work, S: int, T: int, tool: str) -> int:
    """An LSTM both ways below, one LSTM with one look a position above; keys are projected once."""
    D, E, values = work.size, work.embedding, 2 * work.size
    fed = {"luong-fed": D, "bahdanau": values, "pointer-generator": values}.get(work.kind, 0)
    additive = work.kind not in ("luong", "luong-fed")
    cells = S * 2 * 2 * 4 * D * (E + D) + T * 2 * 4 * D * (E + fed + D)
    looks = S * 2 * values * D + T * S * (4 if additive else 2) * D + T * S * 2 * values + (T * 2 * D * D if additive else 0)
    deep = {
        "bahdanau": 2 * (D + values + E) * 2 * D,
        "pointer-generator": 2 * (D + values) * D,
    }  # eyeline's layers before the last
    readout = 2 * (D + values) * D
    if work.kind in deep:
        readout = deep[work.kind] if tool == "eyeline" else 0
    width = D + values if work.kind == "pointer-generator" and tool != "eyeline" else D  # of what the output layer reads
    return cells + looks + T * readout + T * 2 * width * work.vocabulary


def look_flops(work: Work) -> int:
    """Of additive scores over all pairs of positions, their softmax not counted, and the weighted sum of values twice as wide."""
    pairs = work.sentences * int(work.length) ** 2
    return 3 * pairs * (4 * work.size + 2 * 2 * work.size)
