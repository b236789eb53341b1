"""Which inputs go together, and what becomes of each, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from eyeline.serving.batching import Batcher, Waiting, together


@pytest.fixture
def loop() -> Any:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def some(loop: Any, *lines: str, way: str = "greedy", cost: int = 1) -> list[Waiting]:
    return [Waiting(line, "", 1, way, cost, loop.create_future()) for line in lines]


def test_the_oldest_goes_with_those_of_like_length(loop: Any) -> None:
    inputs = some(loop, "a" * 9, "a", "a" * 10, "aa", "a" * 8)
    assert [one.line for one in together(inputs, 33)] == ["a" * 9, "a" * 10, "a" * 8]
    assert [len(one.line) for one in together(inputs, 10_000)] == [9, 10, 8, 2, 1]


def test_the_budget_counts_padding_and_hypotheses(loop: Any) -> None:
    assert len(together(some(loop, *["aaa"] * 9), 16)) == 4
    assert len(together(some(loop, *["aaa"] * 9, cost=2), 16)) == 2
    assert len(together(some(loop, "a" * 100, "b"), 16)) == 1, "what alone exceeds it goes alone"


def test_ways_do_not_mix(loop: Any) -> None:
    inputs = some(loop, "a") + some(loop, "b", way="beam") + some(loop, "c")
    assert [one.line for one in together(inputs, 100)] == ["a", "c"]
    assert together([], 100) == []


def run(inputs: Sequence[tuple[str, str]], *, broken: str = "", cancelled: str = "") -> tuple[list[Any], list[list[str]]]:
    """The answers to lines and ways that come at once, and the batches that were made; an answer is the line in capitals."""
    batches: list[list[str]] = []

    async def answers(batch: Sequence[Waiting]) -> list[Any]:
        batches.append([one.line for one in batch])
        if broken in batches[-1]:
            raise KeyError(broken)
        await asyncio.sleep(0)
        return [one.line.upper() for one in batch]

    async def main() -> list[Any]:
        batcher, loop = Batcher(answers, 100), asyncio.get_running_loop()
        given = [Waiting(line, "", 1, way, 1, loop.create_future()) for line, way in inputs]
        for one in given:
            batcher.add([one])
            if one.line == cancelled:
                one.answer.cancel()
        return await asyncio.gather(*(one.answer for one in given), return_exceptions=True)

    return asyncio.run(main()), batches


def test_each_gets_its_own_answer() -> None:
    inputs = [(letter * (1 + number % 3), "xy"[number % 2]) for number, letter in enumerate("abcdefgh")]
    answers, batches = run(inputs)
    assert answers == [line.upper() for line, _ in inputs]
    assert len(batches) == 2
    assert sorted(line for batch in batches for line in batch) == sorted(line for line, _ in inputs)


def test_a_defect_is_told_to_those_that_it_hit() -> None:
    answers, _ = run([("a", "x"), ("b", "y"), ("c", "x")], broken="a")
    assert isinstance(answers[0], KeyError)
    assert isinstance(answers[2], KeyError)
    assert answers[1] == "B"


def test_nobody_works_for_who_has_gone() -> None:
    answers, batches = run([("a", "x"), ("b", "x")], cancelled="a")
    assert isinstance(answers[0], asyncio.CancelledError)
    assert (answers[1], batches) == ("B", [["b"]])
