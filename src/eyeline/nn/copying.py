"""The recurrent decoder that generates or copies (See et al. 2017). Knows its parts, its state and its memory; not heads."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eyeline.contracts import Step
from eyeline.nn.attention import Looking
from eyeline.nn.decoders import AttentionMemory, Fed, Sequential
from eyeline.nn.dropout import Dropout
from eyeline.nn.embedding import ExtendedEmbedding
from eyeline.nn.readout import Affine, Gate
from eyeline.nn.recurrent import Encoding, Stack
from eyeline.nn.through_time import ThroughTime


class StepThenAttendGated(Sequential[Fed]):
    """Steps, looks with the new state, and says how likely the next symbol is generated rather than copied from where it looked.

    The cell reads the embedded input beside the context of the step before, zero at first. The paper's text does not say so; the
    model that its authors released does, through a linear map of the two which here the cell's own weights are.

    Args:
        attention: equations 1 to 3, with coverage equations 10 and 11.
        readout: from the state and the context to what the output layer reads, equation 4.
        gate: from the context, the state and the embedded input to the logit of p_gen, equation 8. The released model gives it
            the linear map named above for an input, and both planes of the LSTM's state.
        context_size: width of the context.
        dropout: on what the output layer reads.
    """

    def __init__(
        self,
        embedding: ExtendedEmbedding,
        stack: Stack,
        bridge: nn.Module,
        attention: Looking,
        readout: Affine,
        gate: Gate,
        context_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.stack, self.bridge, self.attention = embedding, stack, bridge, attention
        self.readout, self.gate = readout, gate
        self.context_size = context_size
        self.dropout = Dropout(dropout)

    def remember(self, encoding: Encoding) -> AttentionMemory:
        return AttentionMemory(self.bridge(encoding.final), self.attention.remember(encoding.states, encoding.mask))

    def start(self, memory: AttentionMemory) -> Fed:
        nothing = memory.initial.new_zeros(memory.initial.shape[0], self.context_size)
        return Fed(memory.initial, nothing, self.attention.start(memory.keys))

    def advance(self, embedded: Tensor, state: Fed, memory: AttentionMemory) -> tuple[Step, Fed]:
        outputs, hidden = self.stack(torch.cat([embedded, state.feed], -1)[:, None], state.hidden)  # [R, 1, D]
        looks, weights, looked = self.attention.attend(outputs, memory.keys, state.looked)  # [R, 1, C], [R, 1, S]
        context, output = looks[:, 0], outputs[:, 0]
        features = self.dropout(self.readout(output, context))  # [R, F]
        gate = self.gate(context, output, embedded)  # [R]
        return Step(features, {"source": weights[:, 0]}, gate), Fed(hidden, context, looked)

    def through_time(self, loop: ThroughTime, embedded: Tensor, memory: AttentionMemory) -> Step:
        nothing = embedded.new_zeros(len(embedded), self.context_size)
        found = loop(embedded, memory.initial, memory.keys, nothing, embedded.shape[1])
        features = self.dropout(self.readout(found.outputs, found.contexts))  # [R, T, F]
        return Step(features, {"source": found.weights}, self.gate(found.contexts, found.outputs, embedded))
