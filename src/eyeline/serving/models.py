"""The runs that are served, each with a thread of its own in which it works. Knows predictors and limits; no HTTP."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar, TypeVarTuple

from eyeline.contracts import Prediction
from eyeline.errors import DataError, UserError, nearest
from eyeline.predictor import Predictor, SearchOptions, Term
from eyeline.serving.batching import Batcher, Tally, Waiting
from eyeline.serving.braking import Brake, Braked, Stopped
from eyeline.serving.limits import Limits, Refused

Arguments = TypeVarTuple("Arguments")
T = TypeVar("T")
TURN = 0.2  # seconds that a stream has the model's thread before others have it: a batch is not parted either


@dataclass(frozen=True)
class Way:
    """How inputs are predicted. Equal ones may be answered together."""

    key: Hashable
    options: SearchOptions = field(compare=False)
    terms: tuple[Term, ...] = field(compare=False)

    @classmethod
    def of(cls, options: SearchOptions, terms: Sequence[Term], number: int) -> Way:
        """For input `number` of a request, from 1; a term for another input is none for this one."""
        held = tuple(replace(term, line=None) for term in terms if term.line in (None, number))
        words = None if options.dictionary is None else frozenset(options.dictionary.items())
        return cls((replace(options, dictionary=None), words, held), options, held)


class Served:
    """A run that answers many requests, in batches. Used from one event loop.

    `predictor` stops with `braking.Stopped` where nobody waits for its answer any more; it is asked in the model's own thread,
    which is what `run` is for.
    """

    def __init__(self, name: str, predictor: Predictor, limits: Limits) -> None:
        self.name, self.limits, self.tally = name, limits, Tally()
        self._brake = Brake()
        self.predictor = copy.copy(predictor)
        self.predictor.answering = Braked(predictor.answering, self._brake)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._batcher = Batcher(self._answers, predictor.config.search.batch_tokens)
        self._running = 0

    @property
    def waiting(self) -> int:
        """Inputs and functions that have not begun."""
        return len(self._batcher) + self._running

    async def predict(
        self,
        lines: Sequence[str],
        options: SearchOptions,
        *,
        prefixes: Sequence[str] | None = None,
        terms: Sequence[Term] = (),
        numbers: Sequence[int] | None = None,
    ) -> list[Prediction]:
        """As `Predictor.predict`, together with what other requests ask.

        Args:
            numbers: of the input that each line is of, where lines are parts of inputs; from 1.

        Raises:
            Refused: too many wait already, or the time is over.
            UserError: as `Predictor.predict` does, with the place of the input.
        """
        self._admit(len(lines))
        loop, begun = asyncio.get_running_loop(), prefixes or [""] * len(lines)
        cost = options.mbr or max(options.beam_size or self.predictor.config.search.beam_size, options.n_best)
        waiting = [
            Waiting(line, prefix, number, Way.of(options, terms, number), cost, loop.create_future())
            for line, prefix, number in zip(lines, begun, numbers or range(1, len(lines) + 1), strict=True)
        ]
        self._batcher.add(waiting)
        try:
            async with asyncio.timeout(self.limits.seconds):
                return list(await asyncio.gather(*(one.answer for one in waiting)))
        except TimeoutError:
            raise self._too_late() from None
        finally:
            for one in waiting:
                one.answer.cancel()

    async def run(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """What the function answers, in the model's own thread, when what came before is done.

        Raises:
            Refused: too many wait already, or the time is over.
        """
        self._admit(1)
        return await self._in_thread(function, *arguments)

    async def stream(
        self, line: str, options: SearchOptions, *, prefix: str = "", terms: Sequence[Term] = ()
    ) -> AsyncIterator[Prediction]:
        """As `Predictor.stream_tokens`, in turn with what other requests ask.

        Raises:
            Refused: too many wait already, or the time is over.
            UserError: as `Predictor.stream_tokens` does, before anything is yielded but for what a model answers.
        """
        self._admit(1)
        loop, told = asyncio.get_running_loop(), asyncio.Queue[Prediction | None]()
        end = loop.time() + self.limits.seconds
        begin = partial(self.predictor.stream_tokens, line, options, prefix=prefix, terms=terms)
        growing = await self._in_thread(begin)

        def tell(prediction: Prediction) -> None:
            loop.call_soon_threadsafe(told.put_nowait, prediction)

        async def turns() -> None:
            try:
                while not await self._in_thread(_turn, growing, tell):
                    if loop.time() > end:
                        raise self._too_late()
            finally:
                told.put_nowait(None)

        taking = asyncio.create_task(turns())
        try:
            while (prediction := await told.get()) is not None:
                yield prediction
            await taking
        finally:
            taking.cancel()

    async def _in_thread(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        over = threading.Event()

        def work() -> T:
            with self._brake.while_wanted(lambda: not over.is_set()):
                return function(*arguments)

        self._running += 1
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except TimeoutError:
            raise self._too_late() from None
        finally:
            self._running -= 1
            over.set()

    def close(self) -> None:
        """Ends the thread when it is done with what it does."""
        self._thread.shutdown(cancel_futures=True)

    def _admit(self, inputs: int) -> None:
        if self.waiting and self.waiting + inputs > self.limits.queue:
            pace = self.tally.busy / max(1, self.tally.inputs)
            raise Refused(
                429, f"{self.waiting:,} inputs wait already", hint="try again later", retry_after=max(1.0, pace * self.waiting)
            )

    def _too_late(self) -> Refused:
        return Refused(504, f"no answer within {self.limits.seconds:g} s", hint="ask for less at a time")

    async def _answers(self, batch: Sequence[Waiting]) -> Sequence[Prediction | Exception]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        answers = await loop.run_in_executor(self._thread, self._answer, batch)
        self.tally.batches += 1
        self.tally.inputs += len(batch)
        self.tally.busy += loop.time() - began
        return answers

    def _answer(self, batch: Sequence[Waiting]) -> Sequence[Prediction | Exception]:
        """An answer for each input. What one of them cannot have must not cost the others theirs: then each is asked alone."""
        way = batch[0].way
        assert isinstance(way, Way)
        lines, prefixes = [one.line for one in batch], [one.prefix for one in batch]
        try:
            with self._brake.while_wanted(lambda: any(one.wanted for one in batch)):
                return list(self.predictor.stream(lines, way.options, prefixes=prefixes, terms=way.terms, name="inputs"))
        except Stopped as stopped:
            return [stopped] * len(batch)
        except Exception as error:
            if len(batch) == 1:
                return [_of_input(error, batch[0].number)]
        return [self._answer([one])[0] for one in batch]


def _turn(growing: Iterator[Prediction], tell: Callable[[Prediction], object]) -> bool:
    """Tells what grows for as long as a turn lasts, one step at least; whether it has ended."""
    end = time.monotonic() + TURN
    for prediction in growing:
        tell(prediction)
        if time.monotonic() > end:
            return False
    return True


def _of_input(error: Exception, number: int) -> Exception:
    """What is wrong with input `number` of a request."""
    if isinstance(error, DataError):
        return UserError(error.what, f"inputs[{number - 1}]", error.hint)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error):
        return Refused(
            503, "the memory does not suffice", f"inputs[{number - 1}]", "ask for shorter ones, or a smaller beam_size"
        )
    return error


class Models:
    """The runs that are served, by name."""

    def __init__(self, predictors: Mapping[str, Predictor], limits: Limits) -> None:
        """`predictors`: one at least; the first answers where none is named."""
        self._served = {name: Served(name, predictor, limits) for name, predictor in predictors.items()}

    @property
    def names(self) -> list[str]:
        return list(self._served)

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    def get(self, name: str | None) -> Served:
        """The one of that name; the first for None. Raises Refused for another name."""
        if name is None:
            return next(iter(self))
        if name not in self._served:
            raise Refused(404, "no model of that name is served", f"model={name}", nearest(name, self._served))
        return self._served[name]

    def close(self) -> None:
        for served in self:
            served.close()
