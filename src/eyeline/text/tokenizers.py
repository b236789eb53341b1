"""Text to ids and back, on the `tokenizers` library. Knows vocabularies and spans; knows no files of pairs and no tensors.

The reserved ids live outside the tokenizer's file, so that text can never become one of them, whatever entries the file has:

    0 PAD · 1 UNKNOWN · 2 BEGIN · 3 END · 4 … the file's entries, but for its unknown one, which is 1 · then the features

Features (inflection tags) are given beside the text and never matched in it.

Extended ids, from `size` upwards, are those of one source's own words, which a model that copies may output: `size + k` is the
k-th of them. What reads generated ids takes those words as `extra`, written as in `Encoded.surfaces`; see data/copying.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import tokenizers as hf

from eyeline.config import TokenizerKind
from eyeline.contracts import BEGIN, END, PAD, RESERVED, UNKNOWN
from eyeline.errors import RunError
from eyeline.files import write_json, write_text
from eyeline.text import tokenizer_training as training
from eyeline.text.words import Span, word_index

# Without a word from the user the library warns, on the terminal, in every process forked after it was used.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

VISIBLE_BLANK = "▁"  # how the blank that a subword carries is shown, as in SentencePiece


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as the model reads it, features first, without BEGIN and END."""

    ids: list[int]
    tokens: list[str]  # as people read them; what is unknown as it was typed
    spans: list[Span]  # of each token in the text, a blank it carries included; (0, 0) for features
    text: str
    surfaces: list[str]  # what each token stands for in the text, its blank included; unknown as typed; empty for features

    @property
    def words(self) -> list[int | None]:
        """The number of the word that each token belongs to; see `words.word_index`."""
        return word_index(self.text, self.spans)

    def cut(self, most: int) -> Encoded:
        """The first `most` tokens."""
        return Encoded(self.ids[:most], self.tokens[:most], self.spans[:most], self.text, self.surfaces[:most])


