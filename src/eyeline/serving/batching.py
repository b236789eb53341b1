"""Inputs of many requests answered together. Knows how inputs wait and which go together; no model, no HTTP.

An input waits a few milliseconds for others. Then the oldest goes, and with it those of the same options whose lengths are
nearest to its own, as many as the token budget holds. While these are answered, others come; they go when the thread is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

WAIT = 0.003  # seconds that the first of a quiet time waits for others


@dataclass(eq=False)
class Waiting:
    """An input that waits for its answer."""

    line: str
    prefix: str
    number: int  # of the input in its request, from 1
    way: Hashable  # inputs of one way can be answered together
    cost: int  # hypotheses of each of its characters
    answer: asyncio.Future[Any] = field(repr=False)

    @property
    def wanted(self) -> bool:
        return not self.answer.done()


@dataclass
class Tally:
    """What was done so far."""

    batches: int = 0
    inputs: int = 0
    busy: float = 0.0  # seconds in which the model worked


Run = Callable[[Sequence[Waiting]], "asyncio.Future[Sequence[Any]]"]


class Batcher:
    """Takes inputs and hands them on in batches. Used from one event loop."""

    def __init__(self, run: Callable[[Sequence[Waiting]], Any], budget: int) -> None:
        """
        Args:
            run: a coroutine function that answers a batch: one answer or exception for each input.
            budget: hypotheses × characters of a batch, each input as long as the longest.
        """
        self._run, self._budget = run, budget
        self._waiting: list[Waiting] = []
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, inputs: Sequence[Waiting]) -> None:
        """Lets inputs wait for their answers. One whose answer is cancelled leaves without one."""
        self._waiting += inputs
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        await asyncio.sleep(WAIT)
        while batch := self._next():
            try:
                answers = await self._run(batch)
            except Exception as error:  # a defect is told to all that wait for it, and the next batch goes on
                answers = [error] * len(batch)
            for one, answer in zip(batch, answers, strict=True):
                if not one.wanted:
                    continue
                if isinstance(answer, Exception):
                    one.answer.set_exception(answer)
                else:
                    one.answer.set_result(answer)

    def _next(self) -> list[Waiting]:
        self._waiting = [one for one in self._waiting if one.wanted]
        batch = together(self._waiting, self._budget)
        gone = set(map(id, batch))
        self._waiting = [one for one in self._waiting if id(one) not in gone]
        return batch


def together(waiting: Sequence[Waiting], budget: int) -> list[Waiting]:
    """The first, and of its way those nearest to its length, the older of two as near, as many as the budget holds."""
    if not waiting:
        return []
    first = waiting[0]
    size = len(first.line)
    alike = [one for one in waiting if one.way == first.way]
    alike.sort(key=lambda one: abs(len(one.line) - size))  # stable, so that `first` stays the first
    batch, longest = [first], size + 1
    for one in alike[1:]:
        longest = max(longest, len(one.line) + 1)
        if (len(batch) + 1) * longest * first.cost > budget:
            break
        batch.append(one)
    return batch
