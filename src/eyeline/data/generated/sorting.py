"""Numbers to be pointed at in ascending order: as real-valued elements, or as symbols. Knows nothing of files or models."""

from __future__ import annotations

import random
from collections.abc import Iterator

from eyeline.data.generated import GeneratedPair, PointingPair
from eyeline.data.generated.points import GRID, Length, bounds, scaled
from eyeline.errors import ConfigError

LENGTH = (5, 15)


def sorting(count: int, seed: int, length: Length = LENGTH) -> Iterator[PointingPair]:
    """Different numbers of [0, 1), an element of one number each, and their positions from the smallest to the largest.

    Pairs are drawn one at a time; the same arguments give the same pairs, and a larger count begins with those of a smaller one.

    Raises:
        ConfigError: a length that cannot be.
    """
    shortest, longest = bounds(length, 1)
    chance = random.Random(seed)

    def draw() -> PointingPair:
        number = chance.randint(shortest, longest)
        drawn: dict[tuple[int, ...], None] = {}
        while len(drawn) < number:
            drawn[(int(chance.random() * GRID),)] = None
        values = list(drawn)
        return PointingPair(scaled(values), tuple(sorted(range(number), key=values.__getitem__)))

    return (draw() for _ in range(count))


def sorting_symbols(count: int, seed: int, length: Length = LENGTH, *, symbols: int = 100) -> Iterator[GeneratedPair]:
    """Whole numbers below `symbols`, separated by blanks, and their positions in ascending order, in the same form: `34 7 99` and
    `1 0 2`. Equal numbers keep their order. Links join each position with the number it points at, and are sure.

    Raises:
        ConfigError: a length or a number of symbols that cannot be.
    """
    shortest, longest = bounds(length, 1)
    if symbols < 1:
        raise ConfigError("at least one symbol is needed", f"symbols={symbols}")
    chance = random.Random(seed)

    def draw() -> GeneratedPair:
        values = [chance.randrange(symbols) for _ in range(chance.randint(shortest, longest))]
        order = sorted(range(len(values)), key=values.__getitem__)
        links = " ".join(f"{i}-{j}" for i, j in sorted(zip(order, range(len(order)), strict=True)))
        return GeneratedPair(" ".join(map(str, values)), " ".join(map(str, order)), links)

    return (draw() for _ in range(count))
