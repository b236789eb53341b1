"""The Transformer's decoder that generates or copies: the gate of See et al. 2017 over features that look at the source.

Knows where copying looks and how likely it is; not heads, and not the words that are copied.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn

from eyeline.contracts import Rows, Step
from eyeline.nn.attention import Attention, Keys
from eyeline.nn.readout import Gate
from eyeline.nn.transformer import Encoded, LayerKeys, LayerStates, TransformerDecoder


class CopyLook(nn.Module, ABC):
    """Where copying looks."""

    @abstractmethod
    def remember(self, encoded: Encoded) -> Keys:
        """What it needs of a batch of sources, computed once."""

    @abstractmethod
    def forward(self, step: Step, keys: Keys) -> tuple[Tensor, Tensor]:
        """context [R, T, D] and weights [R, T, S] for a step of R × T."""


class OwnLook(CopyLook):
    """An attention of its own on top of the decoder, trained by nothing but what is copied."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention

    def remember(self, encoded: Encoded) -> Keys:
        return self.attention.remember(encoded.states, encoded.mask)

    def forward(self, step: Step, keys: Keys) -> tuple[Tensor, Tensor]:
        return self.attention.look(step.features, keys)


class ShownLook(CopyLook):
    """The attention that the decoder shows, of a head that also serves its layer."""

    def remember(self, encoded: Encoded) -> Keys:
        values = encoded.states.masked_fill(encoded.mask[..., None], 0.0)
        return Keys(values, values, encoded.mask)

    def forward(self, step: Step, keys: Keys) -> tuple[Tensor, Tensor]:
        weights = step.attention["source"]  # [R, T, S]
        folded = weights.reshape(keys.mask.shape[0], -1, weights.shape[-1])  # [N, K·T, S]
        return (folded @ keys.values).view(*weights.shape[:2], -1), weights


@dataclass(frozen=True)
class CopyMemory(Rows):
    """A source as each layer's keys and values, and what copying needs of it."""

    layers: LayerKeys
    copying: Keys

    @property
    def mask(self) -> Tensor:
        return self.layers.mask


class GatedTransformerDecoder(nn.Module):
    """A decoder that also says where it copies from, and how likely it generates.

    Args:
        gate: from context, features and the embedded input to the logit of generating (See et al. 2017, equation 8).
    """

    def __init__(self, decoder: TransformerDecoder, look: CopyLook, gate: Gate) -> None:
        super().__init__()
        self.decoder, self.look, self.gate = decoder, look, gate

    def remember(self, encoded: Encoded) -> CopyMemory:
        return CopyMemory(self.decoder.remember(encoded), self.look.remember(encoded))

    def start(self, memory: CopyMemory) -> LayerStates:
        return self.decoder.start(memory.layers)

    def step(self, token: Tensor, state: LayerStates, memory: CopyMemory) -> tuple[Step, LayerStates]:
        step, state = self.advance(token[:, None], state, memory)
        return step.at((slice(None), 0)), state

    def forward(self, tokens: Tensor, memory: CopyMemory) -> Step:
        return self.advance(tokens, self.start(memory), memory)[0]

    def advance(self, tokens: Tensor, state: LayerStates, memory: CopyMemory) -> tuple[Step, LayerStates]:
        """The steps after each of `tokens` [R, T], all at once, and the state after the last."""
        embedded = self.decoder.embedding(tokens, state.position)
        step, after = self.decoder.through(embedded, state, memory.layers, self.decoder.real(tokens, memory.layers))
        context, weights = self.look(step, memory.copying)
        return Step(step.features, {"source": weights}, self.gate(context, step.features, embedded)), after

    def maps(self, tokens: Tensor, memory: CopyMemory) -> dict[str, Tensor]:
        """Where each head of each layer looks; see `TransformerDecoder.maps`."""
        return self.decoder.maps(tokens, memory.layers)
