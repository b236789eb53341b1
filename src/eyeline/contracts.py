"""The values that travel between the rooms, and the protocols that every architecture keeps.

Knows tensors and nothing else: no text, no files, no settings, no architecture.

Letters in every docstring: B batch, N sources, K hypotheses a source, R = N·K rows, S source length, T target length,
D width, H heads, L layers, V vocabulary, X extended vocabulary. A mask is True where something is HIDDEN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, Protocol, Self, TypeVar, get_type_hints, runtime_checkable

import torch
from torch import Tensor
from torch.nn.functional import pad

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3  # the reserved ids; text never turns into PAD, BEGIN or END
RESERVED = ("<pad>", "<unk>", "<s>", "</s>")  # how they are written for people


@dataclass(frozen=True)
class Along:
    """Marks a field that has source positions, as `Annotated[Tensor, Along(axis)]`: `join` makes them equally many."""

    axis: int
    beyond: bool = False  # what fills positions that are added
    before: int = 0  # entries that stand in front of the positions


class Rows:
    """A value of which rows are taken, and behind which others are put: a dataclass of batch-first tensors. What else may stand
    in one says `select`."""

    def select(self, rows: Tensor) -> Self:
        return select(self, rows)

    def joined(self, others: Sequence[Self], width: int) -> Self:
        return join([self, *others], width)


@dataclass(frozen=True)
class Source(Rows):
    """A batch of source sequences. Each ends with END; what lies beyond `lengths` is never looked at.

    Extended ids are those of the target vocabulary and, from V upwards, one for each symbol of this source that it does not hold:
    the same symbol of one source has the same one, another source may use it for another symbol.
    """

    ids: Annotated[Tensor, Along(1)]  # [B, S] long
    lengths: Tensor  # [B] long, on the CPU or the device of `ids`; END counted
    copy_ids: Annotated[Tensor | None, Along(1)] = None  # [B, S] long: the extended id of each symbol, for rungs that copy
    extra: int = 0  # X - V: the most symbols that a source of the batch adds to the target vocabulary
    values: Annotated[Tensor | None, Along(1)] = None  # [B, S, F] float: the elements of real-valued sources; no meaning at END

    @property
    def mask(self) -> Tensor:
        """[B, S], True where hidden: made from the lengths, so that garbage in the padding changes nothing."""
        return torch.arange(self.ids.shape[1], device=self.ids.device) >= self.lengths.to(self.ids.device)[:, None]

    def joined(self, others: Sequence[Source], width: int) -> Source:
        extra = max(each.extra for each in (self, *others))
        return join([replace(each, extra=extra) for each in (self, *others)], width)

    def to(self, device: torch.device | str) -> Source:
        copies = None if self.copy_ids is None else self.copy_ids.to(device)
        values = None if self.values is None else self.values.to(device)
        return Source(self.ids.to(device), self.lengths.to(device), copies, self.extra, values)


class Deferred(Mapping[str, Tensor]):
    """Named tensors of which each is computed when it is asked for: what nobody looks at costs nothing."""

    def __init__(self, makers: Mapping[str, Callable[[], Tensor]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Tensor:
        return self._makers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._makers  # a Mapping's own would make it to know

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(frozen=True)
class Step:
    """What a decoder says at one position ([R, …]) or at all positions of a teacher-forced target ([B, T, …])."""

    features: Tensor  # [..., D] what the head reads
    attention: Mapping[str, Tensor] = field(
        default_factory=dict
    )  # name of the place -> [..., S] weights; "source" where there is one
    gate: Tensor | None = None  # [...] the logit of generating rather than copying, where the head does both

    def at(self, index: Any) -> Step:
        """The same step with every field indexed by `index` along its leading dimensions; attention when it is asked for."""
        attention = Deferred({name: lambda name=name: self.attention[name][index] for name in self.attention})  # type: ignore[misc]
        return Step(self.features[index], attention, None if self.gate is None else self.gate[index])


class State(Protocol):
    """What a decoder hands from one step to the next: a value, batch first. R rows; rows of one source lie together."""

    def select(self, rows: Tensor) -> Self:
        """Rows reordered, repeated or dropped: `rows` [R'] long holds the old row of each new one. Where states were joined, rows
        of one stay together and before those of the next."""
        ...

    def joined(self, others: Sequence[Self], width: int) -> Self:
        """The rows of `others` behind these, whatever number of steps each has taken. Of source positions there are `width`
        then: what lies beyond is cut off, and belongs to no row's source. Raises Unlike for what cannot be stepped as one yet."""
        ...


class Memory(Protocol):
    """Everything computed once a source, projected keys included. N rows, one a source."""

    @property
    def mask(self) -> Tensor:
        """[N, S], True where hidden."""
        ...

    def select(self, rows: Tensor) -> Self: ...

    def joined(self, others: Sequence[Self], width: int) -> Self:
        """The sources of `others` behind these, as of a state."""
        ...


AnyMemory = TypeVar("AnyMemory", bound=Memory, contravariant=True)
AnyState = TypeVar("AnyState", bound=State)


@runtime_checkable
class Decoder(Protocol[AnyMemory, AnyState]):
    """The seam on which search, scoring and training stand.

    `state` may hold K rows for each row of `memory`: row n·K + k of the state reads row n of the memory. K follows from the two
    sizes, so that beams are extra queries of one source and memory is never repeated.
    """

    def start(self, memory: AnyMemory) -> AnyState:
        """The state before the first token, one row a source."""
        ...

    def step(self, token: Tensor, state: AnyState, memory: AnyMemory) -> tuple[Step, AnyState]:
        """Reads `token` [R] and answers for the position after it."""
        ...

    def __call__(self, tokens: Tensor, memory: AnyMemory) -> Step:
        """Teacher forcing over `tokens` [B, T], BEGIN first: as parallel as the mathematics allows. Same as stepping; in training
        what is said after the last token of a row that is not PAD may mean nothing."""
        ...


class Head(Protocol):
    """From features to log-probabilities, and from output ids back to what the decoder is fed."""

    def __call__(self, step: Step, source: Source) -> Tensor:
        """[..., X] natural-log probabilities of extended ids, -inf for what cannot be. X is V where nothing is copied, and
        4 + S where source positions are pointed at. Leading dimensions are those of `step`: R rows (K a source) or B × T."""
        ...


@runtime_checkable
class LinearHead(Head, Protocol):
    """A head whose log-probabilities are log softmax(W f + b) of the features f, so that a loss may make its gradient itself."""

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """W [V, D] and b [V]."""
        ...


class Model(Protocol):
    """What search, scoring, training and the laboratory ask of a model."""

    @property
    def decoder(self) -> Decoder[Any, Any]: ...

    @property
    def head(self) -> Head: ...

    def encode(self, source: Source) -> Any:
        """The memory of a batch of sources."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One answer of a search over ids."""

    ids: tuple[int, ...]  # without BEGIN; END included when finished
    token_scores: tuple[float, ...]  # natural-log probability of each id
    score: float  # their sum, ≤ 0
    normalized_score: float  # score / length^penalty, END counted in the length; of a finished one, with a coverage penalty
    finished: bool  # END was reached before the maximum length
    attention: Mapping[str, Tensor] = field(default_factory=dict)  # name -> [len(ids), S] over this source's real positions
    generating: tuple[float, ...] | None = None  # how likely each id was generated rather than copied; `score` alone says it


@dataclass(frozen=True)
class Alternative:
    """An entry of an n-best list, as a person reads it."""

    text: str
    score: float
    normalized_score: float
    tokens: list[str]
    token_scores: list[float]
    finished: bool


@dataclass(frozen=True)
class Prediction:
    """The answer to one line of input. `n_best[0]` is the answer itself."""

    source: str
    text: str
    score: float  # summed natural-log probability, END counted
    normalized_score: float
    source_tokens: list[str]  # the columns of `alignment`
    tokens: list[str]  # the rows of `alignment`; END is the last when finished
    token_scores: list[float]
    alignment: list[list[float]] | None  # [len(tokens)][len(source_tokens)]; None when not asked for or the model has none
    n_best: list[Alternative]
    truncated: bool  # the source was cut to fit the model
    finished: bool
    source_words: list[int | None] = field(default_factory=list)  # the word of each source token, as PairScore has them
    target_words: list[int | None] = field(default_factory=list)  # of each token; both where there is an alignment


T = TypeVar("T")


def select(value: T, rows: Tensor) -> T:
    """A copy of a dataclass of batch-first tensors with `rows` taken from each; None, whole numbers, nested ones and tuples of
    them are allowed."""

    def take(item: Any) -> Any:
        if isinstance(item, Tensor):
            return item.index_select(0, rows.to(item.device))
        if isinstance(item, tuple):
            return tuple(take(each) for each in item)
        return item if item is None or isinstance(item, int) else item.select(rows)

    return type(value)(*(take(getattr(value, f.name)) for f in fields(value)))  # type: ignore[arg-type]


class Unlike(Exception):
    """States or memories of one decoder that stand in different forms for now."""


def join(values: Sequence[T], width: int) -> T:
    """A dataclass as of `select` with the rows of all `values`, one behind the other; numbers and None have to be equal.

    Args:
        width: source positions of the result, where a field is marked as having them (`Along`).

    Raises:
        Unlike: values of different classes, or numbers that differ.
    """
    kind: Any = type(values[0])
    if any(type(value) is not kind for value in values):
        raise Unlike

    def put(items: Sequence[Any], place: Along | None) -> Any:
        head = items[0]
        if any(type(item) is not type(head) for item in items):
            raise Unlike
        if isinstance(head, Tensor):
            return torch.cat([fitted(item, place, width) for item in items])
        if isinstance(head, tuple):
            return tuple(put(each, place) for each in zip(*items, strict=True))
        if head is None or isinstance(head, int):
            if any(item != head for item in items):
                raise Unlike
            return head
        return head.joined(items[1:], width)

    parts = ((place, [getattr(value, name) for value in values]) for name, place in _positions(kind).items())
    return kind(*(put(items, place) for place, items in parts))  # type: ignore[no-any-return]


@cache
def _positions(kind: type[Any]) -> dict[str, Along | None]:
    """The fields of a dataclass, and where each has source positions."""
    hints = get_type_hints(kind, include_extras=True)
    marks = {f.name: getattr(hints[f.name], "__metadata__", ()) for f in fields(kind)}
    return {name: next((mark for mark in several if isinstance(mark, Along)), None) for name, several in marks.items()}


def fitted(value: Tensor, place: Along | None, width: int) -> Tensor:
    """With `width` source positions, where it has any."""
    if place is None or value.dim() <= place.axis:
        return value
    wanted = place.before + width
    missing = wanted - value.shape[place.axis]
    if missing <= 0:
        return value.narrow(place.axis, 0, wanted)
    behind = [0, 0] * (value.dim() - place.axis - 1) + [0, missing]
    return pad(value, behind, value=place.beyond)
