"""Between lines and ids, both ways: a coder for each meaning that output ids have. Knows tokenizers and spelling; no models.

| outputs | an output id is |
| --- | --- |
| `Vocabulary` | an entry of the target vocabulary |
| `Copies` | that, or from V upwards a symbol of its own source |
| `Positions` | from 4 upwards a position of its source, whose elements are symbols or vectors of numbers |
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from eyeline.config import Config, Normalization
from eyeline.config_models import PointerNetworkSettings
from eyeline.contracts import RESERVED, UNKNOWN
from eyeline.data.copying import copyable, extended
from eyeline.data.corpus import Sources
from eyeline.errors import UserError
from eyeline.text import vectors
from eyeline.text.normalization import normalize, restore
from eyeline.text.records import Fault, Pair
from eyeline.text.tokenizers import Encoded, Tokenizer
from eyeline.text.words import is_blank, word_spans

FIRST = len(RESERVED)  # the id of position 0
NOT_POSITIONS = "not a source and positions in it"


@dataclass(frozen=True)
class Spelling:
    """How both sides are spelt before they are cut into tokens."""

    source: Normalization = "nfc"
    target: Normalization = "nfc"
    lowercase: bool = False

    def of_source(self, text: str) -> str:
        return normalize(text, self.source, self.lowercase)

    def of_target(self, text: str) -> str:
        return normalize(text, self.target, self.lowercase)

    def shown(self, target: str) -> str:
        """An output as people read it."""
        return restore(target, self.target)


@dataclass(frozen=True)
class Read:
    """A source as a model reads it, and what else is needed to read its outputs."""

    encoded: Encoded
    copies: list[int] | None = None  # the extended id of each token
    extra: list[str] = field(default_factory=list)  # the surfaces of its own ids, as the model's text has them
    typed: list[str] = field(default_factory=list)  # the same as they were typed
    values: vectors.Values | None = None  # [tokens, F]

    @property
    def unknown(self) -> int:
        """How many tokens the vocabulary lacks."""
        return 0 if self.values is not None else self.encoded.ids.count(UNKNOWN)


@dataclass(frozen=True)
class Row:
    """A pair as ids, without END, and what else a model reads of it."""

    source: list[int]
    target: list[int]
    copies: list[int] | None = None
    values: vectors.Values | None = None


class Coder(ABC):
    """Lines to ids and ids to lines, for one run's tokenizers."""

    spelling: Spelling
    own_from = 0  # V, from which on output ids are a source's own; 0 where they never are
    instead: Mapping[str, str] = MappingProxyType({})  # "source", "target" -> what stands there instead of a vocabulary's symbols

    @abstractmethod
    def encode(self, text: str, features: Sequence[str] = ()) -> Encoded:
        """A source, cut into tokens. Raises UserError for one that cannot be a source."""

    @abstractmethod
    def read(self, encoded: Encoded, text: str) -> Read:
        """What the model reads of an encoded source, or of a part of it; `text` is the whole as typed. Raises UserError."""

    @abstractmethod
    def encode_target(self, text: str, source: Read) -> Encoded:
        """A target in the ids that outputs to `source` have. Raises UserError for one that no output could be."""

    @abstractmethod
    def rows(self, pairs: Sequence[Pair]) -> list[Row | Fault]:
        """Many pairs at a time; a Fault in the place of what cannot be a pair."""

    @abstractmethod
    def decode(self, ids: Sequence[int], source: Read) -> str:
        """What people read of an output to `source`."""

    @abstractmethod
    def tokens(self, ids: Sequence[int], source: Read) -> list[str]:
        """How the ids of an output to `source` are shown."""

    @abstractmethod
    def words(self, ids: Sequence[int], source: Read) -> list[int | None]:
        """The word of each id in what `decode` says, from 0; None for one that is in no word."""

    def with_words(self, ids: Sequence[int], source: Read, words: Mapping[int, str]) -> tuple[list[int], Read]:
        """An output with the tokens at some places written as other words, place -> word: as ids, and a source whose own words
        these are besides. Where outputs have no text there are no such words."""
        return list(ids), source

    @abstractmethod
    def compared(self, text: str) -> str:
        """A target spelt as a perfect output would be, so that another Unicode form or case is no error."""

    @abstractmethod
    def judged(self, output: str) -> str:
        """An output as it is held against `compared` targets: what was copied as typed is no error for its case or form."""

    @abstractmethod
    def sources(self, reads: Sequence[Read]) -> Sources:
        """Many sources, ready to be made into batches."""


