"""Shortlists from where a run looks, and how exact they are. Knows predictors and pairs.

Each target token counts for each token of its source by the attention between them, and a source token's list is what counts
most for it. No aligner is asked but the run itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from eyeline.contracts import PAD, RESERVED
from eyeline.data.batches import sequential_batches
from eyeline.errors import UserError
from eyeline.evaluation.alignments import given_pairs, no_attention
from eyeline.predictor import Asked, Predictor
from eyeline.predictor.shortlist import Shortlist, check_layer
from eyeline.text.records import Pair

LEAST_LOOK = 0.05  # of attention; less is no sign that words belong together
PORTION = 10_000  # pairs whose ids are held at a time
HELD = 2**22  # counts that wait to be added up


class _Counts:
    """How much each output counts for each source symbol: a sparse table, added up now and then."""

    def __init__(self, outputs: int) -> None:
        self._outputs = outputs
        self._keys: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._values: npt.NDArray[Any] = np.zeros(0)
        self._waiting: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]] = []

    def add(self, sources: npt.NDArray[np.int64], targets: npt.NDArray[np.int64], values: npt.NDArray[np.float32]) -> None:
        self._waiting.append((sources * self._outputs + targets, values))
        if sum(len(keys) for keys, _ in self._waiting) > HELD:
            self._add_up()

    def _add_up(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
        values = np.concatenate([self._values, *(values for _, values in self._waiting)])
        self._keys, places = np.unique(keys, return_inverse=True)
        self._values, self._waiting = np.bincount(places, values, len(self._keys)), []

    def best(self, symbols: int, most: int, apart: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """[symbols, most] the outputs that count most for each source symbol, those `apart` left out; PAD behind the last."""
        self._add_up()
        keep = ~np.isin(self._keys % self._outputs, apart)
        sources, targets = np.divmod(self._keys[keep], self._outputs)
        order = np.lexsort((targets, -self._values[keep], sources))
        sources, targets = sources[order], targets[order]
        ranks = np.arange(len(sources)) - np.searchsorted(sources, sources)
        table = np.full((symbols, most), PAD, dtype=np.int32)
        good = ranks < most
        table[sources[good], ranks[good]] = targets[good]
        return table


def make_shortlist(
    predictor: Predictor,
    pairs: Sequence[Pair],
    *,
    likely: int = 40,
    always: int = 100,
    watch: Callable[[Iterator[int]], Iterable[int]] = iter,
) -> Shortlist:
    """What each source symbol may turn into, from where the run looks in `pairs`.

    Args:
        likely: most outputs for a symbol.
        always: outputs that are offered whatever the source is: the most frequent ones.
        watch: is passed how many pairs are done, and shows it.

    Raises:
        ConfigError: the run's outputs are not chosen from a vocabulary alone.
        UserError: it has no attention, or the pairs are none.
    """
    check_layer(predictor.run, predictor.model)
    counts, frequent = _Counts(predictor.run.target.size), np.zeros(predictor.run.target.size, dtype=np.int64)
    for _ in watch(_count(predictor, pairs, counts, frequent)):
        pass
    if not frequent.any():
        raise UserError("no target has a token to be learnt from", "PAIRS")
    most = np.argsort(-frequent, kind="stable")[: min(always, int((frequent > 0).sum()))]
    table = counts.best(predictor.run.source.size, likely, most)
    return Shortlist(torch.from_numpy(table), torch.from_numpy(most.astype(np.int32)))


def _count(predictor: Predictor, pairs: Sequence[Pair], counts: _Counts, frequent: npt.NDArray[np.int64]) -> Iterator[int]:
    """Counts pairs; how many are done, now and then."""
    for start in range(0, len(pairs), PORTION):
        asked = predictor.asked(given_pairs(predictor, pairs[start : start + PORTION]))
        yield from _count_portion(predictor, asked, counts, frequent)


def _count_portion(predictor: Predictor, asked: Asked, counts: _Counts, frequent: npt.NDArray[np.int64]) -> Iterator[int]:
    corpus = asked.corpus
    lengths = np.maximum(corpus.source_lengths, corpus.target_lengths)
    for rows in sequential_batches(lengths, predictor.config.search.batch_tokens):
        batch = corpus.batch(rows).to(predictor.device)
        with torch.inference_mode():
            attention = predictor.model(batch.source, batch.inputs).attention
            if "source" not in attention:
                raise no_attention(predictor)
            looks = attention["source"].float().cpu().numpy()  # [B, T, S]
        sources, targets = batch.source.ids.cpu().numpy(), batch.outputs.cpu().numpy()
        pair, place = np.nonzero(targets >= len(RESERVED))  # PAD, END and what no vocabulary holds are always candidates
        frequent += np.bincount(targets[pair, place], minlength=len(frequent))
        looks = looks[pair, place]  # [tokens, S]
        token, symbol = np.nonzero(looks > LEAST_LOOK)
        counts.add(sources[pair[token], symbol], targets[pair, place][token], looks[token, symbol])
        yield len(rows)


@dataclass(frozen=True)
class Exactness:
    """Outputs with a shortlist beside those without."""

    lines: int
    same: int  # outputs that are equal
    candidates: float  # the mean of a source
    seconds: tuple[float, float]  # without, with

    def __str__(self) -> str:
        without, within = self.seconds
        share = 100 * self.same / max(1, self.lines)
        return (
            f"the same output for {self.same:,} of {self.lines:,} lines ({share:.1f} %), {self.candidates:,.0f} candidates "
            f"a line; {self.lines / without:,.1f} lines/s without, {self.lines / within:,.1f} with it"
        )


def exactness(predictor: Predictor, lines: Sequence[str], shortlist: Shortlist) -> Exactness:
    """Predicts the lines twice, by the run's own search settings."""
    texts, seconds = [], []
    for each in (None, shortlist):
        began = time.perf_counter()
        texts.append([one.text for one in predictor.under(each).predict(lines, attention=False)])
        seconds.append(time.perf_counter() - began)
    reads = [predictor.read(line) for line in lines if not predictor.is_blank(line)]
    sources = predictor.coder.sources(reads)
    among = [shortlist.among(sources.batch(np.array([row])), predictor.run.target.size) for row in range(len(reads))]
    same = sum(one == other for one, other in zip(*texts, strict=True))
    mean = float(np.mean([int(one.sum()) for one in among])) if among else 0.0
    return Exactness(len(lines), same, mean, (seconds[0], seconds[1]))
