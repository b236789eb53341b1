"""From lines to what the model is given: ids, cut or in pieces, with what their outputs have to say. Knows coders; no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from eyeline.config import Config
from eyeline.contracts import UNKNOWN
from eyeline.data.coding import Coder, Read
from eyeline.errors import DataError, UserError
from eyeline.predictor.answers import Piece
from eyeline.predictor.inputs import TooLong
from eyeline.predictor.pieces import pieces
from eyeline.predictor.terms import Term, demands_of
from eyeline.text.records import split_features
from eyeline.text.tokenizers import Encoded

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Reader:
    """Reads lines for one run."""

    config: Config
    coder: Coder
    featured: bool  # whether lines have features behind a tab
    terms: tuple[Term, ...] = ()  # their sources spelt as the run's are
    _known: dict[tuple[str, tuple[str, ...]], Phrase] = field(default_factory=dict, compare=False, repr=False)

    def under(self, terms: Sequence[Term]) -> Reader:
        """One that holds outputs to a terminology."""
        spelt = self.coder.spelling.of_source
        return replace(self, terms=tuple(replace(term, source=spelt(term.source)) for term in terms), _known={})

    def parted(self, line: str) -> tuple[str, tuple[str, ...]]:
        """A source line's text and features."""
        if not self.featured:
            return line, ()
        text, _, cell = line.partition("\t")
        return text, split_features(cell)

    def fit(self, line: str, prefix: str, place: int, number: int, too_long: TooLong | None, name: str) -> list[Piece]:
        """The line, cut or in pieces when it is longer than `data.max_length` and `too_long` says so.

        A prefix is that of the first piece. Terms are looked for in each piece.

        Args:
            place: of the line in its chunk.
            number: of the line in the input, from 1.
            name: of the input, for messages.
        """
        text, features = self.parted(line)
        try:
            encoded = self.coder.encode(text, features)
            parts, cut = self._parts(encoded, len(features), too_long)
            result: list[Piece] = []
            for part in parts:
                read = self.coder.read(part, text)
                begun = self._prefix(prefix, read) if prefix and not result else None
                required, forbidden = self._demands(part, number, read) if self.terms else ((), ())
                result.append(Piece(place, read, cut, begun, required, forbidden))
            return result
        except UserError as error:
            raise DataError(error.what, name, number, error.hint) from None

    def _parts(self, encoded: Encoded, features: int, too_long: TooLong | None) -> tuple[list[Encoded], bool]:
        """What is predicted of a source, and whether that is not all of it."""
        (most, bound), longest, length = self.config.most_tokens, self.config.model.longest, len(encoded.ids)
        readable = longest is None or length < longest
        if length <= most or (too_long is None and readable):
            return [encoded], False
        if too_long is None or too_long == "error":
            raise UserError(f"a source of {length:,} tokens is longer than {bound}", hint="--too-long truncate or split")
        return ([encoded.cut(most)], True) if too_long == "truncate" else (pieces(encoded, features, most), False)

    def _prefix(self, text: str, source: Read) -> Encoded:
        encoded, longest = self.coder.encode_target(text, source), self.config.model.longest
        if longest is not None and len(encoded.ids) >= longest:
            raise UserError(f"a prefix of {len(encoded.ids):,} tokens is longer than {self.config.most_tokens[1]}")
        return encoded

    def _demands(self, part: Encoded, number: int, source: Read) -> tuple[tuple[Phrase, ...], tuple[Phrase, ...]]:
        """The phrases that the output to a part has to have, and those that it may not."""
        spans = [span for span in part.spans if span[1]]  # features have none
        shown = part.text[spans[0][0] : spans[-1][1]] if spans else ""
        required, forbidden = demands_of(self.terms, shown, number)
        wanted = [self._ids(phrase, source) for phrase in required]
        banned = [self._ids(phrase, source) for phrase in forbidden]
        banned = [phrase for phrase in banned if phrase and UNKNOWN not in phrase]  # others cannot come
        for text, phrase in zip(required, wanted, strict=True):
            if UNKNOWN in phrase or not phrase:
                raise UserError(f"the run's vocabulary does not hold what is required: {text}", hint="leave it out")
            for other in banned:
                if any(phrase[start : start + len(other)] == other for start in range(len(phrase))):
                    raise UserError(f"what is required is forbidden: {text}", hint="take one of the two entries out")
        return tuple(wanted), tuple(banned)

    def _ids(self, phrase: str, source: Read) -> Phrase:
        key = phrase, tuple(source.extra)
        if key not in self._known:
            self._known[key] = tuple(self.coder.encode_target(phrase, source).ids)
        return self._known[key]
