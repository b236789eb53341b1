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
    train_pairs = _read(config, config.data.train, reads[0])
    valid_pairs = _read(config, config.data.valid, reads[1]) if config.data.valid else None
    if not train_pairs:
        raise DataError("no pair is left to train on", " ".join(config.data.train))
    source, target = (run.source, run.target) if run else tokenizers(config, train_pairs)
    train = _fit(config, _ids(config, train_pairs, source, target), long)
    valid = _fit(config, _ids(config, valid_pairs, source, target), long) if valid_pairs is not None else None
    if not train.pairs or (valid is not None and not valid.pairs):
        which = "train" if not train.pairs else "validate"
        raise DataError(f"no pair is left to {which} on", f"data.max_length={config.data.max_length}")
    sides = [
        SideReport("source", source, config.data.form("source"), _count(train.sources), _count(valid.sources) if valid else None),
        SideReport("target", target, config.data.form("target"), _count(train.targets), _count(valid.targets) if valid else None),
    ]
    return Prepared(source, target, train, valid, DataReport.of(sides, reads, [long]))


def tokenizers(config: Config, pairs: Sequence[Pair]) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers that the settings ask for, trained on `pairs` or loaded from the files given."""
    settings = config.tokenizer
    sources, targets = _texts(config, pairs, "source"), _texts(config, pairs, "target")
    features = sorted(set(chain.from_iterable(pair.features for pair in pairs)))
    if settings.shared:
        kind, size, _ = settings.side("source")
        both = Tokenizer.train(kind, chain(sources, targets), size, settings.min_frequency, features)
        return both, both
    return _tokenizer(config, "source", sources, features), _tokenizer(config, "target", targets, ())


def _tokenizer(config: Config, side: Name, texts: list[str], features: Sequence[str]) -> Tokenizer:
    kind, size, file = config.tokenizer.side(side)
    if file is None:
        return Tokenizer.train(kind, texts, size, config.tokenizer.min_frequency, features)
    if features:
        raise ConfigError("a given tokenizer has no features, but the pairs do", f"tokenizer.{side}.file={file}")
    return Tokenizer.load(file)


def _read(config: Config, paths: Sequence[str], report: ReadReport) -> list[Pair]:
    """The pairs of a portion but for those with a blank side, which the report counts."""
    data = config.data
    pairs = read_pairs(paths, data.columns, data.on_bad_line, data.source_language, data.target_language, report)
    return list(drop_blank(pairs, report.skipped))


def _texts(config: Config, pairs: Sequence[Pair], side: Name) -> list[str]:
    form, lowercase = config.data.form(side), config.data.lowercase
    return [normalize(pair.source if side == "source" else pair.target, form, lowercase) for pair in pairs]


def _ids(config: Config, pairs: list[Pair], source: Tokenizer, target: Tokenizer) -> Portion:
    features = [pair.features for pair in pairs] if source.features else None
    sources = source.encode_ids(_texts(config, pairs, "source"), features)
    return Portion(pairs, sources, target.encode_ids(_texts(config, pairs, "target")))


def _fit(config: Config, portion: Portion, long: Tally) -> Portion:
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
    return Portion(*([items[place] for place in kept] for items in (portion.pairs, portion.sources, portion.targets)))  # type: ignore[arg-type]


def _count(lines: Ids) -> SideCount:
    count = SideCount()
    count.extend(lines)
    return count
