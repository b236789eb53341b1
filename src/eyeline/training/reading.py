"""From files to what ids are made of: pairs read, tagged and filtered, tokenizers, mixtures. Knows text and data; no models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Literal

import numpy as np

from eyeline.config import Config, CorpusSettings
from eyeline.data.coding import Spelling
from eyeline.data.corpus import Noise
from eyeline.data.noise import Recut
from eyeline.data.permutation import permuted
from eyeline.data.plan import Part, shares
from eyeline.errors import ConfigError
from eyeline.text import tokenizer_training, vectors
from eyeline.text.bpe_dropout import BpeDropout
from eyeline.text.filters import Filters, Seen
from eyeline.text.pairs import ReadReport, drop_blank, read_pairs
from eyeline.text.records import Pair
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.portions import CHUNK

Name = Literal["source", "target"]


def resolved(config: Config, pairs: Iterable[Pair]) -> Config:
    """The settings with what the pairs decide: for pointing, the width of the first source that is a list of numbers.

    Raises:
        ConfigError: settings that make no sense with sources of numbers.
    """
    first = next((pair.source for pair in pairs if pair.source != vectors.EMPTY), "")
    if not config.points or config.numbers or not vectors.looks_real(first):
        return config
    values = config.to_dict()
    values["model"]["element_size"] = vectors.width(vectors.read(first))
    return Config.from_dict(values)


def tokenizers(config: Config, pairs: Iterable[Pair], count: int) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers that the settings ask for, loaded from the files given or trained on `pairs`, which can be gone through more
    than once and of which there are `count`."""
    settings, data = config.tokenizer, config.data
    spelling = Spelling(data.form("source"), data.form("target"), data.lowercase)
    features = sorted(set(chain.from_iterable(pair.features for pair in pairs)))
    sources, targets = (spelling.of_source(pair.source) for pair in pairs), (spelling.of_target(pair.target) for pair in pairs)
    if settings.shared:
        kind, size, _ = settings.side("source")
        texts = chain(_sample(config, kind, sources, count), _sample(config, kind, targets, count))
        both = Tokenizer.train(kind, texts, size, settings.min_frequency, features)
        return both, both
    if config.points:
        elements = _symbols([]) if config.numbers else _tokenizer(config, "source", sources, (), count)
        return elements, _symbols(map(str, range(data.max_length)))
    below = _tokenizer(config, "source", sources, features, count)
    return below, _tokenizer(config, "target", targets, (), count)


def _symbols(entries: Iterable[str]) -> Tokenizer:
    return Tokenizer(tokenizer_training.symbols(list(entries)))


def _tokenizer(config: Config, side: Name, texts: Iterator[str], features: Sequence[str], count: int) -> Tokenizer:
    kind, size, file = config.tokenizer.side(side)
    if file is None:
        chosen = _sample(config, kind, texts, count)
        return Tokenizer.train(kind, chosen, size, config.tokenizer.min_frequency, features)
    given = Tokenizer.load(file)
    if set(features) - set(given.features):
        raise ConfigError("the given tokenizer lacks features of the pairs", f"tokenizer.{side}.file={file}")
    return given


def _sample(config: Config, kind: str, texts: Iterator[str], count: int) -> Iterator[str]:
    """Of `count` texts those that a kind of tokenizer learns from: all, or `tokenizer.sample` of them, drawn by the seed."""
    most = config.tokenizer.sample
    if kind not in ("bpe", "unigram") or count <= most:
        yield from texts
        return
    for start in range(0, count, CHUNK):
        places = np.arange(start, min(start + CHUNK, count))
        chosen = permuted(places, count, (config.seed, count)) < most
        yield from (text for text, is_chosen in zip(islice(texts, len(places)), chosen.tolist(), strict=True) if is_chosen)


def training_pairs(config: Config, corpus: CorpusSettings, report: ReadReport, seen: Seen) -> Iterator[Pair]:
    """The pairs of a corpus, tagged, but for those that are not worth training on, which the report counts."""
    wanted = config.data.filter
    scripts = {side: tuple(name.lower() for name in names) for side, names in wanted.scripts.items()}
    filters = Filters(wanted.min_characters, wanted.max_characters, wanted.max_ratio, wanted.min_letters, scripts)
    pairs = read(config, corpus.pairs, report)
    if corpus.tag is not None:
        pairs = (replace(pair, features=(corpus.tag, *pair.features)) for pair in pairs)
    if filters != Filters():
        pairs = filters.kept(pairs, report.skipped)
    return seen.first_only(pairs, report.skipped) if wanted.duplicates == "drop" else pairs


def read(config: Config, paths: Sequence[str], report: ReadReport) -> Iterator[Pair]:
    """The pairs of files but for those with a blank side, which the report counts."""
    data = config.data
    found = read_pairs(
        paths, data.columns, data.on_bad_line, data.source_language, data.target_language, report, numbers=config.points
    )
    return drop_blank(found, report.skipped)


def mixed(config: Config, pairs: Sequence[int]) -> tuple[Part, ...]:
    """How the corpora of so many pairs each are mixed; none where there is one that is taken whole."""
    parts = shares(pairs, [corpus.weight for corpus in config.data.all_corpora], config.data.temperature)
    return () if len(parts) == 1 and parts[0].draws == parts[0].pairs else parts


def noise(config: Config, source: Tokenizer, target: Tokenizer) -> Noise | None:
    """What `data.bpe_dropout` does to ids, on the sides whose tokenizer is of that kind.

    Raises:
        ConfigError: there is none, such as with a given tokenizer that learnt other merges.
    """
    rate = config.data.bpe_dropout
    if not rate:
        return None
    below, above = (BpeDropout(side, rate) if side.kind == "bpe" and side.ours else None for side in (source, target))
    if below is above is None:
        raise ConfigError("no tokenizer has merges of ours to leave out", f"data.bpe_dropout={rate:g}", "tokenizer.kind: bpe")
    return Recut(below, above, config.seed, config.most_tokens[0])
