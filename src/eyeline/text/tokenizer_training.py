"""How the vocabulary of each kind is made: texts in, a file's content in the format of the `tokenizers` library out.

Knows how text is cut for each kind. Knows nothing of reserved ids, of features, or of encoding; tokenizers.py does.

The same texts always give the same bytes: ties are broken by code point, and the library's threads are switched off meanwhile.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from eyeline.config import TokenizerKind
from eyeline.text.unigram import train_unigram
from eyeline.text.words import BLANKS

UNKNOWN_PIECE = "<unk>"  # how the files write the entry for what is unknown
OUTSIDE = 3  # PAD, BEGIN and END take no entry of the file but count in a vocabulary's size

# A code point each, line breaks included.
CHARACTERS = r"[\s\S]"
# Symbols are what stands between runs of U+0020 and tabs; other white space is part of a symbol.
SYMBOL_GAPS = f"[{BLANKS}]+"
# Radford et al. 2019 (GPT-2) in spirit: a token carries the blank before it, so that a text is its tokens put together.
# Letters, marks, digits and _ stay together; so do other signs, each with the marks that sit on it; white space is single.
PIECES = r" ?\w+| ?(?:[^\w\s]\p{M}*)+|\s"

MERGE_FREQUENCY = 2  # a pair of symbols seen once joins nothing that a second text could share


def train(kind: TokenizerKind, texts: Iterable[str], size: int, min_frequency: int) -> str:
    """The JSON of a tokenizer trained on `texts`.

    Args:
        size: the most entries of the vocabulary, PAD, UNKNOWN, BEGIN and END counted.
        min_frequency: characters (`character`, `bpe`, `unigram`), symbols or words seen less often become unknown.
    """
    entries = size - OUTSIDE  # of the file, UNKNOWN among them
    assert entries >= 2, "a vocabulary has room for the reserved ids and one entry at least"
    if kind == "character":
        counts = Counter(chain.from_iterable(texts))
        return _closed_vocabulary(_most_frequent(counts, entries - 1, min_frequency), CHARACTERS, "isolated", decoders.Fuse())
    if kind == "whitespace-symbols":
        gaps = re.compile(SYMBOL_GAPS)
        counts = Counter(symbol for text in texts for symbol in gaps.split(text) if symbol and symbol != UNKNOWN_PIECE)
        return _closed_vocabulary(_most_frequent(counts, entries - 1, min_frequency), SYMBOL_GAPS, "removed", None)
    with _one_thread():
        if kind == "word":
            return _words(texts, entries, min_frequency)
        return _subwords(kind, texts, entries, min_frequency)


def symbols(entries: Sequence[str]) -> str:
    """The JSON of a `whitespace-symbols` tokenizer that knows just these entries, in this order."""
    return _closed_vocabulary(entries, SYMBOL_GAPS, "removed", None)


def _most_frequent(counts: Counter[str], most: int, min_frequency: int) -> list[str]:
    """By frequency, then by code point, so that ties do not depend on the order of the texts."""
    kept = [(symbol, count) for symbol, count in counts.items() if count >= min_frequency]
    kept.sort(key=lambda item: (-item[1], item[0]))
    return [symbol for symbol, _ in kept[:most]]


def _split(pattern: str, behavior: str) -> Any:
    return pre_tokenizers.Split(tokenizers.Regex(pattern), behavior)


def _closed_vocabulary(symbols: Sequence[str], pattern: str, behavior: str, decoder: Any) -> str:
    vocabulary = {symbol: number for number, symbol in enumerate([UNKNOWN_PIECE, *symbols])}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN_PIECE))
    tokenizer.pre_tokenizer = _split(pattern, behavior)
    if decoder is not None:  # without one the library puts a blank between tokens, which is what symbols want
        tokenizer.decoder = decoder
    return str(tokenizer.to_str(pretty=True))


def _words(texts: Iterable[str], entries: int, min_frequency: int) -> str:
    tokenizer = tokenizers.Tokenizer(models.WordLevel(unk_token=UNKNOWN_PIECE))
    trainer = trainers.WordLevelTrainer(
        vocab_size=entries, min_frequency=min_frequency, special_tokens=[UNKNOWN_PIECE], show_progress=False
    )
    return _trained(tokenizer, (" " + text for text in texts if text), trainer)


def _subwords(kind: TokenizerKind, texts: Iterable[str], entries: int, min_frequency: int) -> str:
    texts = list(texts)  # read twice: for its characters, then for what they form
    counts = Counter(chain.from_iterable(texts))
    counts.pop(" ", None)
    # The blank is put before every text, so it is known however few other blanks there are.
    alphabet = [" ", *_most_frequent(counts, entries - 2, min_frequency)]
    trainer: Any
    if kind == "bpe":
        tokenizer = tokenizers.Tokenizer(models.BPE(unk_token=UNKNOWN_PIECE))
        trainer = trainers.BpeTrainer(
            vocab_size=entries,
            min_frequency=max(MERGE_FREQUENCY, min_frequency),
            special_tokens=[UNKNOWN_PIECE],
            show_progress=False,
        )
        return _trained(tokenizer, _known_stretches(texts, alphabet), trainer)
    cut = _split(PIECES, "isolated")
    words = Counter(word for stretch in _known_stretches(texts, alphabet) for word, _ in cut.pre_tokenize_str(stretch))
    pieces = [(UNKNOWN_PIECE, 0.0), *train_unigram(words, alphabet, entries - 1)]
    return _dressed(tokenizers.Tokenizer(models.Unigram(pieces, unk_id=0)))


def _known_stretches(texts: Iterable[str], alphabet: Sequence[str]) -> Iterator[str]:
    """Texts with the blank put before them, cut where a character outside the alphabet stands: it is learnt from no text."""
    known = re.compile("[" + "".join(re.escape(character) for character in alphabet) + "]+")
    for text in texts:
        if text:
            yield from known.findall(" " + text)


def _trained(tokenizer: Any, texts: Iterable[str], trainer: Any) -> str:
    """Lets the library train on texts that have their blank before them."""
    tokenizer.pre_tokenizer = _split(PIECES, "isolated")
    tokenizer.train_from_iterator(texts, trainer)
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = []  # the trainer adds the unknown entry there, and would match its name in text
    return _dressed(tokenizers.Tokenizer.from_str(json.dumps(content)))


def _dressed(tokenizer: Any) -> str:
    """A blank goes before every text and comes off again, so that a text's beginning is like that of any word in it."""
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.pre_tokenizer = _split(PIECES, "isolated")
    tokenizer.decoder = decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return str(tokenizer.to_str(pretty=True))


@contextmanager
def _one_thread() -> Iterator[None]:
    """The library reads its threads from the environment; whatever the user set there is put back."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
