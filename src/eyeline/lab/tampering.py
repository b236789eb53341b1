"""Attention that is changed on its way: put in the place of a model's own, it looks and then mixes by other weights.

Knows attention and multi-head attention; not why anyone would change their weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from torch import Tensor, nn

from eyeline.contracts import Along, Rows, Source
from eyeline.data.corpus import Batch
from eyeline.ladder import Seq2Seq
from eyeline.nn.multihead import HeadKeys, MultiHeadAttention, join_heads
from eyeline.nn.unpadded import Unpadded

# From weights [N, ..., S], what is hidden [N, 1…, S] and a number that tells where, weights of the same shape.
Change = Callable[[Tensor, Tensor, int], Tensor]


@dataclass(frozen=True)
class Looks(Rows):
    """How many looks there were, and what the attention remembers of them."""

    number: int
    looked: Annotated[Any, Along(1)]


class TamperedLook(nn.Module):
    """An attention of a recurrent decoder with other weights. What it remembers from look to look is of the weights it had."""

    form = None  # it is computed look by look

    def __init__(self, attention: Any, change: Change) -> None:
        super().__init__()
        self.attention, self.change = attention, change

    def remember(self, states: Tensor, mask: Tensor) -> Any:
        return self.attention.remember(states, mask)

    def start(self, keys: Any) -> Looks:
        return Looks(0, self.attention.start(keys))

    def attend(self, query: Tensor, keys: Any, looked: Any) -> tuple[Tensor, Tensor, Any]:
        before = 0 if looked is None else looked.number
        _, weights, after = self.attention.attend(query, keys, None if looked is None else looked.looked)  # [R, T, S]
        weights = self.change(weights, keys.mask[:, None], before)
        values = keys.values if hasattr(keys, "values") else keys.keys.values
        return weights @ values, weights, Looks(before + query.shape[1], after)

    def look(self, query: Tensor, keys: Any) -> tuple[Tensor, Tensor]:
        """Where each look is apart."""
        context, weights, _ = self.attend(query, keys, None)
        return context, weights


class TamperedHeads(nn.Module):
    """Multi-head attention with other weights in each head."""

    def __init__(self, attention: MultiHeadAttention, change: Change, layer: int) -> None:
        super().__init__()
        self.attention, self.change, self.layer = attention, change, layer

    def remember(self, states: Tensor, mask: Tensor, real: Unpadded | None = None) -> HeadKeys:
        return self.attention.remember(states, mask, real)

    def forward(self, query: Tensor, keys: HeadKeys, real: Unpadded | None = None) -> Tensor:
        assert real is None, "nothing is trained with other weights"
        weights = self.weights(query, keys)  # [N, H, T, S]: teacher forcing, one row a source
        return self.attention.output(join_heads(weights @ keys.values))  # type: ignore[no-any-return]

    def weights(self, query: Tensor, keys: HeadKeys) -> Tensor:
        return self.change(self.attention.weights(query, keys), keys.mask[:, None, None], self.layer)


def tampered(model: Seq2Seq, change: Change) -> Seq2Seq:
    """A copy of the model that shares its weights, and whose every attention to the source goes through `change`.

    For one row a source. The number that `change` is given is, for weights [N, T, S], that of the first of the T looks, from 0;
    for weights [N, H, T, S] that of the layer.
    """
    memo: dict[int, Any] = {id(parameter): parameter for parameter in model.parameters()}
    other = copy.deepcopy(model, memo)
    decoder = other.decoder
    layers = getattr(getattr(decoder, "decoder", decoder), "layers", None)  # the decoder that copies has one within
    if layers is None:
        decoder.attention = TamperedLook(decoder.attention, change)
        return other
    for number, layer in enumerate(layers):
        layer.cross = TamperedHeads(layer.cross, change, number)
    own = getattr(decoder, "look", None)
    if own is not None and hasattr(own, "attention"):
        own.attention = TamperedLook(own.attention, change)
    return other


def read(batch: Batch) -> tuple[Source, Tensor]:
    """What a model reads of a batch."""
    return batch.source, batch.inputs


def predictions(model: Seq2Seq, source: Source, inputs: Tensor) -> Tensor:
    """[B, T, X] probabilities after each of `inputs` [B, T]."""
    probabilities: Tensor = model.head(model(source, inputs), source).exp()
    return probabilities


def variation(p: Tensor, q: Tensor) -> Tensor:
    """Total variation distance along the last dimension, 0 to 1."""
    distance: Tensor = 0.5 * (p - q).abs().sum(-1)
    return distance
