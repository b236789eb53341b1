"""From pieces of sources to hypotheses, in batches of like lengths. Knows settings and searches; no text but what risk is told
by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from eyeline.config import Config, SearchSettings
from eyeline.contracts import Hypothesis, Model, Source
from eyeline.data.batches import Indices, Waiting, sequential_batches
from eyeline.data.coding import Coder
from eyeline.errors import ConfigError
from eyeline.predictor.answers import Piece
from eyeline.predictor.engines import Engine
from eyeline.predictor.inputs import SearchOptions, sampled_from
from eyeline.predictor.risk import least_risk
from eyeline.predictor.shortlist import Shortlist, search_candidates
from eyeline.search import WORTHS, Demands, default_max_length, next_tokens, sample, search
from eyeline.search.course import Course, Searching
from eyeline.search.limits import Ranking
from eyeline.search.refilling import refilled
from eyeline.search.unfolding import unfold

Found = list[list[Hypothesis]]  # the hypotheses of each source
Way = Searching[..., Found]


@dataclass(frozen=True)
class Searcher:
    """Looks for outputs as one call of `predict` wants it."""

    model: Model
    coder: Coder
    config: Config
    options: SearchOptions
    settings: SearchSettings
    device: torch.device
    engine: Engine | None = None  # answers what it can in the place of our search
    shortlist: Shortlist | None = None  # what outputs are chosen from; None: the whole vocabulary

    def check(self) -> None:
        """Raises ConfigError for options that do not go with a shortlist."""
        drawn = [name for name, on in (("sampling", self.options.sampling is not None), ("mbr", self.options.mbr)) if on]
        if self.shortlist is not None and drawn:
            where = f"{drawn[0]}={getattr(self.options, drawn[0])}"
            raise ConfigError("samples are drawn from the whole vocabulary", where, "leave it or the shortlist out")

    def __call__(self, pieces: Sequence[Piece]) -> list[list[Hypothesis]]:
        """The hypotheses of each piece, best first; samples as they were drawn."""
        if self.engine is None:
            return self._search(pieces)
        found = self._engaged(self.engine, pieces)
        left = iter(self._search([piece for piece, answer in zip(pieces, found, strict=True) if answer is None]))
        return [next(left) if answer is None else answer for answer in found]

    def _engaged(self, engine: Engine, pieces: Sequence[Piece]) -> list[list[Hypothesis] | None]:
        """What the engine says of each piece; None where our search is wanted."""
        settings = self.settings
        found: list[list[Hypothesis] | None] = [None] * len(pieces)
        plain = [row for row, piece in enumerate(pieces) if not (piece.prefix or piece.required or piece.forbidden)]
        lengths = np.array([len(pieces[row].source.encoded.ids) + 1 for row in plain], dtype=np.int64)
        for places in sequential_batches(lengths * settings.beam_size, settings.batch_tokens):
            rows = [plain[place] for place in places]
            _, most = self._bounds(lengths[places].tolist())
            said = engine(
                [pieces[row].source.encoded.ids for row in rows],
                most,
                beam_size=settings.beam_size,
                n_best=self.options.n_best,
                length_penalty=settings.length_penalty,
                patience=settings.patience,
                normalize=self.ranking.normalize,
            )
            for row, hypotheses in zip(rows, said, strict=True):
                found[row] = hypotheses
        return found

    def _search(self, pieces: Sequence[Piece]) -> Found:
        sources, settings, (way, given) = self.coder.sources([piece.source for piece in pieces]), self.settings, self._way()
        costs = sources.ids.lengths * settings.beam_size
        waiting, taken = Waiting(costs), list[Indices]()

        def batch(room: int) -> tuple[Source, dict[str, Any]] | None:
            # the next sources for so much room, and what is asked of a search of them
            rows = waiting.take(room, settings.batch_tokens)
            if rows is None:
                return None
            taken.append(rows)
            some = sources.batch(rows)
            return some.to(self.device), {**given, **self._asked(some, [pieces[row] for row in rows])}

        def take(room: int) -> tuple[Source, Course[Found], int] | None:
            if (found := batch(room)) is None:
                return None
            source, asked = found
            return source, way.course(source, **asked), int(costs[taken[-1]].max())

        with torch.inference_mode():
            if self.shortlist is None:
                found = refilled(self.model, take, settings.batch_tokens)
            else:  # each batch has an output layer of its own, and is searched by itself
                batches = iter(lambda: batch(settings.batch_tokens), None)
                found = [search_candidates(way, self.shortlist, self.model, *each) for each in batches]
        answers: Found = [[] for _ in pieces]
        for rows, several in zip(taken, found, strict=True):
            for row, hypotheses in zip(rows, several, strict=True):
                answers[row] = hypotheses
        if not self.options.mbr:
            return answers
        return [self._by_risk(piece, several) for piece, several in zip(pieces, answers, strict=True)]

    @property
    def ranking(self) -> Ranking:
        settings = self.settings
        return Ranking(settings.length_penalty, WORTHS[settings.length_normalization], settings.coverage_penalty)

    def alternatives(self, piece: Piece, count: int) -> list[Hypothesis]:
        """The best outputs that say another token after the piece's prefix each, for the `count` likeliest of these."""
        source = self.coder.sources([piece.source]).batch(np.zeros(1, dtype=np.int64)).to(self.device)
        begun = piece.prefix.ids if piece.prefix else []
        with torch.inference_mode():
            ways = [[*begun, token] for token in next_tokens(self.model, source, begun, count)]
            several = source.select(torch.zeros(len(ways), dtype=torch.long, device=self.device))
            asked = {**self._asked(several, [piece] * len(ways)), "demands": Demands(ways)}
            way, given = self._way()
            return [found[0] for found in way(self.model, several, **given, **asked)]

    def unfold(self, piece: Piece) -> Iterator[tuple[Hypothesis, bool]]:
        """The one output to a piece as it grows, greedy or drawn, and whether it is whole."""
        source = self.coder.sources([piece.source]).batch(np.zeros(1, dtype=np.int64)).to(self.device)
        filters = None if self.options.sampling is None else sampled_from(self.options.sampling)
        return unfold(self.model, source, filters=filters, seed=self._seed, **self._asked(source, [piece]))

    @property
    def _seed(self) -> int:
        return self.config.seed if self.options.seed is None else self.options.seed

    def _way(self) -> tuple[Way, dict[str, Any]]:
        """A search, and what it alone takes."""
        options, settings = self.options, self.settings
        if options.sampling is not None or options.mbr:
            drawn = {"samples": settings.beam_size, "seed": self._seed, "filters": sampled_from(options.sampling or "")}
            return sample, drawn
        return search, {
            "beam_size": settings.beam_size,
            "n_best": options.n_best,
            "diverse_groups": settings.diverse_groups,
            "diversity": settings.diversity,
            "patience": settings.patience,
        }

    def _asked(self, batch: Source, pieces: Sequence[Piece]) -> dict[str, Any]:
        """What all searches take."""
        settings, (minima, maxima) = self.settings, self._bounds(batch.lengths.tolist())
        prefixes = [piece.prefix.ids if piece.prefix else () for piece in pieces]
        return {
            "length_penalty": settings.length_penalty,
            "worth": WORTHS[settings.length_normalization],
            "min_length": minima,
            "max_length": maxima,
            "attention": self.options.attention or self.options.replace_unknown,
            "coverage_penalty": settings.coverage_penalty,
            "no_repeat_ngram": settings.no_repeat_ngram,
            "demands": Demands(
                prefixes if any(prefixes) else (),
                [piece.required for piece in pieces],
                [piece.forbidden for piece in pieces],
            ),
        }

    def _bounds(self, lengths: Sequence[int]) -> tuple[list[int], list[int]]:
        """The fewest and most tokens of each output; `lengths` are those of sources, END counted.

        A beam may go on to the end of this before it knows that nothing better comes, and no target of training had more than
        `data.max_length`: without that bound a line of 5,000 characters would take minutes.
        """
        settings, (most, _), longest = self.settings, self.config.most_tokens, self.config.model.longest
        minima, maxima = [], []
        for length in lengths:
            least = max(settings.min_length, math.ceil(settings.min_length_ratio * (length - 1)))
            bounds = [] if settings.max_length is None else [settings.max_length]
            if settings.max_length_ratio is not None:
                bounds.append(max(1, math.floor(settings.max_length_ratio * (length - 1))))
            if longest is not None:
                bounds.append(longest - 1)
            if settings.max_length is None and settings.max_length_ratio is None:
                bounds.append(max(min(default_max_length(length), most), least))
            maxima.append(min(bounds))
            minima.append(min(least, maxima[-1]))
        return minima, maxima

    def _by_risk(self, piece: Piece, samples: Sequence[Hypothesis]) -> list[Hypothesis]:
        texts = [self.coder.decode(one.ids, piece.source) for one in samples]
        return least_risk(samples, texts)[: self.options.n_best]
