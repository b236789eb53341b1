"""Models without a model: fixed log-probabilities by prefix, and a tiny random recurrent network. They keep the contracts only.

Both watch over the seam: a state, a memory and a source that do not belong together fail an assertion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from eyeline.contracts import BEGIN, END, Along, Hypothesis, Rows, Source, Step, select

A, B, C = 4, 5, 6
Table = Callable[[tuple[int, ...]], Mapping[int, float]]  # prefix (without BEGIN) -> probability of each id


def sources(*rows: Sequence[int], width: int = 0, garbage: int = 0) -> Source:
    """A batch of sources; END is added to each, `garbage` fills what lies beyond."""
    width = max(width, *(len(row) + 1 for row in rows))
    ids = [[*row, END] + [garbage] * (width - len(row) - 1) for row in rows]
    return Source(torch.tensor(ids), torch.tensor([len(row) + 1 for row in rows]))


# ---- fixed tables ----


@dataclass(frozen=True)
class Names:
    """A memory: the first id of each source, which names its table, and the lengths."""

    name: Tensor  # [N]
    hidden: Tensor  # [N, S]

    @property
    def mask(self) -> Tensor:
        return self.hidden

    def select(self, rows: Tensor) -> Names:
        return select(self, rows)


@dataclass(frozen=True)
class Prefix:
    """A state: everything said so far, BEGIN first, and whose it is."""

    name: Tensor  # [R]
    said: Tensor  # [R, t]

    def select(self, rows: Tensor) -> Prefix:
        return select(self, rows)


def gaze(prefix: Sequence[int], length: int) -> list[float]:
    """Where a fake looks after `prefix`: weights over `length` positions that tell prefixes apart."""
    raw = [1.0 + (7 * sum((i + 2) * token for i, token in enumerate(prefix)) + 3 * s) % 11 for s in range(length)]
    return [value / sum(raw) for value in raw]


class TableDecoder:
    """Its features are the prefix's number in `prefixes`, so that the head can look its table up."""

    def __init__(self) -> None:
        self.prefixes: list[tuple[int, tuple[int, ...]]] = []
        self.rows_stepped: list[int] = []

    def start(self, memory: Names) -> Prefix:
        return Prefix(memory.name, torch.empty(len(memory.name), 0, dtype=torch.long))

    def step(self, token: Tensor, state: Prefix, memory: Names) -> tuple[Step, Prefix]:
        R, N = len(token), len(memory.name)
        assert R % N == 0, "every source has as many hypotheses as the others"
        self.rows_stepped.append(R)
        assert torch.equal(state.name, memory.name.repeat_interleave(R // N)), "row n·K + k reads memory row n"
        said = torch.cat([state.said, token[:, None]], 1)
        S = memory.hidden.shape[1]
        numbers, rows = [], []
        for r, prefix in enumerate(said.tolist()):
            length = S - int(memory.hidden[r // (R // N)].sum())
            numbers.append(float(len(self.prefixes)))
            self.prefixes.append((int(state.name[r]), tuple(prefix[1:])))
            rows.append(gaze(prefix[1:], length) + [0.0] * (S - length))
        return Step(torch.tensor(numbers, dtype=torch.float64)[:, None], {"source": torch.tensor(rows)}), Prefix(state.name, said)

    def __call__(self, tokens: Tensor, memory: Names) -> Step:
        state, steps = self.start(memory), []
        for t in range(tokens.shape[1]):
            step, state = self.step(tokens[:, t], state, memory)
            steps.append(step)
        return Step(
            torch.stack([s.features for s in steps], 1), {"source": torch.stack([s.attention["source"] for s in steps], 1)}
        )


class TableModel:
    """Answers from `tables[first source id](prefix)`; ids that a table does not name are impossible."""

    def __init__(self, tables: Mapping[int, Table] | Table, vocabulary: int = 6) -> None:
        self.tables, self.vocabulary = tables, vocabulary
        self.decoder = TableDecoder()

    def encode(self, source: Source) -> Names:
        return Names(source.ids[:, 0], source.mask)

    def head(self, step: Step, source: Source) -> Tensor:
        numbers = step.features[..., 0].long()
        flat = numbers.flatten().tolist()
        owners = source.ids[:, 0].repeat_interleave(len(flat) // len(source.ids)).tolist()
        answers = torch.full((len(flat), self.vocabulary), -math.inf)
        for r, (number, owner) in enumerate(zip(flat, owners, strict=True)):
            name, prefix = self.decoder.prefixes[number]
            assert name == owner, "the head is given the sources of its rows"
            table = self.tables if callable(self.tables) else self.tables[name]
            for token, probability in table(prefix).items():
                answers[r, token] = math.log(probability) if probability > 0 else -math.inf
        return answers.view(*numbers.shape, self.vocabulary)


def toy(prefix: tuple[int, ...]) -> Mapping[int, float]:
    """Scorer T of the cases."""
    if prefix == ():
        return {A: 0.35, B: 0.25, END: 0.40}
    if prefix in ((A,), (A, A)):
        return {A: 0.95, B: 0.02, END: 0.03}
    if prefix == (A, A, A):
        return {A: 0.03, B: 0.02, END: 0.95}
    return {A: 0.30, B: 0.30, END: 0.40}


# ---- a tiny recurrent network ----


@dataclass(frozen=True)
class Keys(Rows):
    keys: Annotated[Tensor, Along(1)]  # [N, S, D]
    hidden: Annotated[Tensor, Along(1, beyond=True)]  # [N, S] True where hidden

    @property
    def mask(self) -> Tensor:
        return self.hidden


@dataclass(frozen=True)
class Recurrent(Rows):
    cell: Tensor  # [R, D]
    coverage: Annotated[Tensor, Along(1)]  # [R, S] what was looked at so far


class TinyDecoder(nn.Module):
    """A GRU that looks at the source by a dot product and away from where it has looked already."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embed, self.cell = nn.Embedding(vocabulary, width), nn.GRUCell(2 * width, width)

    def start(self, memory: Keys) -> Recurrent:
        hidden = memory.hidden[..., None]
        mean = memory.keys.masked_fill(hidden, 0).sum(1) / (~hidden).sum(1)
        return Recurrent(mean, torch.zeros(memory.hidden.shape))

    def step(self, token: Tensor, state: Recurrent, memory: Keys) -> tuple[Step, Recurrent]:
        K = len(token) // len(memory.keys)
        keys, hidden = memory.keys.repeat_interleave(K, 0), memory.hidden.repeat_interleave(K, 0)
        scores = 2 * (keys @ state.cell[..., None])[..., 0] - state.coverage
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1)  # [R, S]
        context = (weights[:, None] @ keys.masked_fill(hidden[..., None], 0))[:, 0]
        cell = self.cell(torch.cat([self.embed(token), context], -1), state.cell)
        return Step(torch.cat([cell, context], -1), {"source": weights}), Recurrent(cell, state.coverage + weights)

    def forward(self, tokens: Tensor, memory: Keys) -> Step:
        state, steps = self.start(memory), []
        for t in range(tokens.shape[1]):
            step, state = self.step(tokens[:, t], state, memory)
            steps.append(step)
        return Step(
            torch.stack([s.features for s in steps], 1), {"source": torch.stack([s.attention["source"] for s in steps], 1)}
        )


class TinyModel(nn.Module):
    """Random weights, sharp enough that its answers are not near-ties."""

    def __init__(self, seed: int = 0, vocabulary: int = 12, width: int = 16, sharpness: float = 3.0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.embed, self.decoder = nn.Embedding(vocabulary, width), TinyDecoder(vocabulary, width)
        self.project = nn.Linear(2 * width, vocabulary)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=sharpness / math.sqrt(width), generator=generator)
            parameter.requires_grad_(False)

    def encode(self, source: Source) -> Keys:
        place = torch.arange(source.ids.shape[1])[:, None] / 7.0
        return Keys(self.embed(source.ids) + place.sin(), source.mask)

    def head(self, step: Step, source: Source) -> Tensor:
        return self.project(step.features).log_softmax(-1)


# ---- comparing ----


def forced(answers: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """inputs, outputs and mask that score the given ids by teacher forcing; the padding holds wild ids."""
    T = max(1, *(len(ids) for ids in answers))
    inputs = torch.tensor([([BEGIN, *ids[:-1]] + [A] * T)[:T] for ids in answers])
    outputs = torch.tensor([([*ids] + [999] * T)[:T] for ids in answers])
    mask = torch.arange(T) >= torch.tensor([len(ids) for ids in answers])[:, None]
    return inputs, outputs, mask


def assert_same(left: Hypothesis, right: Hypothesis, tolerance: float = 1e-5) -> None:
    """Equal ids and marks; scores and attention within `tolerance`."""
    assert left.ids == right.ids
    assert left.finished == right.finished
    assert torch.allclose(torch.tensor(left.token_scores), torch.tensor(right.token_scores), atol=tolerance)
    assert abs(left.score - right.score) < tolerance
    assert abs(left.normalized_score - right.normalized_score) < tolerance
    assert left.attention.keys() == right.attention.keys()
    for name, weights in left.attention.items():
        assert weights.shape == right.attention[name].shape
        assert torch.allclose(weights, right.attention[name], atol=tolerance)


def assert_sound(answers: Sequence[Hypothesis], columns: int) -> None:
    """What holds for every n-best list: distinct, finished first, best first, finite, and made of its parts."""
    assert len({tuple(i for i in answer.ids if i != END) for answer in answers}) == len(answers)
    keys = [(not answer.finished, -answer.normalized_score) for answer in answers]
    assert keys == sorted(keys)
    for answer in answers:
        assert all(-math.inf < value <= 0 for value in answer.token_scores)
        assert len(answer.token_scores) == len(answer.ids)
        assert math.isclose(answer.score, sum(answer.token_scores), abs_tol=1e-9)
        assert answer.finished == (END in answer.ids)
        assert END not in answer.ids[:-1]
        assert not {0, BEGIN} & set(answer.ids)
        for weights in answer.attention.values():
            assert weights.shape == (len(answer.ids), columns)
