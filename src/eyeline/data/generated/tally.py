"""Symbols to be said in order, each as often as it came: a task on which attention repeats itself. Knows no files, no models."""

from __future__ import annotations

import random
from collections.abc import Iterator

from eyeline.data.generated import GeneratedPair
from eyeline.data.generated.points import Length, bounds
from eyeline.errors import ConfigError

LENGTH = (10, 30)


def tally(count: int, seed: int, length: Length = LENGTH, *, symbols: int = 3) -> Iterator[GeneratedPair]:
    """Symbols 0 … symbols - 1 in any order, separated by blanks, and the same ones sorted: `2 0 2 1 2` and `0 1 2 2 2`.

    Whoever says the third 2 must know that it is the last. Where attention looks at equal symbols alike, what it sees is the same
    each time, and nothing but a memory of where it has looked, or a count in the decoder's state, tells when to go on. An output
    that says a symbol more often than its source has repeated itself; one that says it less often has left some out.

    A link is sure where a symbol comes once; of equal ones, each may have come from each (`p`). Pairs are drawn one at a time:
    the same arguments give the same pairs, and a larger count begins with those of a smaller one.

    Raises:
        ConfigError: a length or a number of symbols that cannot be.
    """
    shortest, longest = bounds(length, 1)
    if symbols < 1:
        raise ConfigError("at least one symbol is needed", f"symbols={symbols}")
    chance = random.Random(seed)

    def draw() -> GeneratedPair:
        said = [chance.randrange(symbols) for _ in range(chance.randint(shortest, longest))]
        target = sorted(said)
        links = [
            f"{i}{'-' if said.count(symbol) == 1 else 'p'}{j}"
            for i, symbol in enumerate(said)
            for j, other in enumerate(target)
            if symbol == other
        ]
        return GeneratedPair(" ".join(map(str, said)), " ".join(map(str, target)), " ".join(links))

    return (draw() for _ in range(count))
