"""From settings to what a loop needs: pairs read and filtered, tokenizers, ids. Knows text and data; no models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from eyeline.config import Config
from eyeline.data.coding import Coder, Spelling, coder
from eyeline.errors import ConfigError, DataError
from eyeline.runs import Run
from eyeline.text import tokenizer_training, vectors
from eyeline.text.pairs import ReadReport, drop_blank, read_pairs
from eyeline.text.records import Pair
from eyeline.text.report import DataReport, SideCount, SideReport
from eyeline.text.tally import Tally
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.portions import Ids, Portion, fitted, portion

Name = Literal["source", "target"]


@dataclass(frozen=True)
class Prepared:
    """What training starts from."""

    config: Config  # with what the pairs decide
    source: Tokenizer
    target: Tokenizer
    coder: Coder
    train: Portion
    valid: Portion | None
    report: DataReport


def prepare(config: Config, run: Run | None) -> Prepared:
    """Reads all pairs, trains the tokenizers (or takes those of a `run` that goes on) and makes ids.

    Raises:
        ConfigError: settings that do not fit the pairs.
        DataError: a file or a line is at fault, a pair is too long, or nothing is left to train on.
    """
    reads, left_out = [ReadReport(), ReadReport()], Tally()
    pairs = _read(config, config.data.train, reads[0])
    valid_pairs = _read(config, config.data.valid, reads[1]) if config.data.valid else None
    config = resolved(config, pairs)
    source, target = (run.source, run.target) if run else tokenizers(config, pairs)
    code = coder(config, source, target)
    train = _portion(config, code, pairs, config.data.train, left_out, links=config.training.guided_alignment > 0)
    valid = None if valid_pairs is None else _portion(config, code, valid_pairs, config.data.valid, left_out)
    sides = [
        _side(config, "source", source, train.sources, valid.sources if valid else None, code),
        _side(config, "target", target, train.targets, valid.targets if valid else None, code),
    ]
    return Prepared(config, source, target, code, train, valid, DataReport.of(sides, reads, [left_out]))


def _side(config: Config, name: Name, tokenizer: Tokenizer, train: Ids, valid: Ids | None, code: Coder) -> SideReport:
    counts = _count(train), None if valid is None else _count(valid)
    return SideReport(name, tokenizer, config.data.form(name), *counts, code.instead.get(name, ""))


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


def tokenizers(config: Config, pairs: Sequence[Pair]) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers that the settings ask for, trained on `pairs` or loaded from the files given."""
    settings, data = config.tokenizer, config.data
    spelling = Spelling(data.form("source"), data.form("target"), data.lowercase)
    features = sorted(set(chain.from_iterable(pair.features for pair in pairs)))
    sources, targets = (spelling.of_source(pair.source) for pair in pairs), (spelling.of_target(pair.target) for pair in pairs)
    if settings.shared:
        kind, size, _ = settings.side("source")
        both = Tokenizer.train(kind, chain(sources, targets), size, settings.min_frequency, features)
        return both, both
    if config.points:
        elements = _symbols([]) if config.numbers else _tokenizer(config, "source", sources, ())
        return elements, _symbols(map(str, range(data.max_length)))
    return _tokenizer(config, "source", sources, features), _tokenizer(config, "target", targets, ())


def _symbols(entries: Iterable[str]) -> Tokenizer:
    return Tokenizer(tokenizer_training.symbols(list(entries)))


def _tokenizer(config: Config, side: Name, texts: Iterable[str], features: Sequence[str]) -> Tokenizer:
    kind, size, file = config.tokenizer.side(side)
    if file is None:
        return Tokenizer.train(kind, texts, size, config.tokenizer.min_frequency, features)
    given = Tokenizer.load(file)
    if set(features) - set(given.features):
        raise ConfigError("the given tokenizer lacks features of the pairs", f"tokenizer.{side}.file={file}")
    return given


def _read(config: Config, paths: Sequence[str], report: ReadReport) -> list[Pair]:
    """The pairs of a portion but for those with a blank side, which the report counts."""
    data = config.data
    found = read_pairs(
        paths, data.columns, data.on_bad_line, data.source_language, data.target_language, report, numbers=config.points
    )
    pairs = list(drop_blank(found, report.skipped))
    if not pairs:
        raise DataError("no pair is left: in each of them a side is blank", " ".join(paths))
    return pairs


def _portion(
    config: Config, code: Coder, pairs: Sequence[Pair], paths: Sequence[str], left_out: Tally, *, links: bool = False
) -> Portion:
    made = portion(config, code, pairs, left_out, links=links)
    if not made.pairs:
        raise DataError(f"no pair is left: each of {len(pairs):,} was skipped", " ".join(paths))
    return fitted(config, made, paths, left_out)


def _count(lines: Ids) -> SideCount:
    count = SideCount()
    count.extend(lines)
    return count
