"""Searches that do not wait for their slowest source: others take the places of finished ones. Knows courses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from eyeline.contracts import Model, Source
from eyeline.search.course import Course, Member, Together

T = TypeVar("T")
# A step of so few rows takes hardly longer than of a single one. More are not worth another encoding, and its padding.
FEW = 32
Take = Callable[[int], tuple[Source, Course[T], int] | None]


def refilled(model: Model, take: Take[T], room: int, few: int = FEW) -> list[T]:
    """The answers to batches of sources, in the order in which they were taken.

    What is searched at a time is stepped as one wherever states can be joined, which the rows of a beam can from their second
    step on.

    Args:
        take: for so much room the next batch, its search, and the room that each of its sources takes until it is finished;
            None where no more come, or nothing fits. When all the room is free it may take more than that.
        room: of all batches together.
        few: rows, so many of which may be left, in half of the room at most, when others are let in.
    """
    every, running = list[Member[T]](), list[Together[T]]()
    with torch.no_grad():
        while True:
            free = room - sum(together.cost for together in running)
            left = sum(together.rows for together in running)
            taken = take(free) if not running or (left <= few and 2 * free >= room) else None
            if taken is not None:
                every.append(Member(*taken))
                if every[-1].turn is not None:
                    running.append(Together(model, taken[0], every[-1]))
            elif not running:
                return [member.answer for member in every]
            running = _merged(running)
            for together in running:
                together.step()
            running = [together for together in running if together.members]


def _merged(running: list[Together[T]]) -> list[Together[T]]:
    """The later ones joined to the first, but for those that cannot be yet."""
    return [*running[:1], *(other for other in running[1:] if not running[0].join(other))]
