"""A trained run in use: text in, predictions, scores and alignments out. Knows runs, text and search; no files but the run's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eyeline.config import Config, SearchSettings
from eyeline.contracts import Hypothesis, Prediction
from eyeline.data.batches import sequential_batches
from eyeline.data.coding import Read, coder
from eyeline.data.corpus import Corpus, Sequences
from eyeline.errors import ConfigError, DataError, UserError
from eyeline.ladder import Seq2Seq
from eyeline.predictor.answers import Asked, PairScore, Piece, empty, nothing_said, pair_score, prediction
from eyeline.predictor.inputs import CHUNK, SearchOptions, TooLong, check_pairs, check_sources, chunks, resolve
from eyeline.predictor.pieces import joined, pieces
from eyeline.runs import Run, open_run
from eyeline.search import default_max_length, search
from eyeline.search import score as score_batch
from eyeline.text.records import split_features
from eyeline.text.tokenizers import Encoded
from eyeline.text.words import is_blank

__all__ = ["Asked", "PairScore", "Predictor", "SearchOptions", "TooLong", "load"]


class Predictor:
    """A trained model with its tokenizers. Thread-safe: predicting changes nothing."""

    def __init__(self, run: Run, model: Seq2Seq, device: torch.device | str = "cpu") -> None:
        self.run, self.model, self.device = run, model, torch.device(device)
        self.coder = coder(run.config, run.source, run.target)

    @property
    def config(self) -> Config:
        return self.run.config

    # ---- text to ids ------------------------------------------------------------------------------------------------

    def encode_source(self, line: str) -> Encoded:
        """A source line to ids; where the run has features, `TEXT<TAB>FEATURE;FEATURE`. Raises UserError for what is none."""
        return self.coder.encode(*self._parted(line))

    def read(self, line: str) -> Read:
        """The whole of a source line as the model reads it. Raises UserError."""
        return self.coder.read(self.encode_source(line), self._parted(line)[0])

    def is_blank(self, line: str) -> bool:
        """Whether a source is white space alone, its features apart; the model is not asked about it."""
        return is_blank(self._parted(line)[0])

    def _parted(self, line: str) -> tuple[str, tuple[str, ...]]:
        """A source line's text and features."""
        if not self.run.source.features:
            return line, ()
        text, _, cell = line.partition("\t")
        return text, split_features(cell)

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

        Raises:
            UserError: for sources that are no such thing, or too long under `too_long="error"`.
            ConfigError: for options that cannot be.
        """
        options = SearchOptions(
            beam_size,
            n_best,
            length_penalty,
            min_length,
            max_length,
            batch_tokens,
            too_long,
            attention,
            coverage_penalty,
            no_repeat_ngram,
        )
        return list(self.stream(check_sources(sources, self.config.numbers > 0), options))

    def stream(
        self, sources: Iterable[str], options: SearchOptions, *, name: str = "sources", at_once: int = CHUNK
    ) -> Iterator[Prediction]:
        """As `predict`, for any number of lines in bounded memory.

        Args:
            name: of the file, for messages.
            at_once: most lines that are taken from `sources` before the first of them is answered.
        """
        settings = resolve(self.config, options)
        first = 1
        for lines in chunks(sources, at_once, options.attention):
            yield from self._chunk(lines, options, settings, name, first)
            first += len(lines)

    def _chunk(
        self, lines: Sequence[str], options: SearchOptions, settings: SearchSettings, name: str, first: int
    ) -> list[Prediction]:
        answers = [empty(line, options.n_best) for line in lines]  # what stays of them is the blank ones'
        asked: list[Piece] = []
        for place, line in enumerate(lines):
            if not self.is_blank(line):
                asked += self._fit(line, place, options.too_long, name, first)
        found = self._search([piece.source for piece in asked], options, settings)
        made = [(piece.line, prediction(lines[piece.line], piece, h, self.coder)) for piece, h in zip(asked, found, strict=True)]
        for place, parts in groupby(made, key=itemgetter(0)):
            answers[place] = joined(lines[place], [part for _, part in parts], settings.length_penalty)
        return answers

    def _fit(self, line: str, place: int, too_long: TooLong | None, name: str, first: int) -> list[Piece]:
        """The line's ids, cut or in pieces when it is longer than `data.max_length` and `too_long` says so."""
        text, features = self._parted(line)
        try:
            encoded = self.coder.encode(text, features)
            parts, cut = self._parts(encoded, len(features), too_long)
            return [Piece(place, self.coder.read(part, text), cut) for part in parts]
        except UserError as error:
            raise DataError(error.what, name, first + place, error.hint) from None

    def _parts(self, encoded: Encoded, features: int, too_long: TooLong | None) -> tuple[list[Encoded], bool]:
        """What is predicted of a source, and whether that is not all of it."""
        (most, bound), longest, length = self.config.most_tokens, self.config.model.longest, len(encoded.ids)
        readable = longest is None or length < longest
        if length <= most or (too_long is None and readable):
            return [encoded], False
        if too_long is None or too_long == "error":
            raise UserError(f"a source of {length:,} tokens is longer than {bound}", hint="--too-long truncate or split")
        return ([encoded.cut(most)], True) if too_long == "truncate" else (pieces(encoded, features, most), False)

    def _search(self, reads: Sequence[Read], options: SearchOptions, settings: SearchSettings) -> list[list[Hypothesis]]:
        answers: list[list[Hypothesis]] = [[] for _ in reads]
        sources = self.coder.sources(reads)
        for rows in sequential_batches(sources.ids.lengths * settings.beam_size, settings.batch_tokens):
            batch = sources.batch(rows)
            with torch.inference_mode():
                found = search(
                    self.model,
                    batch.to(self.device),
                    beam_size=settings.beam_size,
                    n_best=options.n_best,
                    length_penalty=settings.length_penalty,
                    min_length=settings.min_length,
                    max_length=self._most(batch.lengths.tolist(), settings),
                    attention=options.attention,
                    coverage_penalty=settings.coverage_penalty,
                    no_repeat_ngram=settings.no_repeat_ngram,
                )
            for row, hypotheses in zip(rows, found, strict=True):
                answers[row] = hypotheses
        return answers

    def _most(self, lengths: Sequence[int], settings: SearchSettings) -> list[int]:
        """The most tokens of each output. A beam may go on to the end of this before it knows that nothing better comes, and no
        target of training had more than `data.max_length`: without that bound a line of 5,000 characters would take minutes."""
        if settings.max_length is not None:
            return [settings.max_length] * len(lengths)
        most, _ = self.config.most_tokens
        return [max(min(default_max_length(length), most), settings.min_length) for length in lengths]

    # ---- scores and alignments of given pairs -----------------------------------------------------------------------

    def score(
        self,
        pairs: Iterable[tuple[Any, Any]],
        *,
        length_penalty: float | None = None,
        batch_tokens: int | None = None,
        attention: bool = False,
        coverage_penalty: float | None = None,
    ) -> list[PairScore]:
        """The log-probability of each given (source, target), by teacher forcing: what `predict` reports of the same output.

        The empty output of a blank source is certain, as `predict` says: score 0, no tokens. With any other target the model is
        asked about a source of nothing.

        Args:
            length_penalty, coverage_penalty: for `normalized_score`; default: the run's.
            batch_tokens: padded tokens of the longer side at a time; default: the run's.
            attention: whether scores carry their alignment.

        Raises:
            UserError: for pairs that are not two strings each (or what the run takes for them), or no output could be the target.
            ConfigError: for options that cannot be.
        """
        options = SearchOptions(length_penalty=length_penalty, batch_tokens=batch_tokens, coverage_penalty=coverage_penalty)
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
                    self.model,
                    batch.source,
                    batch.inputs,
                    batch.outputs,
                    batch.target_mask,
                    length_penalty=settings.length_penalty,
                    attention=attention,
                    coverage_penalty=settings.coverage_penalty,
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


def load(path: str | Path, device: torch.device | str = "cpu") -> Predictor:
    """A trained run, ready to predict.

    Raises:
        RunError: when `path` is not a run directory, or is incomplete or damaged.
        ConfigError: when `device` is none.
    """
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise ConfigError("not a device", f"device={device}", "such as cpu or cuda:0") from error
    run = open_run(path)
    return Predictor(run, run.load(place), place)
