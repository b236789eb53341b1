"""Contexts that are summed when they have been multiplied already: W Σ αₛ hₛ = Σ αₛ (W hₛ).

A cell, a readout and a gate multiply every context by their weights: one for each hypothesis and each position. The values of a
source are fewer. Here they are multiplied once, and a look sums what came of that. For prediction on a CPU with several
hypotheses a source; with one, or over a long source, it is not faster, and the plain decoders take over.

Shapes: R rows of N sources, S source positions, C width of the values, D of the cells, E of embeddings; G·D gates of a layer, F
products of the readout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from eyeline.contracts import Step, Unlike
from eyeline.nn.attention import Keys
from eyeline.nn.cells import by_hand
from eyeline.nn.copying import StepThenAttendGated
from eyeline.nn.decoders import AttendThenStep, AttentionMemory, Fed, Hidden, Sequential
from eyeline.nn.packed import Kept, PackedStack, as_learnt
from eyeline.nn.readout import Affine, Gate, Maxout
from eyeline.nn.recurrent import Encoding
from eyeline.products import Layouts, linear

BYTES = 10  # reading a number of a source's values takes as long as so many multiplications


@dataclass(frozen=True)
class _Reader:
    """A linear map of which some columns read the context."""

    of_context: Tensor  # [P, C]
    of_others: Layouts  # [P, …]
    bias: Tensor

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor, start: int, size: int) -> _Reader:
        """Of `weight` [P, …], whose columns from `start` on, `size` of them, read the context."""
        before, of_context, behind = weight.tensor_split([start, start + size], 1)
        return cls(of_context, Layouts(torch.cat([before, behind], 1)), bias)

    def read(self, of_context: Tensor, *others: Tensor) -> Tensor:
        """[R, P] from the products of the context, and what stands beside it."""
        return self.of_others.product(torch.cat(others, 1), self.bias).add_(of_context)


@dataclass(frozen=True)
class _Readers:
    """All that reads the context of a decoder: its cell first."""

    each: tuple[_Reader, ...]
    together: Tensor  # [ΣP, C]

    @classmethod
    def of(cls, stack: PackedStack, size: int, *others: _Reader) -> _Readers:
        """Of the first layer, which reads symbols and then a context of `size`, and `others`."""
        layer: Any = stack.layers[0]
        cell = by_hand(layer)
        assert cell is not None
        weights = cell.arrange(layer)
        of_all = torch.cat([weights.inward, weights.recurrent], 1)
        each = (_Reader.of(of_all, weights.bias, layer.input_size - size, size), *others)
        return cls(each, torch.cat([reader.of_context for reader in each]))

    def through(self, keys: Keys) -> Keys:
        """The same keys with values [N, S, ΣP], which have gone through all readers."""
        return replace(keys, values=linear(keys.values, self.together))

    def parts(self, sums: Tensor) -> tuple[Tensor, ...]:
        """What each reads of the sums of such values [R, ΣP]."""
        return torch.split_with_sizes(sums, [len(reader.of_context) for reader in self.each], 1)


class Once:
    """What is made of a memory when it is first asked for; it goes where its memory goes."""

    def __init__(self, made: Any = None) -> None:
        self._made = made

    def get(self, make: Callable[[], Any]) -> Any:
        if self._made is None:
            self._made = make()
        return self._made

    def select(self, rows: Tensor) -> Once:
        return Once(None if self._made is None else self._made.select(rows))

    def joined(self, others: Sequence[Once], width: int) -> Once:
        made = [each._made for each in (self, *others)]
        if any(each is None for each in made):
            if any(each is not None for each in made):
                raise Unlike
            return Once()
        return Once(made[0].joined(made[1:], width))


class _Projected(Sequential[Any]):
    """What the two decoders below share."""

    _kept: Kept  # of _Readers

    def _adopt(self, decoder: nn.Module, readers: _Readers) -> Self:
        """Takes over the parts of `decoder`, under their names and shared with whom they are shared."""
        nn.Module.__init__(self)
        for name, part in vars(decoder).items():
            if not name.startswith("_") and name != "training":
                setattr(self, name, part)
        for name, child in decoder.named_children():
            setattr(self, name, child)
        self.train(decoder.training)
        self._kept = Kept(readers)
        return self

    def remember(self, encoding: Encoding) -> AttentionMemory:
        return replace(super().remember(encoding), projected=Once())  # type: ignore[misc, no-any-return]

    def readers(self) -> list[nn.Linear]:
        """The layers of which `advance` has a form of its own."""
        return [child.linear for child in self.children() if isinstance(child, (Maxout, Affine, Gate))]

    @property
    def _readers(self) -> _Readers:
        return self._kept.weights  # type: ignore[no-any-return]

    def _pays(self, embedded: Tensor, memory: AttentionMemory) -> bool:
        """Whether the sums are fewer numbers than the products that they spare."""
        together, (_, positions, size) = len(embedded) // len(memory.mask), memory.keys.values.shape  # type: ignore[attr-defined]
        hooked = any(by_hand(layer) is None for layer in self.stack.layers)  # type: ignore[arg-type]
        if together == 1 or hooked or as_learnt(embedded):
            return False
        return memory.projected is not None and positions * (BYTES + together) <= size * together

    def _onward(self, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        assert isinstance(self.stack, PackedStack)
        return self.stack.onward(gates, state)

    def _look(self, query: Tensor, memory: AttentionMemory, looked: Any) -> tuple[tuple[Tensor, ...], Tensor, Any]:
        """What each reader has of the context that `query` [R, D] finds, the weights [R, S], what is remembered of the look."""
        assert memory.projected is not None
        keys = memory.projected.get(lambda: self._readers.through(memory.keys))  # type: ignore[arg-type]
        sums, weights, looked = self.attention.attend(query[:, None], keys, looked)
        return self._readers.parts(sums[:, 0]), weights[:, 0], looked


class ProjectedAttendThenStep(_Projected, AttendThenStep):
    """Bahdanau's order."""

    @classmethod
    def of(cls, decoder: AttendThenStep, stack: PackedStack, size: int) -> ProjectedAttendThenStep | None:
        """`decoder` with a context of `size`; None where its readout is another one."""
        if type(decoder.readout) is not Maxout:
            return None
        halves = _Reader.of(*decoder.readout.halves(), stack.size, size)
        return cls.__new__(cls)._adopt(decoder, _Readers.of(stack, size, halves))

    def advance(self, embedded: Tensor, state: Hidden, memory: AttentionMemory) -> tuple[Step, Hidden]:
        if not self._pays(embedded, memory):
            return super().advance(embedded, state, memory)
        cell, halves = self._readers.each
        (of_cell, of_halves), weights, looked = self._look(state.hidden[:, -1, 0], memory, state.looked)
        output, hidden = self._onward(cell.read(of_cell, embedded, state.hidden[:, 0, 0]), state.hidden)
        features = self.dropout(torch.maximum(*halves.read(of_halves, output, embedded).chunk(2, -1)))
        return Step(features, {"source": weights}), Hidden(hidden, looked)


