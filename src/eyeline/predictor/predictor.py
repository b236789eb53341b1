"""A model with its tokenizers, asked in text. Knows runs, text and search; no files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eyeline.config import Config
from eyeline.config_search import LengthNormalization
from eyeline.contracts import Alternative, Model, Prediction
from eyeline.data.batches import sequential_batches
from eyeline.data.coding import Read, coder
from eyeline.data.corpus import Corpus, Sequences
from eyeline.errors import UserError
from eyeline.ladder import Seq2Seq
from eyeline.predictor.answers import (
    Asked,
    PairScore,
    Piece,
    Words,
    alternative,
    empty,
    nothing,
    nothing_said,
    pair_score,
    prediction,
)
from eyeline.predictor.engines import Engine, where_able
from eyeline.predictor.growing import check_single, growing
from eyeline.predictor.inputs import (
    CHUNK,
    Line,
    SearchOptions,
    TooLong,
    check_pairs,
    check_prefixes,
    check_sources,
    chunks,
    resolve,
    with_prefixes,
)
from eyeline.predictor.pieces import joined
from eyeline.predictor.reading import Reader
from eyeline.predictor.searching import Searcher
from eyeline.predictor.shortlist import Shortlist
from eyeline.predictor.terms import Term, check_terms
from eyeline.predictor.unknown import Replacer
from eyeline.runs import Run
from eyeline.search import WORTHS
from eyeline.search import score as score_batch
from eyeline.search.ensemble import Ensemble, Mean, geometric
from eyeline.text.tokenizers import Encoded
from eyeline.text.words import is_blank

GREEDY = SearchOptions(beam_size=1)


class Predictor:
    """A trained model with its tokenizers. Thread-safe: predicting changes nothing."""

    def __init__(
        self,
        run: Run,
        model: Seq2Seq,
        device: torch.device | str = "cpu",
        *,
        others: Sequence[Seq2Seq] = (),
        mean: Mean = geometric,
        engine: Engine | None = None,
        otherwise: bool = False,
        shortlist: Shortlist | None = None,
    ) -> None:
        """
        Args:
            others: models that answer together with `model`; their ids have to mean the same.
            mean: of what they all say.
            engine: searches in the place of our own search, with a copy of the model.
            otherwise: whether our own answers what the engine cannot be asked; an error when False.
            shortlist: what `predict` chooses outputs from; None: the whole vocabulary.
        """
        self.run, self.model, self.device = run, model, torch.device(device)
        self.answering: Model = Ensemble([model, *others], mean) if others else model
        self.engine, self.otherwise, self.shortlist = engine, otherwise, shortlist
        self.coder = coder(run.config, run.source, run.target)
        self.reader = Reader(run.config, self.coder, bool(run.source.features))

    @property
    def config(self) -> Config:
        return self.run.config

    def under(self, shortlist: Shortlist | None) -> Predictor:
        """The same, choosing outputs from another shortlist, or from none."""
        other = copy(self)
        other.shortlist = shortlist
        return other

    # ---- text to ids ------------------------------------------------------------------------------------------------

    def encode_source(self, line: str) -> Encoded:
        """A source line to ids; where the run has features, `TEXT<TAB>FEATURE;FEATURE`. Raises UserError for what is none."""
        return self.coder.encode(*self.reader.parted(line))

    def read(self, line: str) -> Read:
        """The whole of a source line as the model reads it. Raises UserError."""
        return self.coder.read(self.encode_source(line), self.reader.parted(line)[0])

    def is_blank(self, line: str) -> bool:
        """Whether a source is white space alone, its features apart; the model is not asked about it."""
        return is_blank(self.reader.parted(line)[0])

    # ---- prediction -------------------------------------------------------------------------------------------------

    def predict(
        self,
        sources: Iterable[Any],
        *,
        beam_size: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        batch_tokens: int | None = None,
        too_long: TooLong | None = None,
        attention: bool = True,
        coverage_penalty: float | None = None,
        no_repeat_ngram: int | None = None,
        length_normalization: LengthNormalization | None = None,
        min_length_ratio: float | None = None,
        max_length_ratio: float | None = None,
        diverse_groups: int | None = None,
        diversity: float | None = None,
        patience: float | None = None,
        sampling: str | None = None,
        mbr: int = 0,
        seed: int | None = None,
        prefixes: Sequence[str] | None = None,
        constraints: str | Path | Iterable[Term | Mapping[str, Any]] = (),
        replace_unknown: bool = False,
        dictionary: Mapping[str, str] | None = None,
    ) -> list[Prediction]:
        """One prediction a source, in order. A source of white space alone is answered with an empty text.

        What is not given is as in the run's `search` settings.

        Args:
            sources: strings; where elements are numbers, nested lists or arrays of them, or JSON.
            beam_size: hypotheses kept; 1 is greedy.
            n_best: entries of each prediction's `n_best`, at most beam_size.
            length_penalty: outputs are ranked by score / length^length_penalty.
            min_length: tokens before the end may come.
            max_length: most tokens of an output; default: twice the source's and 30 more, but no more than `data.max_length`.
            batch_tokens: padded source tokens decoded at a time, each counted once for every hypothesis.
            too_long: for sources of more tokens than training accepted; None predicts them as they are.
            attention: whether predictions carry their alignment.
            coverage_penalty: outputs lose so many times the sum of -log min(attention that each source token had, 1).
            no_repeat_ngram: so many tokens in a row come at most once in an output; 0 allows more.
            length_normalization: "average", or "wu": outputs are ranked by score / ((5 + length) / 6)^length_penalty.
            min_length_ratio, max_length_ratio: bounds in tokens for each token of the source, beside those above.
            diverse_groups: parts of the beam, each of which shuns what those before it say at the same position.
            diversity: what a token costs for each time that an earlier group says it.
            patience: a beam stops when so many times as many outputs as it keeps have ended, and none would be the best if it
                ended now; not when none can ever be better.
            sampling: outputs are drawn and not searched: "top-k=20,temperature=0.8", of `top-k`, `top-p`, `typical` and
                `temperature`; "" draws as the model says. `n_best` of them are in the order in which they were drawn.
            mbr: so many samples are drawn, and those come first that are nearest to all, by chrF.
            seed: what samples follow from, beside their source; default: the run's.
            prefixes: what each output begins with, one a source; "" for nothing.
            constraints: a terminology: a file, or entries as in its JSON form, such as {"source": "Haus", "require": "house"}.
            replace_unknown: whether an unknown token is written as the source word that it looked at most.
            dictionary: source word -> what is written instead of that.

        Raises:
            UserError: for sources that are no such thing, or too long under `too_long="error"`; for prefixes and constraints that
                no output can keep.
            ConfigError: for options that cannot be.
        """
        options = SearchOptions(
            beam_size=beam_size,
            n_best=n_best,
            length_penalty=length_penalty,
            min_length=min_length,
            max_length=max_length,
            batch_tokens=batch_tokens,
            too_long=too_long,
            attention=attention,
            coverage_penalty=coverage_penalty,
            no_repeat_ngram=no_repeat_ngram,
            length_normalization=length_normalization,
            min_length_ratio=min_length_ratio,
            max_length_ratio=max_length_ratio,
            diverse_groups=diverse_groups,
            diversity=diversity,
            patience=patience,
            sampling=sampling,
            mbr=mbr,
            seed=seed,
            replace_unknown=replace_unknown,
            dictionary=dictionary,
        )
        given, begun = check_sources(sources, self.config.numbers > 0), check_prefixes(prefixes)
        return list(self.stream(given, options, prefixes=begun, terms=check_terms(constraints)))

    def stream(
        self,
        sources: Iterable[str],
        options: SearchOptions,
        *,
        prefixes: Iterable[str] | None = None,
        terms: Sequence[Term] = (),
        name: str = "sources",
        at_once: int = CHUNK,
    ) -> Iterator[Prediction]:
        """As `predict`, for any number of lines in bounded memory.

        Args:
            prefixes: what each output begins with, one a source.
            terms: the terminology that outputs are held to.
            name: of the file, for messages.
            at_once: most lines that are taken from `sources` before the first of them is answered.
        """
        ask, first = self.answerer(options, terms, name), 1
        for lines in chunks(with_prefixes(sources, prefixes, name), at_once, options.attention):
            yield from ask(lines, first)
            first += len(lines)

    def answerer(
        self, options: SearchOptions, terms: Sequence[Term] = (), name: str = "sources"
    ) -> Callable[[Sequence[Line], int], list[Prediction]]:
        """What answers a portion of lines, the first of which has the given number, from 1. Raises ConfigError."""
        settings = resolve(self.config, options)
        engine = where_able(self.engine, options, settings, self.otherwise)
        look = Searcher(self.answering, self.coder, self.config, options, settings, self.device, engine, self.shortlist)
        look.check()

        def ask(lines: Sequence[Line], first: int) -> list[Prediction]:
            reader = self.reader.under(terms) if terms else self.reader  # anew: what it remembers of phrases grows with lines
            return self._chunk(lines, reader, look, name, first)

        return ask

    def alternatives(
        self, source: Any, prefix: str = "", *, count: int = 5, beam_size: int | None = None, max_length: int | None = None
    ) -> list[Alternative]:
        """What else could stand at a position: the `count` likeliest tokens after a prefix, each with the best way on from there.

        Args:
            source: as for `predict`.
            prefix: the text before the position; "" for the first one.
            beam_size, max_length: of the search for the ways on.

        Returns:
            Outputs that differ in the token behind the prefix, the likeliest of these first: `tokens` and `token_scores` have it
            at the place of the prefix's length. Fewer where fewer tokens are possible.

        Raises:
            UserError: for a source or prefix that is none.
        """
        (line,) = check_sources([source], self.config.numbers > 0)
        options = SearchOptions(beam_size=beam_size, max_length=max_length, attention=False)
        look = Searcher(self.answering, self.coder, self.config, options, resolve(self.config, options), self.device)
        pieces = [] if self.is_blank(line) else self.reader.fit(line, prefix, 0, 1, None, "sources")
        return [alternative(one, piece, self.coder, nothing) for piece in pieces for one in look.alternatives(piece, count)]

    def stream_tokens(
        self, source: Any, options: SearchOptions = GREEDY, *, prefix: str = "", terms: Sequence[Term] = ()
    ) -> Iterator[Prediction]:
        """One output as it comes: the prediction after each token. The last is what `predict` answers under the same options, and
        alone carries an alignment; it has END as its last token, or is unfinished.

        Args:
            source, prefix: as for `predict`.
            options: greedy (`beam_size` 1, or none) or `sampling`.
            terms: what the output may not say.

        Raises:
            UserError, ConfigError: as `predict` does, and for what cannot be told token by token.
        """
        check_single(options)
        (line,), options = check_sources([source], self.config.numbers > 0), replace(options, beam_size=1)
        settings = resolve(self.config, options)
        if self.is_blank(line):
            return iter([empty(line, 1)])
        reader = self.reader.under(terms) if terms else self.reader
        (piece,) = reader.fit(line, prefix, 0, 1, options.too_long, "sources")
        look = Searcher(self.answering, self.coder, self.config, options, settings, self.device)
        return growing(look, piece, line, self.coder, self._words(piece, reader.parted(line)[0], options))

    def _chunk(self, lines: Sequence[Line], reader: Reader, look: Searcher, name: str, first: int) -> list[Prediction]:
        options = look.options
        answers = [empty(line, options.n_best) for line, _ in lines]  # what stays of them is the blank ones'
        asked: list[Piece] = []
        for place, (line, prefix) in enumerate(lines):
            if not self.is_blank(line):
                asked += reader.fit(line, prefix, place, first + place, options.too_long, name)
        made: list[tuple[int, Prediction]] = []
        for piece, hypotheses in zip(asked, look(asked), strict=True):
            line = lines[piece.line][0]
            words = self._words(piece, reader.parted(line)[0], options)
            made.append((piece.line, prediction(line, piece, hypotheses, self.coder, words, options.attention)))
        for place, parts in groupby(made, key=itemgetter(0)):
            answers[place] = joined(lines[place][0], [part for _, part in parts], look.ranking.normalize)
        return answers

    def _words(self, piece: Piece, text: str, options: SearchOptions) -> Words:
        """What replaces the unknown tokens of a hypothesis."""
        if not options.replace_unknown:
            return nothing
        replacer = Replacer(self.run.target.kind in ("word", "whitespace-symbols"), options.dictionary or {})
        return lambda hypothesis: replacer.words(hypothesis, piece, text)

    # ---- scores and alignments of given pairs -----------------------------------------------------------------------

    def score(
        self,
        pairs: Iterable[tuple[Any, Any]],
        *,
        length_penalty: float | None = None,
        batch_tokens: int | None = None,
        attention: bool = False,
        coverage_penalty: float | None = None,
        length_normalization: LengthNormalization | None = None,
    ) -> list[PairScore]:
        """The log-probability of each given (source, target), by teacher forcing: what `predict` reports of the same output.

        The empty output of a blank source is certain, as `predict` says: score 0, no tokens. With any other target the model is
        asked about a source of nothing.

        Args:
            length_penalty, coverage_penalty, length_normalization: for `normalized_score`; default: the run's.
            batch_tokens: padded tokens of the longer side at a time; default: the run's.
            attention: whether scores carry their alignment.

        Raises:
            UserError: for pairs that are not two strings each (or what the run takes for them), or no output could be the target.
            ConfigError: for options that cannot be.
        """
        options = SearchOptions(
            length_penalty=length_penalty,
            batch_tokens=batch_tokens,
            coverage_penalty=coverage_penalty,
            length_normalization=length_normalization,
        )
        asked = self.asked(pairs)
        answers = [nothing_said() for _ in range(asked.given)]
        for place, found in self.scores(asked, options, attention=attention):
            answers[place] = found
        return answers

    def scores(self, asked: Asked, options: SearchOptions, *, attention: bool = False) -> Iterator[tuple[int, PairScore]]:
        """As `score`, each with the place of its pair, the longest first: many alignments need not stand in memory together."""
        settings = resolve(self.config, options)
        lengths = np.maximum(asked.corpus.source_lengths, asked.corpus.target_lengths)
        for rows in sequential_batches(lengths, settings.batch_tokens):
            batch = asked.corpus.batch(rows).to(self.device)
            with torch.inference_mode():
                found = score_batch(
                    self.answering,
                    batch.source,
                    batch.inputs,
                    batch.outputs,
                    batch.target_mask,
                    length_penalty=settings.length_penalty,
                    attention=attention,
                    coverage_penalty=settings.coverage_penalty,
                    worth=WORTHS[settings.length_normalization],
                )
            for row, hypothesis in zip(rows, found, strict=True):
                source, target = asked.reads[row]
                yield asked.places[row], pair_score(hypothesis, source.encoded, target)

    def asked(self, pairs: Iterable[tuple[Any, Any]]) -> Asked:
        """Pairs as the model reads them. Raises UserError, as `score` does."""
        given = check_pairs(pairs, self.config.numbers > 0, self.config.points)
        places = [place for place, (source, target) in enumerate(given) if not (self.is_blank(source) and is_blank(target))]
        reads = [self._read_pair(*given[place], place) for place in places]
        targets = Sequences.of(target.ids for _, target in reads)
        return Asked(len(given), places, reads, Corpus(self.coder.sources([source for source, _ in reads]), targets))

    def _read_pair(self, source: str, target: str, place: int) -> tuple[Read, Encoded]:
        try:
            read = self.read(source)
            return read, self.coder.encode_target(target, read)
        except UserError as error:
            raise UserError(error.what, f"pairs[{place}]", error.hint) from None