class Tokenizer:
    """A vocabulary: made by `train` or `load`, never changed afterwards."""

    def __init__(self, content: str, features: Sequence[str] = ()) -> None:
        """
        Args:
            content: JSON in the format of the `tokenizers` library.
            features: symbols beside the text, distinct.

        Raises:
            RunError: `content` is not such JSON, or is of a tokenizer that loses text.
        """
        self._content = content
        self._hf = _parsed(content)
        self.features = tuple(features)
        model = json.loads(content)
        self.kind, self._spaced, self._pieced = _kind_of(model)
        own = sorted((number, piece) for piece, number in self._hf.get_vocab(with_added_tokens=True).items())
        unknown = _unknown_piece(model)
        others = [(number, piece) for number, piece in own if piece != unknown]
        unknown_text = " " + RESERVED[UNKNOWN] if self.kind == "word" and self._spaced else RESERVED[UNKNOWN]
        self._pieces = ["", unknown_text, "", "", *(piece for _, piece in others)]
        self._ids = {number: place for place, (number, _) in enumerate(others, start=len(RESERVED))}
        self._ids.update({number: UNKNOWN for number, piece in own if piece == unknown})
        self._known = {piece: self._ids[number] for number, piece in own}
        self._feature_ids = {symbol: place for place, symbol in enumerate(self.features, start=len(self._pieces))}
        self._shown = [*RESERVED, *(self._display(piece) for _, piece in others), *self.features]

    @classmethod
    def train(
        cls, kind: TokenizerKind, texts: Iterable[str], size: int, min_frequency: int = 1, features: Iterable[str] = ()
    ) -> Self:
        """Learns a vocabulary. The same texts always give the same file, whatever the threads.

        Args:
            texts: normalised, one a line.
            size: the most entries, reserved ones counted and features not.
            min_frequency: characters, symbols or words seen less often are unknown.
            features: may repeat; they are sorted by code point.
        """
        return cls(training.train(kind, texts, size, min_frequency), sorted(set(features)))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads what `save` wrote, or any file of the `tokenizers` library. Raises RunError that names the file."""
        beside = _features_path(path)
        try:
            features = json.loads(_read(beside)) if beside.exists() else []
            content = _read(Path(path))
        except (OSError, ValueError) as error:
            raise RunError(f"the tokenizer cannot be read: {_short(error)}", str(path)) from error
        if not (isinstance(features, list) and all(isinstance(symbol, str) for symbol in features)):
            raise RunError("not a list of feature symbols", str(beside))
        try:
            return cls(content, features)
        except RunError as error:
            raise RunError(error.what, str(path), error.hint) from error

    def save(self, path: str | Path) -> None:
        """Writes the tokenizer's file, and beside `X.tokenizer.json` an `X.features.json` when there are features."""
        beside = _features_path(path)
        if self.features:
            write_json(beside, self.features)
        elif beside.exists():
            beside.unlink()
        write_text(path, self._content)

    @property
    def ours(self) -> bool:
        return self._spaced

    @property
    def content(self) -> str:
        return self._content

    @property
    def size(self) -> int:
        """Ids that the model needs: reserved, entries, and features."""
        return len(self._shown)

    def encode(self, text: str, features: Sequence[str] = ()) -> Encoded:
        """One text. A feature that training never saw is UNKNOWN."""
        return self.encode_batch([text], [features])[0]

    def encode_batch(self, texts: Sequence[str], features: Sequence[Sequence[str]] | None = None) -> list[Encoded]:
        """Many texts, each with its features when there are any."""
        encodings = self._hf.encode_batch(list(texts), add_special_tokens=False)
        given = features if features is not None else [()] * len(texts)
        return [self._encoded(*item) for item in zip(encodings, texts, given, strict=True)]

    def encode_ids(self, texts: Sequence[str], features: Sequence[Sequence[str]] | None = None) -> list[list[int]]:
        """The ids alone, in a fraction of the time."""
        encodings = self._hf.encode_batch_fast(list(texts), add_special_tokens=False)
        given = features if features is not None else [()] * len(texts)
        table = self._ids
        return [
            [*self._ids_of_features(symbols), *(table[number] for number in encoding.ids)]
            for encoding, symbols in zip(encodings, given, strict=True)
        ]

    def lookup(self, surface: str) -> int:
        """The id of a piece as it stands in `Encoded.surfaces`, UNKNOWN where the vocabulary has no such entry."""
        return self._known.get(surface, UNKNOWN)

    def decode(self, ids: Iterable[int], extra: Sequence[str] = ()) -> str:
        """The text of generated ids: PAD, BEGIN, END and features are no text, UNKNOWN is written `<unk>`."""
        return self._joined([self._piece(number, extra) for number in ids if self._is_text(number)])

    def token(self, number: int, extra: Sequence[str] = ()) -> str:
        """How an id is shown: `</s>` for END; a subword's blank as ▁; a word without its blank."""
        return self._shown[number] if number < self.size else self._display(extra[number - self.size])

    def tokens_of(self, ids: Iterable[int], extra: Sequence[str] = ()) -> list[str]:
        """How generated ids are shown, one string an id."""
        return [self.token(number, extra) for number in ids]

    def piece(self, number: int, extra: Sequence[str] = ()) -> str:
        """What an id stands for in the text, its blank included; empty for reserved ids (but UNKNOWN) and features."""
        return self._piece(number, extra) if self._is_text(number) else ""

    def decoded_spans(self, ids: Sequence[int], extra: Sequence[str] = ()) -> list[Span]:
        """The place of each id in `decode(ids)`; empty for what is no text."""
        if self._pieced:
            return self._spans_of_pieces([self.piece(number, extra) for number in ids])
        ends = [len(self.decode(ids[:count], extra)) for count in range(len(ids) + 1)]
        return [(min(ends[place : place + 2]), ends[place + 1]) for place in range(len(ids))]

    def decoded_word_index(self, ids: Sequence[int], extra: Sequence[str] = ()) -> list[int | None]:
        """For each generated id, the number of the word of `decode(ids)` that it belongs to; see `words.word_index`."""
        return word_index(self.decode(ids, extra), self.decoded_spans(ids, extra))

    def _is_text(self, number: int) -> bool:
        return number not in (PAD, BEGIN, END) and (number < len(self._pieces) or number >= self.size)

    def _piece(self, number: int, extra: Sequence[str]) -> str:
        return self._pieces[number] if number < self.size else extra[number - self.size]

    def _joined(self, pieces: list[str]) -> str:
        return str(self._hf.decoder.decode(pieces)) if self._hf.decoder is not None else " ".join(pieces)

    def _display(self, piece: str) -> str:
        if not self._spaced or not piece.startswith(" "):
            return piece
        if self.kind == "word" and len(piece) > 1:
            return piece[1:]
        return VISIBLE_BLANK + piece[1:]

    def _ids_of_features(self, symbols: Sequence[str]) -> list[int]:
        return [self._feature_ids.get(symbol, UNKNOWN) for symbol in symbols]

    def _encoded(self, encoding: Any, text: str, features: Sequence[str]) -> Encoded:
        ids = [self._ids[number] for number in encoding.ids]
        spans: list[Span] = encoding.offsets
        surfaces = [
            text[start:end] if number == UNKNOWN else self._pieces[number]
            for number, (start, end) in zip(ids, spans, strict=True)
        ]
        if self._spaced and ids:  # the first token has the blank that was put before the text
            if alone := len(ids) > 1 and spans[1][0] == 0:
                spans[0] = (0, 0)
            if ids[0] == UNKNOWN:
                surfaces[0] = " " if alone else " " + surfaces[0]
        tokens = [
            self._display(surface) if number == UNKNOWN else self._shown[number]
            for number, surface in zip(ids, surfaces, strict=True)
        ]
        return Encoded(
            [*self._ids_of_features(features), *ids],
            [*features, *tokens],
            [(0, 0)] * len(features) + spans,
            text,
            [""] * len(features) + surfaces,
        )

    def _spans_of_pieces(self, pieces: Sequence[str]) -> list[Span]:
        """Where decoding puts pieces one after the other (symbols: with a blank between them); empty ones are no text."""
        between = 1 if self.kind == "whitespace-symbols" else 0
        first = next((piece for piece in pieces if piece), "")
        end, gap = (-1 if self._spaced and first.startswith(" ") else 0), 0  # decoding strips one leading blank
        spans = []
        for piece in pieces:
            if not piece:
                spans.append((max(end, 0), max(end, 0)))
                continue
            start = end + gap
            end, gap = start + len(piece), between
            spans.append((max(start, 0), max(end, 0)))
        return spans


