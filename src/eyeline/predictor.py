"""A trained run in use: text in, predictions, scores and alignments out. Knows runs, text and search; no files but the run's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import torch

from eyeline.config import Config
from eyeline.contracts import END, Alternative, Hypothesis, Prediction
from eyeline.data.batches import sequential_batches
from eyeline.data.corpus import Corpus, source_batch
from eyeline.errors import DataError, UserError
from eyeline.ladder import Seq2Seq
from eyeline.runs import Run, open_run
from eyeline.search import score as score_batch
from eyeline.search import search
from eyeline.text.normalization import normalize, restore
from eyeline.text.tokenizers import Encoded
from eyeline.text.words import is_blank

TooLong = Literal["error", "truncate", "split"]
CHUNK = 4096  # lines that are sorted by length together: bounds memory, and is enough to fill batches with like lengths


@dataclass(frozen=True)
class SearchOptions:
    """How outputs are looked for; a run's own `search` settings where a value is None."""

    beam_size: int | None = None
    n_best: int = 1
    length_penalty: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    batch_tokens: int | None = None
    too_long: TooLong | None = None  # what to do with a source longer than the run's data.max_length; None: predict it as it is
    attention: bool = True


@dataclass(frozen=True)
class PairScore:
    """The log-probability of a given pair."""

    score: float  # summed natural-log probability, END counted
    normalized_score: float
    tokens: list[str]  # END last
    token_scores: list[float]
    source_tokens: list[str]
    alignment: list[list[float]] | None  # [len(tokens)][len(source_tokens)]
    source_words: list[int | None]  # the word of each source token, None for one in no word
    target_words: list[int | None]


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
        features: tuple[str, ...] = ()
        if self.run.source.features:
            line, _, cell = line.partition("\t")
            features = tuple(name for name in cell.split(";") if name)
        return self.run.source.encode(self._normal(line, "source"), features)

    def encode_target(self, line: str) -> Encoded:
        return self.run.target.encode(self._normal(line, "target"))

    def _text_of(self, line: str) -> str:
        """A source line without its features."""
        return line.partition("\t")[0] if self.run.source.features else line

    def _normal(self, line: str, side: Literal["source", "target"]) -> str:
        return normalize(line, self.config.data.form(side), self.config.data.lowercase)

    def text(self, ids: Sequence[int]) -> str:
        """What the user sees of an output."""
        return restore(self.run.target.decode(list(ids)), self.config.data.form("target"))

    # ---- prediction -------------------------------------------------------------------------------------------------

    def predict(
        self,
        sources: Sequence[str],
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

        Args:
            beam_size: hypotheses kept; 1 is greedy.
            n_best: entries of each prediction's `n_best`, at most beam_size.
            length_penalty: outputs are ranked by score / length^length_penalty.
            max_length: most tokens of an output; default: twice the source's and 30 more.
            too_long: for sources of more tokens than training accepted; None predicts them as they are.
            attention: whether predictions carry their alignment.

        Raises:
            UserError: for sources that are not a list of strings, or too long under `too_long="error"`.
            ConfigError: for options that cannot be.
        """
        if isinstance(sources, str) or not all(isinstance(source, str) for source in sources):
            raise UserError("sources are a list of strings", f"{type(sources).__name__}", 'write model.predict(["…"])')
        options = SearchOptions(beam_size, n_best, length_penalty, min_length, max_length, batch_tokens, too_long, attention)
        return list(self.stream(sources, options))

    def stream(self, sources: Iterable[str], options: SearchOptions) -> Iterator[Prediction]:
        """As `predict`, for any number of lines in bounded memory."""
        lines = iter(sources)
        first = 1
        while chunk := list(islice(lines, CHUNK)):
            yield from self._chunk(chunk, options, first)
            first += len(chunk)

    def _chunk(self, lines: list[str], options: SearchOptions, first: int) -> list[Prediction]:
        answers: list[Prediction | None] = [None] * len(lines)
        pieces: list[tuple[int, str, Encoded, bool]] = []  # (line, source, its ids, cut short)
        for number, line in enumerate(lines):
            if is_blank(self._text_of(line)):
                answers[number] = _empty(line, options.n_best)
                continue
            pieces += [(number, *piece) for piece in self._fit(line, options.too_long, first + number)]
        found = self._search([encoded.ids for _, _, encoded, _ in pieces], options)
        for (number, source, encoded, cut), hypotheses in zip(pieces, found, strict=True):
            prediction = self._prediction(source, encoded, hypotheses, cut, options.attention)
            before = answers[number]
            answers[number] = prediction if before is None else _joined(before, prediction, lines[number])
        return [answer for answer in answers if answer is not None]

    def _fit(self, line: str, too_long: TooLong | None, number: int) -> list[tuple[str, Encoded, bool]]:
        """The line's ids, cut or in pieces when it is longer than `data.max_length` and `too_long` says so."""
        encoded = self.encode_source(line)
        most = self.config.data.max_length
        if too_long is None or len(encoded.ids) <= most:
            return [(line, encoded, False)]
        if too_long == "error":
            raise DataError(
                f"a source of {len(encoded.ids)} tokens is longer than data.max_length={most}",
                "input",
                number,
                "truncate or split it",
            )
        if too_long == "truncate":
            return [(line, encoded.cut(most), True)]
        return [(piece, self.encode_source(piece), False) for piece in self._split(line, most)]

    def _split(self, line: str, most: int) -> list[str]:
        """Pieces of at most `most` tokens, between words where words are short enough."""
        text, tab, features = line.partition("\t") if self.run.source.features else (line, "", "")
        pieces: list[str] = []
        for word in text.split(" "):
            joined = f"{pieces[-1]} {word}" if pieces else word
            if pieces and len(self.encode_source(joined + tab + features).ids) <= most:
                pieces[-1] = joined
            else:
                pieces += [word[start : start + most] for start in range(0, len(word), most)]
        return [piece + tab + features for piece in pieces if piece.strip()]

    def _search(self, ids: list[list[int]], options: SearchOptions) -> list[list[Hypothesis]]:
        settings = self.config.search
        beam_size = settings.beam_size if options.beam_size is None else options.beam_size
        if options.beam_size is None:
            beam_size = max(beam_size, options.n_best)
        answers: list[list[Hypothesis]] = [[] for _ in ids]
        budget = options.batch_tokens or settings.batch_tokens
        for rows in sequential_batches([(len(i) + 1) * beam_size for i in ids], budget * max(1, beam_size // 2)):
            source = source_batch([ids[row] for row in rows]).to(self.device)
            with torch.inference_mode():
                found = search(
                    self.model,
                    source,
                    beam_size=beam_size,
                    n_best=options.n_best,
                    length_penalty=settings.length_penalty if options.length_penalty is None else options.length_penalty,
                    min_length=settings.min_length if options.min_length is None else options.min_length,
                    max_length=settings.max_length if options.max_length is None else options.max_length,
                    attention=options.attention,
                )
            for row, hypotheses in zip(rows, found, strict=True):
                answers[row] = hypotheses
        return answers

    def _prediction(self, source: str, encoded: Encoded, hypotheses: list[Hypothesis], cut: bool, attention: bool) -> Prediction:
        n_best = [self._alternative(hypothesis) for hypothesis in hypotheses]
        best, first = hypotheses[0], n_best[0]
        weights = best.attention.get("source") if attention else None
        return Prediction(
            source=source,
            text=first.text,
            score=first.score,
            normalized_score=first.normalized_score,
            source_tokens=[*encoded.tokens, self.run.source.token(END)],
            tokens=first.tokens,
            token_scores=first.token_scores,
            alignment=None if weights is None else weights.tolist(),
            n_best=n_best,
            truncated=cut,
            finished=first.finished,
        )

    def _alternative(self, hypothesis: Hypothesis) -> Alternative:
        return Alternative(
            text=self.text(hypothesis.ids),
            score=hypothesis.score,
            normalized_score=hypothesis.normalized_score,
            tokens=[self.run.target.token(i) for i in hypothesis.ids],
            token_scores=list(hypothesis.token_scores),
            finished=hypothesis.finished,
        )

    # ---- scores and alignments of given pairs -----------------------------------------------------------------------

    def score(
        self, pairs: Sequence[tuple[str, str]], *, length_penalty: float | None = None, attention: bool = False
    ) -> list[PairScore]:
        """The log-probability of each given (source, target), by teacher forcing: what `predict` reports of the same output."""
        sources = [self.encode_source(source) for source, _ in pairs]
        targets = [self.encode_target(target) for _, target in pairs]
        corpus = Corpus.of((s.ids for s in sources), (t.ids for t in targets))
        penalty = self.config.search.length_penalty if length_penalty is None else length_penalty
        answers: list[PairScore | None] = [None] * len(pairs)
        lengths = [max(len(s.ids), len(t.ids)) + 1 for s, t in zip(sources, targets, strict=True)]
        for rows in sequential_batches(lengths, self.config.search.batch_tokens):
            batch = corpus.batch(rows).to(self.device)
            with torch.inference_mode():
                found = score_batch(
                    self.model,
                    batch.source,
                    batch.inputs,
                    batch.outputs,
                    batch.target_mask,
                    length_penalty=penalty,
                    attention=attention,
                )
            for row, hypothesis in zip(rows, found, strict=True):
                answers[row] = self._pair_score(hypothesis, sources[row], targets[row])
        return [answer for answer in answers if answer is not None]

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
    """
    run = open_run(path)
    return Predictor(run, run.load(device), device)


def _empty(source: str, n_best: int) -> Prediction:
    """The answer to a source of white space alone: the model is not asked."""
    nothing = Alternative("", 0.0, 0.0, [], [], True)
    return Prediction(source, "", 0.0, 0.0, [], [], [], None, [nothing] * n_best, False, True)


def _joined(before: Prediction, after: Prediction, source: str) -> Prediction:
    """The answer to a source that was predicted in pieces; its alignment and alternatives stay with the pieces."""
    text = " ".join(part for part in (before.text, after.text) if part)
    tokens, token_scores = before.tokens + after.tokens, before.token_scores + after.token_scores
    score, finished = before.score + after.score, before.finished and after.finished
    normalized = before.normalized_score + after.normalized_score
    only = Alternative(text, score, normalized, tokens, token_scores, finished)
    return Prediction(
        source,
        text,
        score,
        normalized,
        before.source_tokens + after.source_tokens,
        tokens,
        token_scores,
        None,
        [only],
        False,
        finished,
    )