class Vocabulary(Coder):
    """Outputs are entries of the target vocabulary."""

    def __init__(self, source: Tokenizer, target: Tokenizer, spelling: Spelling) -> None:
        self.source, self.target, self.spelling = source, target, spelling

    def encode(self, text: str, features: Sequence[str] = ()) -> Encoded:
        return self.source.encode(self.spelling.of_source(text), features)

    def read(self, encoded: Encoded, text: str) -> Read:
        return Read(encoded)

    def encode_target(self, text: str, source: Read) -> Encoded:
        return self.target.encode(self.spelling.of_target(text))

    def rows(self, pairs: Sequence[Pair]) -> list[Row | Fault]:
        sources = self.source.encode_ids([self.spelling.of_source(pair.source) for pair in pairs], _features(self.source, pairs))
        targets = self.target.encode_ids([self.spelling.of_target(pair.target) for pair in pairs])
        return [Row(source, target) for source, target in zip(sources, targets, strict=True)]

    def decode(self, ids: Sequence[int], source: Read) -> str:
        return self.spelling.shown(self.target.decode(ids, source.typed))

    def tokens(self, ids: Sequence[int], source: Read) -> list[str]:
        return self.target.tokens_of(ids, source.typed)

    def words(self, ids: Sequence[int], source: Read) -> list[int | None]:
        return self.target.decoded_word_index(ids, source.typed)

    def with_words(self, ids: Sequence[int], source: Read, words: Mapping[int, str]) -> tuple[list[int], Read]:
        return _with_words(self.target, ids, source, words)

    def compared(self, text: str) -> str:
        return self.spelling.shown(self.spelling.of_target(text))

    def judged(self, output: str) -> str:
        return output

    def sources(self, reads: Sequence[Read]) -> Sources:
        return Sources.of(read.encoded.ids for read in reads)


class Copies(Coder):
    """Outputs are entries of the target vocabulary, or symbols of the source that it does not hold.

    These are matched in the run's spelling and written as they were typed.
    """

    def __init__(self, source: Tokenizer, target: Tokenizer, spelling: Spelling) -> None:
        self.source, self.target, self.spelling = source, target, spelling
        self.own_from = target.size

    def encode(self, text: str, features: Sequence[str] = ()) -> Encoded:
        return self.source.encode(self.spelling.of_source(text), features)

    def read(self, encoded: Encoded, text: str) -> Read:
        own = copyable(encoded.surfaces, self.target.lookup, self.own_from)
        typed = dict(zip(reversed(own.ids), reversed(as_typed(encoded, text)), strict=True)) if own.extra else {}
        return Read(encoded, own.ids, own.extra, [typed[self.own_from + place] for place in range(len(own.extra))])

    def encode_target(self, text: str, source: Read) -> Encoded:
        encoded = self.target.encode(self.spelling.of_target(text))
        ids = extended(encoded.surfaces, self.target.lookup, self.own_from, source.extra)
        tokens = [
            self.target.token(number, source.typed) if number >= self.own_from else token
            for number, token in zip(ids, encoded.tokens, strict=True)
        ]
        return replace(encoded, ids=ids, tokens=tokens)

    def rows(self, pairs: Sequence[Pair]) -> list[Row | Fault]:
        texts = [self.spelling.of_source(pair.source) for pair in pairs]
        sources = self.source.encode_batch(texts, _features(self.source, pairs))
        targets = self.target.encode_batch([self.spelling.of_target(pair.target) for pair in pairs])
        lookup, size = self.target.lookup, self.own_from
        rows: list[Row | Fault] = []
        for source, target in zip(sources, targets, strict=True):
            own = copyable(source.surfaces, lookup, size)
            rows.append(Row(source.ids, extended(target.surfaces, lookup, size, own.extra), own.ids))
        return rows

    def decode(self, ids: Sequence[int], source: Read) -> str:
        return self.spelling.shown(self.target.decode(ids, source.typed))

    def tokens(self, ids: Sequence[int], source: Read) -> list[str]:
        return self.target.tokens_of(ids, source.typed)

    def words(self, ids: Sequence[int], source: Read) -> list[int | None]:
        return self.target.decoded_word_index(ids, source.typed)

    def with_words(self, ids: Sequence[int], source: Read, words: Mapping[int, str]) -> tuple[list[int], Read]:
        return _with_words(self.target, ids, source, words)

    def compared(self, text: str) -> str:
        return self.spelling.shown(self.spelling.of_target(text))

    def judged(self, output: str) -> str:
        return self.compared(output)

    def sources(self, reads: Sequence[Read]) -> Sources:
        return Sources.of((read.encoded.ids for read in reads), (read.copies or [] for read in reads), self.own_from)


