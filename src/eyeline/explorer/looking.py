"""What a model does at each step of one target, seen from inside. Knows models and their parts; no text.

Nobody notices: hooks stand on a copy of the model that shares its weights, so that other threads see nothing of them, and a hook
that only reads changes no result. Every target is stepped through, as a search does it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, PAD, Memory, Source
from eyeline.ladder import Seq2Seq
from eyeline.nn import CoveredAttention, MultiHeadAttention, Score
from eyeline.nn.attention import Keys, masked_softmax
from eyeline.nn.coverage import CoveredKeys
from eyeline.nn.decoders import AttentionMemory
from eyeline.nn.multihead import split_heads
from eyeline.nn.transformer_copying import CopyMemory
from eyeline.search.candidates import best_allowed

LIKELIEST = 5  # candidates for the next symbol


@dataclass(frozen=True)
class Look:
    """One attention over the source, at all T steps of a target."""

    layer: int | None  # of the decoder, from 0; None for an attention that is no head of a layer
    head: int | None  # of the layer, from 0; None for the mean of them all
    weights: Tensor  # [T, S]
    scores: Tensor | None = None  # [T, S] before the softmax; a mean of heads has none
    values: Tensor | None = None  # [S, C] what the weights sum up to the context; None where there is no one context


@dataclass(frozen=True)
class Said:
    """What a model says after the tokens before a step."""

    log_prob: float  # of the token that comes
    candidates: list[tuple[int, float]]  # the likeliest ids with their log-probabilities, best first
    generating: float | None  # p_gen; None where nothing is copied
    looked: Tensor | None  # [S] where copying or pointing looks; None without attention


@dataclass(frozen=True)
class Observed:
    """A target of T tokens, step by step."""

    said: list[Said]  # T
    looks: list[Look]  # the model's own first, then layer by layer its heads and behind them their mean
    coverage: Tensor | None  # [T, S] what coverage remembers before each step, the length of it where it is a vector


@dataclass
class _Seen:
    """What hooks have read."""

    scores: list[Tensor] = field(default_factory=list)  # one a step [S]
    heads: list[list[tuple[Tensor, Tensor]]] = field(default_factory=list)  # one a layer, one a step: scores and weights [H, S]
    values: list[Tensor] = field(default_factory=list)  # one a layer: [H, S, E]


def observe(model: Seq2Seq, source: Source, target: Sequence[int]) -> Observed:
    """Steps through `target`, the ids of T outputs, END included where it has one.

    Args:
        source: of one sequence.
    """
    twin, seen = _watched(model)
    said, weights, coverage = [], [], []
    covers = isinstance(getattr(twin.decoder, "attention", None), CoveredAttention)
    with torch.inference_mode():
        memory = twin.encode(source)
        state = twin.decoder.start(memory)
        for before, token in zip([BEGIN, *target], target, strict=False):
            if covers:
                coverage.append(twin.decoder.attention.coverage.amount(state.looked[0]).float().cpu())
            step, state = twin.decoder.step(torch.tensor([before], device=source.ids.device), state, memory)
            looked = step.attention["source"][0].float().cpu() if "source" in step.attention else None
            gate = None if step.gate is None else float(step.gate.float().sigmoid())
            said.append(_said(twin.head(step, source), token, gate, looked))
            if looked is not None:
                weights.append(looked)
    looks = [*_own(seen, weights, memory), *_of_layers(seen)]
    return Observed(said, looks, torch.stack(coverage) if coverage else None)


def _said(log_probs: Tensor, token: int, gate: float | None, looked: Tensor | None) -> Said:
    values, ids = best_allowed(log_probs, LIKELIEST, [PAD, BEGIN])
    found = [(number, value) for number, value in zip(ids[0].tolist(), values[0].tolist(), strict=True) if value > -torch.inf]
    return Said(float(log_probs[0, token]), found[:LIKELIEST], gate, looked)


def _watched(model: Seq2Seq) -> tuple[Seq2Seq, _Seen]:
    """A copy of the model that shares its weights, and what its hooks are going to see."""
    shared = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    twin, seen = copy.deepcopy(model, shared), _Seen()
    for module in twin.decoder.modules():
        if isinstance(module, Score):
            module.register_forward_hook(lambda _, inputs, scores: seen.scores.append(scores[0, 0].float().cpu()))
        elif isinstance(module, MultiHeadAttention):
            steps: list[tuple[Tensor, Tensor]] = []
            seen.heads.append(steps)
            module.register_forward_hook(_reader(steps, seen.values, len(seen.heads)))
    return twin, seen


def _reader(steps: list[tuple[Tensor, Tensor]], values: list[Tensor], layers: int) -> Any:
    """A hook that reads what the heads of one layer do."""

    def read(module: MultiHeadAttention, inputs: tuple[Any, ...], _: Tensor) -> None:
        query, keys = inputs[:2]
        (queries,) = split_heads(module.query(query), module.heads)  # [1, H, 1, E]
        scores = queries @ keys.keys.transpose(2, 3) * module.width**-0.5  # [1, H, 1, S]
        weights = masked_softmax(scores, keys.mask[:, None, None])
        steps.append((scores[0, :, 0].float().cpu(), weights[0, :, 0].float().cpu()))
        if len(values) < layers:
            values.append(keys.values[0].float().cpu())

    return read


def _own(seen: _Seen, weights: list[Tensor], memory: Memory) -> Iterator[Look]:
    """The attention that is no head of a layer, where there is one."""
    if seen.scores and weights:
        yield Look(None, None, torch.stack(weights), torch.stack(seen.scores), _values(memory))


def _values(memory: Memory) -> Tensor | None:
    """[S, C] what the model's own attention sums up: the encoder's states. None where it points and sums up nothing."""
    keys: Any = None
    if isinstance(memory, CopyMemory):
        keys = memory.copying
    elif isinstance(memory, AttentionMemory):
        keys = memory.keys.keys if isinstance(memory.keys, CoveredKeys) else memory.keys
    return keys.values[0].float().cpu() if isinstance(keys, Keys) else None


def _of_layers(seen: _Seen) -> Iterator[Look]:
    """Every head of every layer, and behind those of a layer their mean."""
    for layer, (steps, values) in enumerate(zip(seen.heads, seen.values, strict=False)):
        scores, weights = (torch.stack(each, 1) for each in zip(*steps, strict=True))  # [H, T, S] each
        for head in range(len(weights)):
            yield Look(layer, head, weights[head], scores[head], values[head])
        if len(weights) > 1:
            yield Look(layer, None, weights.mean(0))


def informative(looks: Sequence[Look]) -> Look:
    """Of several looks the one that tells most about which step it is: the mutual information of a step, each as likely as the
    others, and the source position looked at, H(mean of the rows) - mean of H(row).

    It is high where rows are sharp and differ from each other, as those of a head that aligns do, and 0 for a head that always
    looks at the same place or always everywhere.
    """
    return max(looks, key=lambda look: float(_entropy(look.weights.mean(0)) - _entropy(look.weights).mean()))


def _entropy(weights: Tensor) -> Tensor:
    entropy: Tensor = torch.special.entr(weights).sum(-1)
    return entropy