class Summed(Fed):
    """A state whose feed has gone through the cell already: [R, G·D]."""


class ProjectedGated(_Projected, StepThenAttendGated):
    """Luong's order with a gate, where the context is fed."""

    @classmethod
    def of(cls, decoder: StepThenAttendGated, stack: PackedStack, size: int) -> ProjectedGated | None:
        """`decoder` with a context of `size`; None where its readout is another one."""
        if type(decoder.readout) is not Affine:
            return None
        readout, gate = decoder.readout.linear, decoder.gate.linear
        others = _Reader.of(readout.weight, readout.bias, stack.size, size), _Reader.of(gate.weight, gate.bias, 0, size)
        return cls.__new__(cls)._adopt(decoder, _Readers.of(stack, size, *others))

    def advance(self, embedded: Tensor, state: Fed, memory: AttentionMemory) -> tuple[Step, Fed]:
        summed = isinstance(state, Summed)
        if not summed and not self._pays(embedded, memory):
            return super().advance(embedded, state, memory)
        cell, readout, gate = self._readers.each
        of_cell = state.feed if summed else linear(state.feed, cell.of_context)
        output, hidden = self._onward(cell.read(of_cell, embedded, state.hidden[:, 0, 0]), state.hidden)
        (of_cell, of_readout, of_gate), weights, looked = self._look(output, memory, state.looked)
        features = self.dropout(readout.read(of_readout, output))
        logit = gate.read(of_gate, output, embedded)[:, 0]
        return Step(features, {"source": weights}, logit), Summed(hidden, of_cell, looked)


PROJECTED = (ProjectedAttendThenStep, ProjectedGated)


@torch.no_grad()
def with_projected_values(decoder: nn.Module) -> nn.Module:
    """`decoder`, its values projected for prediction where it has what that needs: a packed stack and looks that are apart."""
    stack, attention = getattr(decoder, "stack", None), getattr(decoder, "attention", None)
    if not isinstance(stack, PackedStack) or getattr(attention, "form", None) is None:
        return decoder
    found: nn.Module | None = None
    if type(decoder) is AttendThenStep:
        found = ProjectedAttendThenStep.of(
            decoder, stack, decoder.readout.linear.in_features - stack.size - decoder.embedding.size
        )
    elif type(decoder) is StepThenAttendGated:
        found = ProjectedGated.of(decoder, stack, decoder.context_size)
    return decoder if found is None else found
