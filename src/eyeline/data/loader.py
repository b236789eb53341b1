"""Batches of a corpus in the order of training, from any place on; threads make them ahead of time. Knows no models.

What is made ahead is a guess of what comes next: however many threads there are, and wherever a run begins, batch n of epoch e is
the same.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from eyeline.data.corpus import Batch, Corpus
from eyeline.data.plan import Part, Plan
from eyeline.data.rows import Indices

AHEAD = 4  # batches made ahead a thread: one may be slow to make, or to come from the disk


class Loader:
    """A corpus as batches.

    Args:
        workers: threads that make batches ahead; 0: each is made when it is asked for.
        share: (rank, ranks): of each window of batches only the rank-th and every ranks-th after it.
    """

    def __init__(self, corpus: Corpus, batch_tokens: int, seed: int, workers: int = 0, share: tuple[int, int] = (0, 1)) -> None:
        self.corpus, self.workers, self.share = corpus, workers, share
        parts = corpus.parts or (Part(len(corpus), len(corpus)),)
        self.plan = Plan(corpus.lengths_of, parts, batch_tokens, seed)
        self._threads: ThreadPoolExecutor | None = None
        self._coming: dict[tuple[int, int], Future[Batch]] = {}  # (epoch, number) -> a batch that is being made

    def window(self, epoch: int, first: int, count: int) -> list[Batch]:
        """The batches first … first + count − 1 of an epoch, as far as it has them and they are of our share."""
        made = [self._get(epoch, number) for number in self._numbers(epoch, first, count)]
        if self.workers:
            self._make_ahead(epoch, first + count, count)
        return made

    def close(self) -> None:
        """Ends the threads; a window that is asked for later starts them again."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        self._threads = None
        self._coming.clear()

    def _numbers(self, epoch: int, first: int, count: int) -> list[int]:
        rank, ranks = self.share
        return [number for number in range(first, first + count) if self.plan.has(epoch, number)][rank::ranks]

    def _get(self, epoch: int, number: int) -> Batch:
        coming = self._coming.pop((epoch, number), None)
        return self._make(self.plan.rows(epoch, number), epoch) if coming is None else coming.result()

    def _make(self, rows: Indices, epoch: int) -> Batch:
        return self.corpus.batch(rows, epoch)

    def _make_ahead(self, epoch: int, first: int, count: int) -> None:
        """Has the threads make the windows that come next, should it go on as it went."""
        most = AHEAD * self.workers
        wanted: list[tuple[int, int]] = []
        for _ in range(most):  # windows; of some of them the share may be nothing
            if not self.plan.has(epoch, first):
                epoch, first = epoch + 1, 0
            wanted += [(epoch, number) for number in self._numbers(epoch, first, count)]
            first += count
            if len(wanted) >= most:
                break
        for key in self._coming.keys() - set(wanted):
            self._coming.pop(key).cancel()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.workers, "batches")
        for key in wanted:
            if key not in self._coming:
                self._coming[key] = self._threads.submit(self._make, self.plan.rows(*key), key[0])