class Positions(Coder):
    """Outputs are positions of the source, written `2 0 1`.

    Args:
        source: cuts sources that are text; of no use for vectors.
        numbers: in each element of a source; 0 where sources are text.
        distinct: whether no position may come twice.
    """

    def __init__(self, source: Tokenizer, spelling: Spelling, numbers: int = 0, distinct: bool = False) -> None:
        self.source, self.spelling, self.numbers, self.distinct = source, spelling, numbers, distinct
        elements = {"source": f"vectors of {numbers}" if numbers > 1 else "numbers"} if numbers else {}
        self.instead = {**elements, "target": "positions"}

    def encode(self, text: str, features: Sequence[str] = ()) -> Encoded:
        if features:
            raise UserError("features beside a source whose positions are counted")
        if is_blank(text):
            return Encoded([], [], [], text, [])
        real = self.numbers > 0
        if not real and vectors.looks_real(text) and text != vectors.EMPTY:
            raise UserError("a source of numbers, where the model reads symbols")
        encoded = vectors.encoded(vectors.read(text)) if real else self.source.encode(self.spelling.of_source(text))
        if not encoded.ids or text == vectors.EMPTY:
            raise UserError("an empty source has no positions")
        return encoded

    def read(self, encoded: Encoded, text: str) -> Read:
        return Read(encoded, values=vectors.values(encoded.surfaces, self.numbers) if self.numbers else None)

    def encode_target(self, text: str, source: Read) -> Encoded:
        places, size = vectors.positions(text), len(source.encoded.ids)
        for number, place in enumerate(places):
            if place >= size:
                raise UserError(f"position {place} is beyond a source of {size} elements", hint="positions are counted from 0")
            if self.distinct and place in places[:number]:
                raise UserError(f"position {place} comes twice, and model.distinct=true forbids it")
        tokens = [str(place) for place in places]
        return Encoded([FIRST + place for place in places], tokens, word_spans(text), text, tokens)

    def rows(self, pairs: Sequence[Pair]) -> list[Row | Fault]:
        return [self._row(pair) for pair in pairs]

    def decode(self, ids: Sequence[int], source: Read) -> str:
        return vectors.written_positions([number - FIRST for number in ids if number >= FIRST])

    def tokens(self, ids: Sequence[int], source: Read) -> list[str]:
        return [str(number - FIRST) if number >= FIRST else RESERVED[number] for number in ids]

    def words(self, ids: Sequence[int], source: Read) -> list[int | None]:
        pointed = itertools.count()
        return [next(pointed) if number >= FIRST else None for number in ids]

    def compared(self, text: str) -> str:
        return vectors.written_positions(vectors.positions(text))

    def judged(self, output: str) -> str:
        return output

    def sources(self, reads: Sequence[Read]) -> Sources:
        values = (read.values for read in reads if read.values is not None) if self.numbers else None
        return Sources.of((read.encoded.ids for read in reads), values=values)

    def _row(self, pair: Pair) -> Row | Fault:
        try:
            source = self.read(self.encode(pair.source, pair.features), pair.source)
            target = self.encode_target(pair.target, source)
        except UserError as error:
            return Fault(pair.path, pair.line, NOT_POSITIONS, error.what)
        return Row(source.encoded.ids, target.ids, values=source.values)


def coder(config: Config, source: Tokenizer, target: Tokenizer) -> Coder:
    """The coder of a run with these settings and tokenizers."""
    data = config.data
    spelling = Spelling(data.form("source"), data.form("target"), data.lowercase)
    model = config.model
    if isinstance(model, PointerNetworkSettings):
        return Positions(source, spelling, model.element_size, model.distinct)
    return Copies(source, target, spelling) if model.outputs == "copies" else Vocabulary(source, target, spelling)


def _with_words(target: Tokenizer, ids: Sequence[int], source: Read, words: Mapping[int, str]) -> tuple[list[int], Read]:
    """Words are a source's own, as those that it copies are: a word of a vocabulary of words carries its blank."""
    if not words:
        return list(ids), source
    blank = target.piece(UNKNOWN).removesuffix(RESERVED[UNKNOWN])
    changed, typed = list(ids), list(source.typed)
    for place, word in words.items():
        changed[place] = target.size + len(typed)
        typed.append(blank + word)
    return changed, replace(source, typed=typed)


def _features(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[tuple[str, ...]] | None:
    return [pair.features for pair in pairs] if tokenizer.features else None


def as_typed(encoded: Encoded, text: str) -> list[str]:
    """The surfaces of an encoded text as they stood in the line that was typed, before case and Unicode form were changed.

    Neither change moves a blank, so words are paired; a token that is part of a word whose length has changed stays as it is.
    """
    if encoded.text == text:
        return encoded.surfaces
    now, typed = word_spans(encoded.text), word_spans(text)
    found = []
    for surface, (_, end), word in zip(encoded.surfaces, encoded.spans, encoded.words, strict=True):
        body = surface.lstrip(" ")
        if word is not None and word < len(typed):
            start, (first, last), (typed_first, typed_last) = end - len(body), now[word], typed[word]
            if (start, end) == (first, last):
                body = text[typed_first:typed_last]
            elif last - first == typed_last - typed_first:
                body = text[typed_first + start - first : typed_first + end - first]
        found.append(" " * (len(surface) - len(surface.lstrip(" "))) + body)
    return found
