"""From settings to what a loop needs: pairs read and filtered, tokenizers, ids. Knows text and data; no models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from eyeline.config import Config
from eyeline.data.corpus import Corpus
from eyeline.errors import ConfigError, DataError
from eyeline.runs import Run
from eyeline.text.normalization import normalize
from eyeline.text.pairs import ReadReport, drop_blank, read_pairs
from eyeline.text.records import Pair
from eyeline.text.report import DataReport, SideCount, SideReport
from eyeline.text.tally import Tally
from eyeline.text.tokenizers import Tokenizer

Name = Literal["source", "target"]
Ids = list[list[int]]
CHUNK = 10_000  # lines that are encoded at a time


@dataclass(frozen=True)
class Portion:
    """The pairs of one portion (train, valid), those left out gone, and their ids."""

    pairs: list[Pair]
    sources: Ids
    targets: Ids

    def corpus(self) -> Corpus:
        return Corpus.of(self.sources, self.targets)


@dataclass(frozen=True)
class Prepared:
    """What training starts from."""

    source: Tokenizer
    target: Tokenizer
    train: Portion
    valid: Portion | None
    report: DataReport


def prepare(config: Config, run: Run | None) -> Prepared:
    """Reads all pairs, trains the tokenizers (or takes those of a `run` that goes on) and makes ids.

    Raises:
        DataError: a file or a line is at fault, a pair is too long, or nothing is left to train on.
    """
    reads, long = [ReadReport(), ReadReport()], Tally()
    texts = _read(config, config.data.train, reads[0])
    valid_texts = _read(config, config.data.valid, reads[1]) if config.data.valid else None
    source, target = (run.source, run.target) if run else tokenizers(config, texts)
    train = _fit(config, _ids(texts, source, target), long, config.data.train)
    valid = _fit(config, _ids(valid_texts, source, target), long, config.data.valid) if valid_texts is not None else None
    sides = [
        SideReport("source", source, config.data.form("source"), _count(train.sources), _count(valid.sources) if valid else None),
        SideReport("target", target, config.data.form("target"), _count(train.targets), _count(valid.targets) if valid else None),
    ]
    return Prepared(source, target, train, valid, DataReport.of(sides, reads, [long]))


@dataclass(frozen=True)
class Texts:
    """Pairs, and their sides as the tokenizers see them."""

    pairs: list[Pair]
    sources: list[str]
    targets: list[str]


def tokenizers(config: Config, texts: Texts) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers that the settings ask for, trained on `texts` or loaded from the files given."""
    settings = config.tokenizer
    features = sorted(set(chain.from_iterable(pair.features for pair in texts.pairs)))
    if settings.shared:
        kind, size, _ = settings.side("source")
        both = Tokenizer.train(kind, chain(texts.sources, texts.targets), size, settings.min_frequency, features)
        return both, both
    return _tokenizer(config, "source", texts.sources, features), _tokenizer(config, "target", texts.targets, ())


def _tokenizer(config: Config, side: Name, texts: list[str], features: Sequence[str]) -> Tokenizer:
    kind, size, file = config.tokenizer.side(side)
    if file is None:
        return Tokenizer.train(kind, texts, size, config.tokenizer.min_frequency, features)
    given = Tokenizer.load(file)
    if set(features) - set(given.features):
        raise ConfigError("the given tokenizer lacks features of the pairs", f"tokenizer.{side}.file={file}")
    return given


def _read(config: Config, paths: Sequence[str], report: ReadReport) -> Texts:
    """The pairs of a portion but for those with a blank side, which the report counts."""
    data = config.data
    found = read_pairs(paths, data.columns, data.on_bad_line, data.source_language, data.target_language, report)
    pairs = list(drop_blank(found, report.skipped))
    if not pairs:
        raise DataError("no pair is left: in each of them a side is blank", " ".join(paths))
    sources = [normalize(pair.source, data.form("source"), data.lowercase) for pair in pairs]
    targets = [normalize(pair.target, data.form("target"), data.lowercase) for pair in pairs]
    return Texts(pairs, sources, targets)


def _ids(texts: Texts, source: Tokenizer, target: Tokenizer) -> Portion:
    """In chunks, because what the library makes of a text is many times larger than its ids."""
    sources, targets = Ids(), Ids()
    for start in range(0, len(texts.pairs), CHUNK):
        chunk = slice(start, start + CHUNK)
        features = [pair.features for pair in texts.pairs[chunk]] if source.features else None
        sources += source.encode_ids(texts.sources[chunk], features)
        targets += target.encode_ids(texts.targets[chunk])
    return Portion(texts.pairs, sources, targets)


def _fit(config: Config, portion: Portion, long: Tally, paths: Sequence[str]) -> Portion:
    """The portion without, or with shortened, pairs of more than `data.max_length` tokens on a side."""
    most, choice = config.data.max_length, config.data.too_long
    fits = [max(len(s), len(t)) <= most for s, t in zip(portion.sources, portion.targets, strict=True)]
    if all(fits):
        return portion
    for pair, fit in zip(portion.pairs, fits, strict=True):
        if not fit and choice in ("error", "split"):
            hint = "raise data.max_length, or set data.too_long to truncate or skip"
            raise DataError(f"a pair of more than data.max_length={most} tokens", pair.path, pair.line, hint)
        if not fit:
            long.add("too long, cut" if choice == "truncate" else "too long", pair.path, pair.line)
    if choice == "truncate":
        return replace(portion, sources=[s[:most] for s in portion.sources], targets=[t[:most] for t in portion.targets])
    kept = [place for place, fit in enumerate(fits) if fit]
    if not kept:
        raise DataError(f"no pair is left: each has more than data.max_length={most} tokens", " ".join(paths))
    return Portion(*([items[place] for place in kept] for items in (portion.pairs, portion.sources, portion.targets)))  # type: ignore[arg-type]


def _count(lines: Ids) -> SideCount:
    count = SideCount()
    count.extend(lines)
    return count
