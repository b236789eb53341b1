"""Pointing: an output is a position of the source, and its element is what the decoder reads next (Vinyals et al. 2015).

Output ids are the reserved ones and, from FIRST on, FIRST + i for position i of the source. Knows sources, states and scores; not
what the elements mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from eyeline.contracts import BEGIN, END, PAD, RESERVED, Along, Deferred, Rows, Source, Step
from eyeline.errors import ConfigError
from eyeline.nn.attention import masked_softmax
from eyeline.nn.decoders import Hidden, Parallel
from eyeline.nn.dropout import Dropout
from eyeline.nn.embedding import Embedding
from eyeline.nn.heads import wide
from eyeline.nn.recurrent import Encoding, RecurrentLayers, Stack
from eyeline.nn.scores import Score
from eyeline.products import Linear

FIRST = len(RESERVED)  # the id of position 0


def at_end(mask: Tensor) -> Tensor:
    """[N, S], True at END, which is the last position of each source that `mask` [N, S] does not hide."""
    return ~mask & pad(mask[:, 1:], (0, 1), value=True)


class Symbols(nn.Module):
    """Elements that are symbols of a vocabulary."""

    def __init__(self, table: Embedding) -> None:
        super().__init__()
        self.symbols = table

    def forward(self, source: Source) -> Tensor:
        """[B, S, E], zero where hidden."""
        return self.symbols(source.ids.masked_fill(source.mask, PAD))  # type: ignore[no-any-return]


class Vectors(nn.Module):
    """Elements that are vectors of real numbers, through a linear map. END, which has no numbers, is a learned vector.

    Args:
        numbers: F, in each element.
    """

    def __init__(self, numbers: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.map = Linear(numbers, size)
        self.end = nn.Parameter(torch.empty(size).normal_(std=size**-0.5))
        self.dropout = Dropout(dropout)

    def forward(self, source: Source) -> Tensor:
        """[B, S, E], zero where hidden. What stands at END and in the padding is never looked at, not even NaN.

        Raises:
            ConfigError: when the elements are not of F numbers.
        """
        found = 0 if source.values is None else source.values.shape[-1]
        if source.values is None or found != self.map.in_features:
            what = f"the model reads elements of {self.map.in_features} numbers, and the source has {found or 'symbols alone'}"
            raise ConfigError(what, f"element_size={self.map.in_features}")
        hidden, end = source.mask[..., None], at_end(source.mask)[..., None]
        mapped = self.map(source.values.to(self.map.weight.dtype).masked_fill(hidden | end, 0.0))  # [B, S, E]
        return self.dropout(torch.where(end, self.end, mapped).masked_fill(hidden, 0.0))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ElementEncoding(Encoding):
    """What the encoder makes of a batch of sources, and what it read."""

    elements: Tensor  # [B, S, E], zero where hidden


class ElementEncoder(RecurrentLayers):
    """Recurrent layers over the elements of a source: `embedding` makes a source into vectors [B, S, E], zero where hidden."""

    def forward(self, source: Source) -> ElementEncoding:
        elements = self.embedding(source)
        encoding = self.read(elements, source)
        return ElementEncoding(encoding.states, encoding.final, encoding.mask, elements)


@dataclass(frozen=True)
class PointMemory(Rows):
    """A source whose positions can be pointed at."""

    initial: Tensor  # [N, L, P, D] the decoder's first state
    projected: Annotated[Tensor, Along(1)]  # [N, S, A] the encoder's states, as the score wants them
    fed: Annotated[Tensor, Along(1, before=FIRST)]  # [N, FIRST + S, E] what each output id of this source feeds to the next step
    mask: Annotated[Tensor, Along(1, beyond=True)]  # [N, S], True = hidden

    def feed(self, tokens: Tensor) -> Tensor:
        """[R, T, E] for `tokens` [R, T]; an id beyond the source feeds what PAD does."""
        sources, ids, size = self.fed.shape
        inside = tokens.masked_fill(tokens >= ids, PAD).view(sources, -1)  # [N, K·T]
        rows = inside + ids * torch.arange(sources, device=tokens.device)[:, None]
        return self.fed.flatten(0, 1).index_select(0, rows.flatten()).view(*tokens.shape, size)


class Choice(Protocol):
    """Which positions may be pointed at, given those that were."""

    def start(self, memory: PointMemory) -> Any:
        """What is remembered before the first token, one row a source: a value with `select`, or None."""
        ...

    def closed(self, tokens: Tensor, looked: Any, memory: PointMemory) -> tuple[Tensor, Any]:
        """True where nothing may point after each of `tokens` [R, T], broadcast to [N, K·T, S]; and what is remembered then."""
        ...


class Repeatable:
    """Every position of the source may be pointed at any number of times."""

    def start(self, memory: PointMemory) -> None:
        return None

    def closed(self, tokens: Tensor, looked: Any, memory: PointMemory) -> tuple[Tensor, None]:
        return memory.mask[:, None], None


@dataclass(frozen=True)
class Visits(Rows):
    """How often each position was pointed at."""

    counts: Annotated[Tensor, Along(1)]  # [R, S] long


class Distinct:
    """No position is pointed at twice; END always may be. Visits follow from the tokens, so that all T are known at once."""

    def start(self, memory: PointMemory) -> Visits:
        return Visits(memory.mask.new_zeros(memory.mask.shape, dtype=torch.long))

    def closed(self, tokens: Tensor, looked: Visits, memory: PointMemory) -> tuple[Tensor, Visits]:
        sources, width = memory.mask.shape
        pointed = tokens[..., None] - FIRST == torch.arange(width, device=tokens.device)  # [R, T, S]
        counts = looked.counts[:, None] + pointed.cumsum(1)  # after each token
        visited = (counts > 0).view(sources, -1, width) & ~at_end(memory.mask)[:, None]  # [N, K·T, S]
        return memory.mask[:, None] | visited, Visits(counts[:, -1])


class StepThenPoint(Parallel[PointMemory]):
    """Steps over the element pointed at last, and scores every position with the new state (Vinyals et al. 2015, equation 3).

    No context is fed back, so the cells, and then the scores, run over all positions of a target at once. The features of a step
    are the scores u [R, T, S], -inf where nothing may point; its attention is their softmax, which is the answer itself.

    Args:
        score: of the decoder's state and the encoder's states.
        choice: which positions may be pointed at.
        size: width E of the elements.
        dropout: on the states that point.
    """

    def __init__(self, stack: Stack, bridge: nn.Module, score: Score, choice: Choice, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.stack, self.bridge, self.score, self.choice = stack, bridge, score, choice
        self.begin = nn.Parameter(torch.empty(size).normal_(std=size**-0.5))
        self.dropout = Dropout(dropout)

    def remember(self, encoding: ElementEncoding) -> PointMemory:
        states = encoding.states.masked_fill(encoding.mask[..., None], 0.0)
        begin = pad(self.begin[None], (0, 0, BEGIN, FIRST - 1 - BEGIN))  # [FIRST, E]: the other reserved ids feed zeros
        fed = torch.cat([begin.expand(len(states), -1, -1), encoding.elements], 1)
        return PointMemory(self.bridge(encoding.final), self.score.project(states), fed, encoding.mask)

    def start(self, memory: PointMemory) -> Hidden:
        return Hidden(memory.initial, self.choice.start(memory))

    def advance(self, tokens: Tensor, state: Hidden, memory: PointMemory) -> tuple[Step, Hidden]:
        outputs, hidden = self.stack(memory.feed(tokens), state.hidden)  # [R, T, D]
        query = self.dropout(outputs).reshape(len(memory.mask), -1, outputs.shape[-1])  # [N, K·T, D]
        closed, looked = self.choice.closed(tokens, state.looked, memory)
        scores = self.score(query, memory.projected).masked_fill(closed, -torch.inf).view(*tokens.shape, -1)  # [R, T, S]
        attention = Deferred({"source": lambda: masked_softmax(scores, scores.isneginf())})
        return Step(scores, attention), Hidden(hidden, looked)


class Point(nn.Module):
    """The softmax over positions as log-probabilities of ids: position i is FIRST + i, and the source's own END is END."""

    def forward(self, step: Step, source: Source) -> Tensor:
        """[..., FIRST + S] from scores [..., S], -inf for what cannot be: other reserved ids, and where scores are -inf."""
        scores = wide(step.features)
        impossible = scores.isneginf()  # softmax runs over finite numbers, so that an empty source gives no NaN
        finite = scores.masked_fill(impossible, torch.finfo(scores.dtype).min)
        log_probs = finite.log_softmax(-1).masked_fill(impossible, -torch.inf)  # [..., S]
        last = (source.lengths.to(scores.device) - 1).clamp(min=0)  # [N]
        last = last.repeat_interleave(len(scores) // len(last)).view(-1, *[1] * (scores.dim() - 1))  # [R, 1] or [B, 1, 1]
        end = log_probs.gather(-1, last.expand(*scores.shape[:-1], 1))  # [..., 1]
        positions = log_probs.scatter(-1, last.expand(*scores.shape[:-1], 1), -torch.inf)
        never = torch.full_like(end, -torch.inf)
        return torch.cat([never.expand(*end.shape[:-1], END), end, positions], -1)