def _parsed(content: str) -> Any:
    """The library's object. It raises bare `Exception` for whatever is wrong with a file."""
    try:
        tokenizer = hf.Tokenizer.from_str(content)
        model = json.loads(content)["model"]
    except Exception as error:
        raise RunError(
            f"not a tokenizer of the `tokenizers` library: {_short(error)}", hint="a tokenizer.json is wanted"
        ) from error
    unknown = model.get("unk_token")
    if unknown is not None and tokenizer.token_to_id(unknown) is None:
        raise RunError(f"the tokenizer's own unknown token '{unknown}' is not in its vocabulary")
    covers = model.get("byte_fallback") or '"ByteLevel"' in content
    if _unknown_piece({"model": model}) is None and not covers:
        raise RunError("the tokenizer has no unknown token and would drop what it does not know", hint="give it an unk_token")
    tokenizer.no_padding()
    tokenizer.no_truncation()  # nothing is cut silently
    if getattr(tokenizer.model, "dropout", None) is not None:
        tokenizer.model.dropout = None  # a text has one encoding
    return tokenizer


def _unknown_piece(content: dict[str, Any]) -> str | None:
    """The entry that stands for what is unknown, when there is one."""
    model = content["model"]
    if model.get("unk_token") is not None:
        return str(model["unk_token"])
    number = model.get("unk_id")
    return str(model["vocab"][number][0]) if number is not None else None


def _kind_of(content: dict[str, Any]) -> tuple[str, bool, bool]:
    """(kind, whether tokens carry their blank as ours do, whether decoding puts pieces one after the other)."""
    pattern = ((content.get("pre_tokenizer") or {}).get("pattern") or {}).get("Regex")
    if pattern == training.CHARACTERS:
        return "character", False, True
    if pattern == training.SYMBOL_GAPS:
        return "whitespace-symbols", False, True
    names = {"BPE": "bpe", "Unigram": "unigram", "WordLevel": "word", "WordPiece": "wordpiece"}
    ours = pattern == training.PIECES and (content.get("normalizer") or {}).get("type") == "Prepend"
    return names.get(content["model"]["type"], "given"), ours, ours


def _features_path(path: str | Path) -> Path:
    path = Path(path)
    return path.with_name(path.name.removesuffix(".json").removesuffix(".tokenizer") + ".features.json")


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8-sig")


def _short(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return str(error).partition("\n")[0]
