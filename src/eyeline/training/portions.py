"""The pairs of one portion of the data as ids, those left out gone. Knows coders and gold links; no tokenizers, no models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from eyeline.config import Config
from eyeline.contracts import UNKNOWN
from eyeline.data.coding import Coder, Row
from eyeline.data.corpus import Corpus, Links, Noise, Sequences, Sources
from eyeline.data.plan import Part
from eyeline.errors import ConfigError, DataError
from eyeline.text.records import Fault, Pair
from eyeline.text.tally import Tally
from eyeline.text.vectors import Values
from eyeline.training.links import TokenLinks, token_links

Ids = list[list[int]]
CHUNK = 10_000  # lines that are encoded at a time
BAD_LINKS = "bad gold links"

T = TypeVar("T")


@dataclass(frozen=True)
class Portion:
    """The pairs of one portion (train, valid) and what models read of them: an entry a pair in each list."""

    pairs: list[Pair] = field(default_factory=list)
    sources: Ids = field(default_factory=list)
    targets: Ids = field(default_factory=list)
    copies: Ids | None = None  # extended ids of the sources' tokens
    values: list[Values] | None = None  # numbers of the sources' elements
    links: list[TokenLinks] | None = None
    vocabulary: int = 0  # V, from which on extended ids are a source's own
    parts: tuple[Part, ...] = ()  # the corpora that were put together; none: it is one
    noise: Noise | None = None  # what changes ids in every epoch

    @classmethod
    def joined(cls, portions: Sequence[Portion]) -> Portion:
        """Several portions one behind the other, all with the same kinds of ids."""
        if len(portions) == 1:
            return portions[0]

        def all_of(values: Callable[[Portion], list[T] | None]) -> list[T] | None:
            lists = [values(portion) for portion in portions]
            return None if lists[0] is None else list(chain.from_iterable(values or () for values in lists))

        return cls(
            all_of(lambda portion: portion.pairs) or [],
            all_of(lambda portion: portion.sources) or [],
            all_of(lambda portion: portion.targets) or [],
            all_of(lambda portion: portion.copies),
            all_of(lambda portion: portion.values),
            all_of(lambda portion: portion.links),
            portions[0].vocabulary,
        )

    def corpus(self) -> Corpus:
        sources = Sources.of(self.sources, self.copies, self.vocabulary, self.values)
        links = None if self.links is None else Links.of(self.links)
        return Corpus(sources, Sequences.of(self.targets), links, self.parts, self.noise)

    def at(self, places: Sequence[int]) -> Portion:
        """The pairs at `places` alone."""
        return Portion(
            [self.pairs[place] for place in places],
            [self.sources[place] for place in places],
            [self.targets[place] for place in places],
            None if self.copies is None else [self.copies[place] for place in places],
            None if self.values is None else [self.values[place] for place in places],
            None if self.links is None else [self.links[place] for place in places],
            self.vocabulary,
        )

    def cut(self, most: int) -> Portion:
        """Both sides cut to `most` tokens; what is cut off can neither be copied nor linked to."""
        targets = [ids[:most] for ids in self.targets]
        copies = None if self.copies is None else [ids[:most] for ids in self.copies]
        if copies is not None:
            tops = [max(self.vocabulary - 1, *ids) for ids in copies]  # a source's own ids are in order of appearance
            targets = [[UNKNOWN if number > top else number for number in ids] for ids, top in zip(targets, tops, strict=True)]
        links = None if self.links is None else [[link for link in pair if max(link) < most] for pair in self.links]
        values = None if self.values is None else [rows[:most] for rows in self.values]
        return Portion(self.pairs, [ids[:most] for ids in self.sources], targets, copies, values, links, self.vocabulary)


def portion(config: Config, coder: Coder, pairs: Sequence[Pair], left_out: Tally, *, links: bool = False) -> Portion:
    """The pairs as ids, in chunks, because what a tokenizer makes of a text is many times larger than its ids.

    Args:
        left_out: counts pairs that cannot be, under `data.on_bad_line: skip`.
        links: whether gold links are wanted of each pair.

    Raises:
        DataError: a pair that cannot be, or whose links cannot be.
        ConfigError: links are wanted, and there are none.
    """
    kept: list[Pair] = []
    rows: list[Row] = []
    linked: list[TokenLinks] = []
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        for pair, row in zip(chunk, coder.rows(chunk), strict=True):
            found = _links(config, coder, pair) if links and isinstance(row, Row) else []
            for fault in (row, found):
                if isinstance(fault, Fault):
                    _refuse(config, fault, left_out)
            if isinstance(row, Row) and not isinstance(found, Fault):
                kept.append(pair)
                rows.append(row)
                linked.append(found)
    copies = [row.copies for row in rows if row.copies is not None]
    values = [row.values for row in rows if row.values is not None]
    return Portion(
        kept,
        [row.source for row in rows],
        [row.target for row in rows],
        copies or None,
        values or None,
        linked if links else None,
        coder.own_from,
    )


def _links(config: Config, coder: Coder, pair: Pair) -> TokenLinks | Fault:
    if pair.alignment is None:
        where = f"training.guided_alignment={config.training.guided_alignment:g}"
        hint = "name their column, such as --columns source,target,alignment; JSONL has the key alignment"
        raise ConfigError(f"a pair without gold links: {pair.path}:{pair.line}", where, hint)
    source = coder.encode(pair.source, pair.features)
    target = coder.encode_target(pair.target, coder.read(source, pair.source))
    try:
        return token_links(pair, source, target, coder.spelling, config.data.links)
    except DataError as error:
        return Fault(pair.path, pair.line, BAD_LINKS, f"{error.what}; {error.hint}")


def _refuse(config: Config, fault: Fault, left_out: Tally) -> None:
    if config.data.on_bad_line == "error":
        raise DataError(fault.detail, fault.path, fault.line, "--on-bad-line skip leaves such lines out and counts them")
    left_out.add(fault.reason, fault.path, fault.line)


def fitted(config: Config, made: Portion, paths: Sequence[str], left_out: Tally) -> Portion:
    """As `fitting`. Raises DataError where no pair is left."""
    kept = fitting(config, made, left_out)
    if not kept.pairs:
        raise DataError(f"no pair is left: each has more than {config.most_tokens[1]} tokens", " ".join(paths))
    return kept


def fitting(config: Config, made: Portion, left_out: Tally) -> Portion:
    """The portion without, or with shortened, pairs of more tokens on a side than the config allows."""
    (most, bound), choice = config.most_tokens, config.data.too_long
    fits = [max(len(s), len(t)) <= most for s, t in zip(made.sources, made.targets, strict=True)]
    if all(fits):
        return made
    for pair, fit in zip(made.pairs, fits, strict=True):
        if not fit and choice in ("error", "split"):
            others = "skip" if config.points else "truncate or skip"
            hint = f"raise {bound.partition('=')[0]}, or set data.too_long to {others}"
            raise DataError(f"a pair of more than {bound} tokens", pair.path, pair.line, hint)
        if not fit:
            left_out.add("too long, cut" if choice == "truncate" else "too long", pair.path, pair.line)
    if choice == "truncate":
        return made.cut(most)
    return made.at([place for place, fit in enumerate(fits) if fit])
