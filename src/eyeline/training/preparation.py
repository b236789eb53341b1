"""From settings to what a loop needs: pairs read and filtered, tokenizers, ids. Knows text and data; no models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from eyeline.config import Config
from eyeline.data.coding import Coder, coder
from eyeline.errors import ConfigError, DataError
from eyeline.runs import Run
from eyeline.text.filters import Seen
from eyeline.text.pairs import ReadReport
from eyeline.text.records import Pair
from eyeline.text.report import DataReport, SideCount, SideReport
from eyeline.text.tally import Tally
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.portions import Ids, Portion, fitted, portion
from eyeline.training.reading import Name, mixed, noise, read, resolved, tokenizers, training_pairs
from eyeline.training.stored import Stored, StoredPortion, is_stored


@dataclass(frozen=True)
class Prepared:
    """What training starts from."""

    config: Config  # with what the pairs decide
    source: Tokenizer
    target: Tokenizer
    coder: Coder
    train: Portion | StoredPortion
    valid: Portion | None
    report: DataReport


def prepare(config: Config, run: Run | None) -> Prepared:
    """Reads all pairs, trains the tokenizers (or takes those of a `run` that goes on) and makes ids.

    Raises:
        ConfigError: settings that do not fit the pairs.
        DataError: a file or a line is at fault, a pair is too long, or nothing is left to train on.
    """
    if is_stored(config.data):
        return _from_stored(config, Stored.open(config.data.train[0]), run)
    reads, left_out, seen = [ReadReport(), ReadReport()], Tally(), Seen()
    corpora = config.data.all_corpora
    found = [_nonempty(training_pairs(config, corpus, reads[0], seen), corpus.pairs) for corpus in corpora]
    pairs = list(chain.from_iterable(found))
    valid_pairs = _nonempty(read(config, config.data.valid, reads[1]), config.data.valid) if config.data.valid else None
    config = resolved(config, pairs)
    source, target = (run.source, run.target) if run else tokenizers(config, pairs, len(pairs))
    code = coder(config, source, target)
    links = config.training.guided_alignment > 0
    portions = [
        _portion(config, code, pairs, corpus.pairs, left_out, links=links) for corpus, pairs in zip(corpora, found, strict=True)
    ]
    train = Portion.joined(portions)
    parts = mixed(config, [len(portion.pairs) for portion in portions])
    train = replace(train, parts=parts, noise=noise(config, source, target))
    valid = None if valid_pairs is None else _portion(config, code, valid_pairs, config.data.valid, left_out)
    sides = [
        _side(config, "source", source, train.sources, valid.sources if valid else None, code),
        _side(config, "target", target, train.targets, valid.targets if valid else None, code),
    ]
    return Prepared(config, source, target, code, train, valid, DataReport.of(sides, reads, [left_out]))


def settled(config: Config) -> Config:
    """The settings with those that made the prepared data which they name, if they do. Raises ConfigError where these differ."""
    return Stored.open(config.data.train[0]).settings(config) if is_stored(config.data) else config


def _from_stored(config: Config, stored: Stored, run: Run | None) -> Prepared:
    """Training pairs as they were prepared, with validation pairs read from their files.

    Raises:
        ConfigError: settings that do not go with what was prepared.
    """
    if config.training.from_ is not None:
        what = "the symbols of prepared data cannot be held against those of another run"
        raise ConfigError(what, f"training.from={config.training.from_}", "name the files of text in data.train")
    config = stored.settings(config)
    source, target = stored.source, stored.target
    if run is not None and (run.source.content, run.target.content) != (source.content, target.content):
        raise ConfigError("the prepared data has other vocabularies than the run", f"data.train={stored.path}")
    code = coder(config, source, target)
    train = stored.portion(mixed(stored.weighed(config), stored.counts), noise(config, source, target))
    report, left_out = ReadReport(), stored.left_out()
    valid = None
    if config.data.valid:
        pairs = _nonempty(read(config, config.data.valid, report), config.data.valid)
        valid = _portion(config, code, pairs, config.data.valid, left_out)
    below, above = (_count(side) for side in (valid.sources, valid.targets)) if valid else (None, None)
    sides = [
        SideReport("source", source, config.data.form("source"), stored.count("source"), below, code.instead.get("source", "")),
        SideReport("target", target, config.data.form("target"), stored.count("target"), above, code.instead.get("target", "")),
    ]
    return Prepared(config, source, target, code, train, valid, DataReport.of(sides, [report], [left_out]))


def _side(config: Config, name: Name, tokenizer: Tokenizer, train: Ids, valid: Ids | None, code: Coder) -> SideReport:
    counts = _count(train), None if valid is None else _count(valid)
    return SideReport(name, tokenizer, config.data.form(name), *counts, code.instead.get(name, ""))


def _nonempty(pairs: Iterator[Pair], paths: Sequence[str]) -> list[Pair]:
    kept = list(pairs)
    if not kept:
        raise DataError("no pair is left: in each of them a side is blank or was filtered out", " ".join(paths))
    return kept


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
