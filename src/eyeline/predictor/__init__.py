"""A trained run in use: text in, predictions, scores and alignments out. Knows runs, text and search; no files but the run's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal

import torch

from eyeline.config import Config, SearchSettings
from eyeline.contracts import END, Alternative, Hypothesis, Prediction
from eyeline.data.batches import sequential_batches
from eyeline.data.corpus import Corpus, source_batch
from eyeline.errors import ConfigError, DataError
from eyeline.ladder import Seq2Seq
from eyeline.predictor.inputs import CHUNK, SearchOptions, TooLong, check_pairs, check_texts, chunks, resolve
from eyeline.predictor.pieces import joined, pieces
from eyeline.runs import Run, open_run
from eyeline.search import default_max_length, search
from eyeline.search import score as score_batch
from eyeline.text.normalization import normalize, restore
from eyeline.text.records import split_features
from eyeline.text.tokenizers import Encoded
from eyeline.text.words import is_blank

__all__ = ["PairScore", "Predictor", "SearchOptions", "TooLong", "load"]


@dataclass(frozen=True)
class PairScore:
    """The log-probability of a given pair."""

    score: float  # summed natural-log probability, END counted
    normalized_score: float
    tokens: list[str]  # END last; none where both sides are blank
    token_scores: list[float]
    source_tokens: list[str]
    alignment: list[list[float]] | None  # [len(tokens)][len(source_tokens)]
    source_words: list[int | None]  # the word of each source token, None for one in no word
    target_words: list[int | None]


@dataclass(frozen=True)
class _Piece:
    """What the model is given at a time: a line, or a part of one."""

    line: int  # its place in the chunk
    encoded: Encoded
    cut: bool  # the line was longer, and its end is not looked at


class Predictor:
    """A trained model with its tokenizers. Thread-safe: predicting changes nothing."""

    def __init__(self, run: Run, model: Seq2Seq, device: torch.device | str = "cpu") -> None:
        self.run, self.model, self.device = run, model, torch.device(device)

    @property
    def config(self) -> Config:
        return self.run.config

    # ---- text to ids ------------------------------------------------------------------------------------------------

    def encode_source(self, line: str) -> Encoded:
        """A source line to ids; where the run has features, `TEXT<TAB>FEATURE;FEATURE`."""
        text, features = self._parted(line)
        return self.run.source.encode(self._normal(text, "source"), features)

    def encode_target(self, line: str) -> Encoded:
        return self.run.target.encode(self._normal(line, "target"))

    def is_blank(self, line: str) -> bool:
        """Whether a source is white space alone, its features apart; the model is not asked about it."""
        return is_blank(self._parted(line)[0])

    def _parted(self, line: str) -> tuple[str, tuple[str, ...]]:
        """A source line's text and features."""
        if not self.run.source.features:
            return line, ()
        text, _, cell = line.partition("\t")
        return text, split_features(cell)

    def _normal(self, line: str, side: Literal["source", "target"]) -> str:
        return normalize(line, self.config.data.form(side), self.config.data.lowercase)

    def text(self, ids: Sequence[int]) -> str:
        """What the user sees of an output."""
        return restore(self.run.target.decode(list(ids)), self.config.data.form("target"))

    # ---- prediction -------------------------------------------------------------------------------------------------

    def predict(
        self,
        sources: Iterable[str],
        *,
        beam_size: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        batch_tokens: int | None = None,
        too_long: TooLong | None = None,
        attention: bool = True,
    ) -> list[Prediction]:
        """One prediction a source, in order. A source of white space alone is answered with an empty text.

        What is not given is as in the run's `search` settings.

        Args:
            beam_size: hypotheses kept; 1 is greedy.
            n_best: entries of each prediction's `n_best`, at most beam_size.
            length_penalty: outputs are ranked by score / length^length_penalty.
            min_length: tokens before the end may come.
            max_length: most tokens of an output; default: twice the source's and 30 more, but no more than `data.max_length`.
            batch_tokens: padded source tokens decoded at a time, each counted once for every hypothesis.
            too_long: for sources of more tokens than training accepted; None predicts them as they are.
            attention: whether predictions carry their alignment.

        Raises:
            UserError: for sources that are not strings, or too long under `too_long="error"`.
            ConfigError: for options that cannot be.
        """
        options = SearchOptions(beam_size, n_best, length_penalty, min_length, max_length, batch_tokens, too_long, attention)
        return list(self.stream(check_texts(sources), options))

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
        answers = [_empty(line, options.n_best) for line in lines]  # what stays of them is the blank ones'
        asked: list[_Piece] = []
        for place, line in enumerate(lines):
            if not self.is_blank(line):
                asked += self._fit(line, place, options.too_long, name, first)
        found = self._search([piece.encoded.ids for piece in asked], options, settings)
        made = [(piece.line, self._prediction(lines[piece.line], piece, h)) for piece, h in zip(asked, found, strict=True)]
        for place, parts in groupby(made, key=itemgetter(0)):
            answers[place] = joined(lines[place], [part for _, part in parts], settings.length_penalty)
        return answers

    def _fit(self, line: str, place: int, too_long: TooLong | None, name: str, first: int) -> list[_Piece]:
        """The line's ids, cut or in pieces when it is longer than `data.max_length` and `too_long` says so."""
        encoded, most = self.encode_source(line), self.config.data.max_length
        if too_long is None or len(encoded.ids) <= most:
            return [_Piece(place, encoded, False)]
        if too_long == "error":
            raise DataError(
                f"a source of {len(encoded.ids):,} tokens is longer than data.max_length={most}",
                name,
                first + place,
                "--too-long truncate or split",
            )
        if too_long == "truncate":
            return [_Piece(place, encoded.cut(most), True)]
        return [_Piece(place, piece, False) for piece in pieces(encoded, len(self._parted(line)[1]), most)]

    def _search(self, ids: Sequence[list[int]], options: SearchOptions, settings: SearchSettings) -> list[list[Hypothesis]]:
        answers: list[list[Hypothesis]] = [[] for _ in ids]
        costs = [(len(i) + 1) * settings.beam_size for i in ids]
        for rows in sequential_batches(costs, settings.batch_tokens):
            batch = source_batch([ids[row] for row in rows])
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
                )
            for row, hypotheses in zip(rows, found, strict=True):
                answers[row] = hypotheses
        return answers

    def _most(self, lengths: Sequence[int], settings: SearchSettings) -> list[int]:
        """The most tokens of each output. A beam may go on to the end of this before it knows that nothing better comes, and no
        target of training had more than `data.max_length`: without that bound a line of 5,000 characters would take minutes."""
        if settings.max_length is not None:
            return [settings.max_length] * len(lengths)
        most = self.config.data.max_length
        return [max(min(default_max_length(length), most), settings.min_length) for length in lengths]

    def _prediction(self, line: str, piece: _Piece, hypotheses: Sequence[Hypothesis]) -> Prediction:
        n_best = [self._alternative(hypothesis) for hypothesis in hypotheses]
        first, weights = n_best[0], hypotheses[0].attention.get("source")
        return Prediction(
            source=line,
            text=first.text,
            score=first.score,
            normalized_score=first.normalized_score,
            source_tokens=[*piece.encoded.tokens, self.run.source.token(END)],
            tokens=first.tokens,
            token_scores=first.token_scores,
            alignment=None if weights is None else weights.tolist(),
            n_best=n_best,
            truncated=piece.cut,
            finished=first.finished,
        )

    def _alternative(self, hypothesis: Hypothesis) -> Alternative:
        return Alternative(
            text=self.text(hypothesis.ids),
            score=hypothesis.score,
            normalized_score=hypothesis.normalized_score,
            tokens=self.run.target.tokens_of(hypothesis.ids),
            token_scores=list(hypothesis.token_scores),
            finished=hypothesis.finished,
        )

    # ---- scores and alignments of given pairs -----------------------------------------------------------------------

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        length_penalty: float | None = None,
        batch_tokens: int | None = None,
        attention: bool = False,
    ) -> list[PairScore]:
        """The log-probability of each given (source, target), by teacher forcing: what `predict` reports of the same output.

        The empty output of a blank source is certain, as `predict` says: score 0, no tokens. With any other target the model is
        asked about a source of nothing.

        Args:
            length_penalty: for `normalized_score`; default: the run's.
            batch_tokens: padded tokens of the longer side at a time; default: the run's.
            attention: whether scores carry their alignment.

        Raises:
            UserError: for pairs that are not two strings each.
            ConfigError: for options that cannot be.
        """
        settings = resolve(self.config, SearchOptions(length_penalty=length_penalty, batch_tokens=batch_tokens))
        given = check_pairs(pairs)
        sources = [self.encode_source(source) for source, _ in given]
        targets = [self.encode_target(target) for _, target in given]
        certain = [self.is_blank(source) and is_blank(target) for source, target in given]
        answers = [_nothing_said() for _ in given]
        asked = [place for place, sure in enumerate(certain) if not sure]
        corpus = Corpus.of((sources[place].ids for place in asked), (targets[place].ids for place in asked))
        lengths = [max(len(sources[place].ids), len(targets[place].ids)) + 1 for place in asked]
        for rows in sequential_batches(lengths, settings.batch_tokens):
            batch = corpus.batch(rows).to(self.device)
            with torch.inference_mode():
                found = score_batch(
                    self.model,
                    batch.source,
                    batch.inputs,
                    batch.outputs,
                    batch.target_mask,
                    length_penalty=settings.length_penalty,
                    attention=attention,
                )
            for row, hypothesis in zip(rows, found, strict=True):
                place = asked[row]
                answers[place] = self._pair_score(hypothesis, sources[place], targets[place])
        return answers

    def _pair_score(self, hypothesis: Hypothesis, source: Encoded, target: Encoded) -> PairScore:
        weights = hypothesis.attention.get("source")
        return PairScore(
            score=hypothesis.score,
            normalized_score=hypothesis.normalized_score,
            tokens=[*target.tokens, self.run.target.token(END)],
            token_scores=list(hypothesis.token_scores),
            source_tokens=[*source.tokens, self.run.source.token(END)],
            alignment=None if weights is None else weights.tolist(),
            source_words=source.words,
            target_words=target.words,
        )


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


def _empty(source: str, n_best: int) -> Prediction:
    """The answer to a source of white space alone: the model is not asked."""
    nothing = [Alternative("", 0.0, 0.0, [], [], True) for _ in range(n_best)]
    return Prediction(source, "", 0.0, 0.0, [], [], [], None, nothing, False, True)


def _nothing_said() -> PairScore:
    """The score of the empty output of a blank source."""
    return PairScore(0.0, 0.0, [], [], [], None, [], [])
