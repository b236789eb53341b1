"""The recurrent decoders. Each knows its parts, its state and its memory; none knows words, search or training.

Bahdanau looks and then steps; Luong steps and then looks; the fixed-vector decoders never look. Where nothing enters the next
step but the token and the recurrent state, all positions of a teacher-forced target are computed at once (`Parallel`); else one
after the other (`Sequential`): by a loop with hand-written derivatives where the parts have them, by `advance` where not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from eyeline.contracts import Along, Memory, Rows, Step
from eyeline.nn.attention import Looking
from eyeline.nn.dropout import Dropout
from eyeline.nn.embedding import Embedding, ExtendedEmbedding
from eyeline.nn.readout import Attentional, Maxout
from eyeline.nn.recurrent import Encoding, Stack
from eyeline.nn.through_time import ThroughTime


@dataclass(frozen=True)
class Hidden(Rows):
    """The state of a decoder that hands on its recurrent state, and what its attention remembers."""

    hidden: Tensor  # [R, L, P, D]
    looked: Annotated[Any, Along(1)] = None  # see `Attention.start`


@dataclass(frozen=True)
class Fed(Rows):
    """The state of a decoder that also hands on what it feeds itself: its last attentional vector, or its last context."""

    hidden: Tensor  # [R, L, P, D]
    feed: Tensor  # [R, F]
    looked: Annotated[Any, Along(1)] = None


@dataclass(frozen=True)
class VectorMemory(Rows):
    """A source as one fixed vector."""

    initial: Tensor  # [N, L, P, D] the decoder's first state
    vector: Tensor  # [N, C] the context of every step
    mask: Annotated[Tensor, Along(1, beyond=True)]  # [N, S], True = hidden


@dataclass(frozen=True)
class AttentionMemory(Rows):
    """A source as all its states."""

    initial: Tensor  # [N, L, P, D] the decoder's first state
    keys: Memory  # what the attention remembers of the source
    projected: Any = None  # see `projected_values.Once`

    @property
    def mask(self) -> Tensor:
        return self.keys.mask


class Begun(Memory, Protocol):
    """A memory that holds the decoder's first state."""

    @property
    def initial(self) -> Tensor:
        """[N, L, P, D]"""
        ...


M = TypeVar("M", bound=Begun)


class Parallel(nn.Module, ABC, Generic[M]):
    """A decoder whose cells wait for nothing but the recurrent state: they run over all positions of a target at once."""

    @abstractmethod
    def advance(self, tokens: Tensor, state: Hidden, memory: M) -> tuple[Step, Hidden]:
        """The steps after each of `tokens` [R, T], and the state after the last."""

    def start(self, memory: M) -> Hidden:
        return Hidden(memory.initial)

    def step(self, token: Tensor, state: Hidden, memory: M) -> tuple[Step, Hidden]:
        step, state = self.advance(token[:, None], state, memory)
        return step.at((slice(None), 0)), state

    def forward(self, tokens: Tensor, memory: M) -> Step:
        return self.advance(tokens, self.start(memory), memory)[0]


S = TypeVar("S", Hidden, Fed)


class Sequential(nn.Module, ABC, Generic[S]):
    """A decoder that needs the result of one position to compute the next."""

    embedding: Embedding | ExtendedEmbedding
    stack: Stack
    attention: Looking

    @abstractmethod
    def start(self, memory: AttentionMemory) -> S: ...

    @abstractmethod
    def advance(self, embedded: Tensor, state: S, memory: AttentionMemory) -> tuple[Step, S]:
        """The step after the symbols embedded in [R, E], and the state after them."""

    def step(self, token: Tensor, state: S, memory: AttentionMemory) -> tuple[Step, S]:
        return self.advance(self.embedding(token), state, memory)

    @abstractmethod
    def through_time(self, loop: ThroughTime, embedded: Tensor, memory: AttentionMemory) -> Step:
        """What `in_turn` answers, by `loop`."""

    def forward(self, tokens: Tensor, memory: AttentionMemory) -> Step:
        embedded = self.embedding(tokens)
        loop = ThroughTime.of(self.stack, self.attention, embedded)
        return self.in_turn(embedded, memory) if loop is None else self.through_time(loop, embedded, memory)

    def in_turn(self, embedded: Tensor, memory: AttentionMemory) -> Step:
        """The steps after the symbols embedded in [R, T, E], each from the state that the one before it left."""
        state, steps = self.start(memory), []
        for position in range(embedded.shape[1]):
            step, state = self.advance(embedded[:, position], state, memory)
            steps.append(step)
        return stack_steps(steps)


