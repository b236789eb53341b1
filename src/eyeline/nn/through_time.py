"""A recurrent decoder's loop over all positions of a target, with the backward pass through time written by hand.

Each position steps and then looks; what it found enters the next step (Bahdanau's order, where the first look comes before the
loop), or what a readout makes of it does (Luong's input feeding). The plain form of the same loop is `Sequential.in_turn`, and
autograd over it. Here nothing is recorded a step, the products of what is known in advance are one product for all positions, and
so are the gradients of all weights; tanh over S × A of an additive score is made again in the backward pass.

Knows cells, a score and a readout as tensors. Shapes: T positions first, B sources, S source positions, D width of the cells, Dk
of the values, A of the keys, F of what is fed; L layers, P planes; the loop looks after the first T' of its T positions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from eyeline.nn.attention import Looking
from eyeline.nn.cells import Cell, Weights, bend, by_hand, plain
from eyeline.nn.looking import Look
from eyeline.nn.recurrent import Stack
from eyeline.nn.scores import Form


@dataclass(frozen=True)
class Found:
    """What the loop answers."""

    outputs: Tensor  # [B, T, D] the top layer's
    contexts: Tensor  # [B, T', Dk]
    weights: Tensor  # [B, T', S]
    features: Tensor | None  # [B, T, F] what the readout made of them, dropout included; None without a readout


@dataclass(frozen=True)
class ThroughTime:
    """The loop over cells, score and keys that have derivatives here."""

    cell: Cell
    stack: Stack
    form: Form

    @classmethod
    def of(cls, stack: Stack, attention: Looking, embedded: Tensor) -> ThroughTime | None:
        """None where a part has none: coverage, a window, a cell that is not PyTorch's usual one; and where types are mixed."""
        form, cells = attention.form, [by_hand(layer) for layer in stack.layers]  # type: ignore[arg-type]
        if form is None or cells[0] is None or not plain(embedded):
            return None
        return cls(cells[0], stack, form)

    def __call__(
        self,
        embedded: Tensor,
        initial: Tensor,
        keys: Any,
        feed: Tensor,
        looks: int,
        readout: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> Found:
        """Runs it.

        Args:
            embedded: [B, T, E]; the first layer reads it beside what is fed.
            initial: [B, L, P, D], the state before the first step.
            keys: what the attention remembers of the sources: `Keys`, for one that has a form.
            feed: [B, F], what is fed to the first.
            looks: T', all T of them or all but the last.
            readout: [F, Dk + D] of Luong's equation 5, tanh(W [c; h]), whose result is fed; None: the context is.
            noise: [T, B, F], what dropout multiplies that result by; None: nothing.
        """
        assert embedded.shape[1] - 1 <= looks <= embedded.shape[1]
        (B, T, _), form = embedded.shape, self.form
        arranged = [self.cell.arrange(layer) for layer in self.stack.layers]  # type: ignore[arg-type]
        layers = [tensor for layer in arranged for tensor in (layer.inward, layer.recurrent, layer.bias, layer.rest)]
        between = [self.stack.dropout.noise((T, B, self.stack.size), embedded) for _ in arranged[1:]]
        states, contexts, weights, features = _ThroughTime.apply(  # type: ignore[no-untyped-call]
            _Plan(self.cell, len(arranged), looks),
            *(embedded.transpose(0, 1).contiguous(), initial.permute(1, 2, 0, 3).contiguous(), feed),
            *(keys.projected if form.scale == 1.0 else keys.projected * form.scale, keys.values, keys.mask),
            *(form.weight, form.bias, form.vector, readout, noise),
            *layers,
            *between,
        )
        outputs, contexts, weights = (each.transpose(0, 1) for each in (states[:, 0], contexts, weights))
        return Found(outputs, contexts, weights, None if features is None else features.transpose(0, 1))


@dataclass(frozen=True)
class _Plan:
    """What the loop is made of beside tensors."""

    cell: Cell
    depth: int  # L
    looks: int  # T'


@dataclass(frozen=True)
class _Given:
    """What the loop reads."""

    embedded: Tensor  # [T, B, E]
    initial: Tensor  # [L, P, B, D]
    feed: Tensor  # [B, F]
    keys: Tensor  # [B, S, A]
    values: Tensor  # [B, S, Dk]
    hidden: Tensor  # [B, S]
    query: Tensor | None  # [A, D] from the top state to the query; None: they are one
    offset: Tensor | None  # [A]
    vector: Tensor | None  # [A]
    readout: Tensor | None  # [F, Dk + D]
    noise: Tensor | None  # [T, B, F]
    layers: tuple[Weights, ...]
    between: tuple[Tensor | None, ...]  # [T, B, D] what dropout multiplies the outputs of each layer but the top by

    @classmethod
    def of(cls, plan: _Plan, tensors: tuple[Any, ...]) -> _Given:
        """From the arguments of the function, one after the other."""
        plain = len(fields(cls)) - 2
        end = plain + 4 * plan.depth
        layers = tuple(Weights(*tensors[start : start + 4]) for start in range(plain, end, 4))
        arguments: list[Any] = [*tensors[:plain], layers, tensors[end:]]
        return cls(*arguments)


@dataclass(frozen=True)
class _Record:
    """What the forward pass leaves to the backward pass."""

    weights: Tensor  # [T', B, S]
    contexts: Tensor  # [T', B, Dk]
    queries: Tensor | None  # [T', B, A]
    bent: Tensor | None  # [T', B, F] of the readout, before dropout
    features: Tensor | None  # [T', B, F]
    gates: tuple[Tensor, ...]  # [T, B, G·D] each
    states: tuple[Tensor, ...]  # [T, P, B, D] each

    @classmethod
    def empty(cls, plan: _Plan, x: _Given) -> _Record:
        (T, B), (_, P, _, D), new = x.embedded.shape[:2], x.initial.shape, x.embedded.new_empty
        queries = None if x.query is None else new(plan.looks, B, len(x.query))
        bent = None if x.readout is None else new(plan.looks, B, len(x.readout))
        gates = tuple(new(T, B, plan.cell.blocks * D) for _ in x.layers)
        for columns, layer in zip(gates, x.layers, strict=True):
            if layer.rest is not None:
                columns[..., plan.cell.inward(D).stop :] = layer.rest
        return cls(
            new(plan.looks, *x.hidden.shape),
            new(plan.looks, B, x.values.shape[-1]),
            queries,
            bent,
            bent if bent is None or x.noise is None else torch.empty_like(bent),
            gates,
            tuple(new(T, P, B, D) for _ in x.layers),
        )


class _Forward:
    """The loop forwards."""

    def __init__(self, plan: _Plan, x: _Given) -> None:
        self.plan, self.x, self.record = plan, x, _Record.empty(plan, x)
        self.look = Look(x.keys, x.values, x.hidden, x.vector)
        D, E, first = x.initial.shape[-1], x.embedded.shape[-1], x.layers[0]
        self.of_symbols, self.of_feed = (part.t() for part in first.inward.tensor_split([E], 1))
        gates = self.record.gates[0].flatten(0, 1)[:, plan.cell.inward(D)]
        torch.addmm(first.bias, x.embedded.flatten(0, 1), self.of_symbols, out=gates)  # all positions at once

    def run(self) -> _Record:
        feed = self.x.feed
        for t in range(len(self.x.embedded)):
            self._step(t, feed)
            if t < self.plan.looks:
                feed = self._look(t)
        return self.record

    def _step(self, t: int, feed: Tensor) -> None:
        x, record, cell, D = self.x, self.record, self.plan.cell, self.x.initial.shape[-1]
        below = feed
        for number, layer in enumerate(x.layers):
            gates, states = record.gates[number][t], record.states[number]
            before = states[t - 1] if t else x.initial[number]
            if number:
                torch.addmm(layer.bias, below, layer.inward.t(), out=gates[:, cell.inward(D)])
            else:
                gates[:, cell.inward(D)].addmm_(below, self.of_feed)
            gates[:, cell.recurrent(D)].addmm_(before[0], layer.recurrent.t())
            cell.forward(gates, before, states[t])
            below = states[t, 0]
            if number < len(x.between) and (noise := x.between[number]) is not None:
                below = below * noise[t]

    def _look(self, t: int) -> Tensor:
        """Looks, and answers what is fed."""
        x, record, top = self.x, self.record, self.record.states[-1][t, 0]
        query = top
        if x.query is not None and record.queries is not None:
            query = record.queries[t]
            if x.offset is None:
                torch.mm(top, x.query.t(), out=query)
            else:
                torch.addmm(x.offset, top, x.query.t(), out=query)
        context = record.contexts[t]
        self.look.forward(query, record.weights[t], context)
        if x.readout is None or record.bent is None or record.features is None:
            return context
        of_context, of_top = x.readout.tensor_split([context.shape[-1]], 1)
        bent = torch.mm(context, of_context.t(), out=record.bent[t]).addmm_(top, of_top.t())
        bend(bent, out=bent)
        return bent if x.noise is None else torch.mul(bent, x.noise[t], out=record.features[t])


class _Backward:
    """The loop backwards.

    Args:
        of_states, of_contexts, of_weights, of_features: gradients of what was answered; None for what nobody used.
    """

    def __init__(self, plan: _Plan, x: _Given, record: _Record, *given: Tensor | None) -> None:
        self.plan, self.x, self.record = plan, x, record
        self.of_states, self.of_contexts, self.of_weights, self.of_features = given
        self.look = Look(x.keys, x.values, x.hidden, x.vector)
        self.products = [torch.empty_like(gates) for gates in record.gates]
        self.scores, self.contexts = torch.empty_like(record.weights), torch.empty_like(record.contexts)
        self.queries, self.bent = (None if each is None else torch.empty_like(each) for each in (record.queries, record.bent))
        self.slope = torch.zeros_like(x.initial)  # of the states, position after position
        self.feed = torch.zeros_like(x.feed)
        self.of_symbols, self.of_feed = x.layers[0].inward.tensor_split([x.embedded.shape[-1]], 1)

    def run(self) -> tuple[Tensor | None, ...]:
        """The gradients of everything in `_Given`, in its order."""
        for t in reversed(range(len(self.x.embedded))):
            if self.of_states is not None:
                self.slope[-1] += self.of_states[t]
            if t < self.plan.looks:
                self._look(t)
            self._step(t)
        return (*self._of_looks(), *(each for number in range(self.plan.depth) for each in self._of_layer(number)))

    def _look(self, t: int) -> None:
        x, record, top = self.x, self.record, self.slope[-1, 0]
        of_context = self.contexts[t]
        if x.readout is None or record.bent is None or self.bent is None:
            of_context.copy_(self.feed)
        else:
            feed = self.feed if self.of_features is None else self.feed + self.of_features[t]
            feed = feed if x.noise is None else feed * x.noise[t]
            bent = record.bent[t]
            of_bent = torch.mul(feed, bent.square().neg_().add_(1.0), out=self.bent[t])
            readout_of_context, readout_of_top = x.readout.tensor_split([of_context.shape[-1]], 1)
            torch.mm(of_bent, readout_of_context, out=of_context)
            top.addmm_(of_bent, readout_of_top)
        if self.of_contexts is not None:
            of_context += self.of_contexts[t]
        of_weights = None if self.of_weights is None else self.of_weights[t]
        self.look.backward(record.weights[t], of_context, of_weights, self.scores[t])
        if x.query is None or record.queries is None or self.queries is None:
            top += self.look.score.backward(record.states[-1][t, 0], self.scores[t], torch.empty_like(top))
        else:
            top.addmm_(self.look.score.backward(record.queries[t], self.scores[t], self.queries[t]), x.query)

    def _step(self, t: int) -> None:
        x, record, cell, D = self.x, self.record, self.plan.cell, self.x.initial.shape[-1]
        for number in reversed(range(self.plan.depth)):
            layer, states, products = x.layers[number], record.states[number], self.products[number][t]
            before = states[t - 1] if t else x.initial[number]
            cell.backward(record.gates[number][t], before, states[t], self.slope[number], products)
            self.slope[number, 0].addmm_(products[:, cell.recurrent(D)], layer.recurrent)
            if number == 0:
                torch.mm(products[:, cell.inward(D)], self.of_feed, out=self.feed)
                continue
            below, noise = products[:, cell.inward(D)] @ layer.inward, x.between[number - 1]
            self.slope[number - 1, 0] += below if noise is None else below * noise[t]

    def _of_looks(self) -> tuple[Tensor | None, ...]:
        """Of everything in `_Given` before the layers."""
        x, record, inward = self.x, self.record, self.plan.cell.inward(self.x.initial.shape[-1])
        tops = record.states[-1][: self.plan.looks, 0]
        of_keys, of_vector = self.look.score.finish(tops if record.queries is None else record.queries, self.scores)
        of_values = torch.bmm(record.weights.permute(1, 2, 0), self.contexts.transpose(0, 1))
        of_query = None if self.queries is None else outer(self.queries, tops)
        of_offset = None if self.queries is None or x.offset is None else self.queries.sum((0, 1))
        of_readout = None if self.bent is None else torch.cat([outer(self.bent, record.contexts), outer(self.bent, tops)], 1)
        first = self.products[0][..., inward] @ self.of_symbols, self.slope, self.feed
        return *first, of_keys, of_values, None, of_query, of_offset, of_vector, of_readout, None

    def _of_layer(self, number: int) -> tuple[Tensor | None, ...]:
        x, record, cell, D = self.x, self.record, self.plan.cell, self.x.initial.shape[-1]
        layer, products = x.layers[number], self.products[number]
        before = torch.cat([x.initial[number, :1], record.states[number][:-1, 0]])
        inward = products[..., cell.inward(D)]
        if number == 0:
            fed = record.contexts if record.features is None else record.features
            read = [x.embedded, torch.cat([x.feed[None], fed[: len(products) - 1]])]
        else:
            below, noise = record.states[number - 1][:, 0], x.between[number - 1]
            read = [below if noise is None else below * noise]
        return (
            torch.cat([outer(inward, each) for each in read], 1),
            outer(products[..., cell.recurrent(D)], before),
            inward.sum((0, 1)),
            None if layer.rest is None else products[..., cell.inward(D).stop :].sum((0, 1)),
        )


def outer(left: Tensor, right: Tensor) -> Tensor:
    """[M, N], Σ over positions and sources of left [T, B, M] times right [T, B, N]."""
    return left.reshape(-1, left.shape[-1]).t() @ right.reshape(-1, right.shape[-1])


class _ThroughTime(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: _Plan, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        """The top layer's states [T, P, B, D], contexts, weights and features."""
        record = _Forward(plan, _Given.of(plan, tensors)).run()
        looks = [record.weights, record.contexts, record.queries, record.bent, record.features]
        ctx.plan, ctx.inputs = plan, len(tensors)
        ctx.save_for_backward(*tensors, *looks, *record.gates, *record.states)
        ctx.set_materialize_grads(False)
        return record.states[-1], record.contexts, record.weights, record.features

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        plan, saved = ctx.plan, ctx.saved_tensors
        x, looks, layers = _Given.of(plan, saved[: ctx.inputs]), saved[ctx.inputs :][:5], saved[ctx.inputs + 5 :]
        kept: list[Any] = [*looks, layers[: plan.depth], layers[plan.depth :]]
        record = _Record(*kept)
        found = _Backward(plan, x, record, *gradients).run()
        return None, *found, *(None for _ in x.between)