def stack_steps(steps: list[Step]) -> Step:
    """Steps [R, …] side by side as one step [R, T, …]."""
    names: Mapping[str, Any] = steps[0].attention
    attention = {name: torch.stack([step.attention[name] for step in steps], 1) for name in names}
    gates = [step.gate for step in steps if step.gate is not None]
    return Step(torch.stack([step.features for step in steps], 1), attention, torch.stack(gates, 1) if gates else None)


class StateOnly(Parallel[VectorMemory]):
    """The source reaches the decoder once, as its first state (Sutskever et al. 2014, section 2)."""

    def __init__(self, embedding: Embedding, stack: Stack, bridge: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding, self.stack, self.bridge = embedding, stack, bridge
        self.dropout = Dropout(dropout)

    def remember(self, encoding: Encoding) -> VectorMemory:
        initial = self.bridge(encoding.final)
        return VectorMemory(initial, initial.new_zeros(initial.shape[0], 0), encoding.mask)

    def advance(self, tokens: Tensor, state: Hidden, memory: VectorMemory) -> tuple[Step, Hidden]:
        outputs, hidden = self.stack(self.embedding(tokens), state.hidden)  # [R, T, D]
        return Step(self.dropout(outputs)), Hidden(hidden)


class ContextEveryStep(Parallel[VectorMemory]):
    """The source's vector also enters every step and the output layer (Cho et al. 2014, sections 2.2 and A.1).

    The vector is the top layer's last state; Cho et al. pass it through tanh(V h), which here the bridge and the readout do.
    """

    def __init__(self, embedding: Embedding, stack: Stack, bridge: nn.Module, readout: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding, self.stack, self.bridge, self.readout = embedding, stack, bridge, readout
        self.dropout = Dropout(dropout)

    def remember(self, encoding: Encoding) -> VectorMemory:
        return VectorMemory(self.bridge(encoding.final), encoding.final[:, -1, 0], encoding.mask)

    def advance(self, tokens: Tensor, state: Hidden, memory: VectorMemory) -> tuple[Step, Hidden]:
        embedded = self.embedding(tokens)  # [R, T, E]
        beams = tokens.shape[0] // memory.vector.shape[0]
        context = memory.vector.repeat_interleave(beams, 0)[:, None].expand(-1, tokens.shape[1], -1)  # [R, T, C]
        outputs, hidden = self.stack(torch.cat([embedded, context], -1), state.hidden)  # [R, T, D]
        return Step(self.dropout(self.readout(outputs, context, embedded))), Hidden(hidden)


class Attentive(nn.Module):
    """What the decoders with attention are made of.

    Args:
        readout: from context, top state and, in Bahdanau's order, embedding to what the output layer reads.
    """

    def __init__(
        self,
        embedding: Embedding | ExtendedEmbedding,
        stack: Stack,
        bridge: nn.Module,
        attention: Looking,
        readout: Maxout | Attentional,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.stack, self.bridge, self.attention, self.readout = embedding, stack, bridge, attention, readout
        self.dropout = Dropout(dropout)

    def remember(self, encoding: Encoding) -> AttentionMemory:
        return AttentionMemory(self.bridge(encoding.final), self.attention.remember(encoding.states, encoding.mask))


class AttendThenStep(Attentive, Sequential[Hidden]):
    """Bahdanau's order: look with the previous state, then let the context into the cell (Bahdanau et al. 2015, A.2.2).

    The output layer reads the new state, as the paper's equation 4 has it; its appendix writes the previous one.
    """

    def start(self, memory: AttentionMemory) -> Hidden:
        return Hidden(memory.initial, self.attention.start(memory.keys))

    def advance(self, embedded: Tensor, state: Hidden, memory: AttentionMemory) -> tuple[Step, Hidden]:
        query = state.hidden[:, -1, 0][:, None]
        context, weights, looked = self.attention.attend(query, memory.keys, state.looked)  # [R, 1, C], [R, 1, S]
        outputs, hidden = self.stack(torch.cat([embedded[:, None], context], -1), state.hidden)  # [R, 1, D]
        features = self.dropout(self.readout(outputs[:, 0], context[:, 0], embedded))  # [R, F]
        return Step(features, {"source": weights[:, 0]}), Hidden(hidden, looked)

    def through_time(self, loop: ThroughTime, embedded: Tensor, memory: AttentionMemory) -> Step:
        context, weights, _ = self.attention.attend(memory.initial[:, -1, 0][:, None], memory.keys, None)  # the first look
        found = loop(embedded, memory.initial, memory.keys, context[:, 0], embedded.shape[1] - 1)
        contexts = torch.cat([context, found.contexts], 1)  # [R, T, C]
        features = self.dropout(self.readout(found.outputs, contexts, embedded))  # [R, T, F]
        return Step(features, {"source": torch.cat([weights, found.weights], 1)})


class StepThenAttend(Attentive, Parallel[AttentionMemory]):
    """Luong's order: step, then look with the new state (Luong et al. 2015, equations 5 to 7). Nothing is fed back."""

    def start(self, memory: AttentionMemory) -> Hidden:
        return Hidden(memory.initial, self.attention.start(memory.keys))

    def advance(self, tokens: Tensor, state: Hidden, memory: AttentionMemory) -> tuple[Step, Hidden]:
        outputs, hidden = self.stack(self.embedding(tokens), state.hidden)  # [R, T, D]
        context, weights, looked = self.attention.attend(outputs, memory.keys, state.looked)  # [R, T, C], [R, T, S]
        return Step(self.dropout(self.readout(context, outputs)), {"source": weights}), Hidden(hidden, looked)


class StepThenAttendFed(Attentive, Sequential[Fed]):
    """Luong's order with input feeding: the attentional vector enters the next step beside the token (section 3.3)."""

    def start(self, memory: AttentionMemory) -> Fed:
        nothing = memory.initial.new_zeros(memory.initial.shape[0], self.readout.size)
        return Fed(memory.initial, nothing, self.attention.start(memory.keys))

    def advance(self, embedded: Tensor, state: Fed, memory: AttentionMemory) -> tuple[Step, Fed]:
        outputs, hidden = self.stack(torch.cat([embedded, state.feed], -1)[:, None], state.hidden)  # [R, 1, D]
        context, weights, looked = self.attention.attend(outputs, memory.keys, state.looked)  # [R, 1, C], [R, 1, S]
        features = self.dropout(self.readout(context[:, 0], outputs[:, 0]))  # [R, F]
        return Step(features, {"source": weights[:, 0]}), Fed(hidden, features, looked)

    def through_time(self, loop: ThroughTime, embedded: Tensor, memory: AttentionMemory) -> Step:
        if not isinstance(self.readout, Attentional):
            return self.in_turn(embedded, memory)
        rows, length, _ = embedded.shape
        feed, readout = embedded.new_zeros(rows, self.readout.size), self.readout.linear.weight
        noise = self.dropout.noise((length, rows, self.readout.size), embedded)
        found = loop(embedded, memory.initial, memory.keys, feed, length, readout, noise)
        assert found.features is not None
        return Step(found.features, {"source": found.weights})
