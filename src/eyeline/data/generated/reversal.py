"""Symbols to be said backwards: the smallest task on which attention can be seen at work. Knows nothing of files or models."""

from __future__ import annotations

import random
from collections.abc import Iterator

from eyeline.data.generated import GeneratedPair
from eyeline.errors import ConfigError


def reversal(count: int, seed: int, max_length: int = 25, *, symbols: int = 50, min_length: int = 1) -> Iterator[GeneratedPair]:
    """Symbols 0 … symbols - 1, separated by blanks, and the same backwards; every link is sure.

    Pairs are drawn one at a time: the same arguments give the same pairs, and a larger count begins with those of a smaller one.
    Lengths are uniform from min_length to max_length: train to 25, and test to 30 to see what lies beyond. The short ones
    come more than once, so that another seed's pairs may repeat some of them.

    Raises:
        ConfigError: lengths or symbols that cannot be.
    """
    if not 1 <= min_length <= max_length:
        raise ConfigError("lengths run from at least 1 upwards", f"min_length={min_length}, max_length={max_length}")
    if symbols < 1:
        raise ConfigError("at least one symbol is needed", f"symbols={symbols}")
    chance = random.Random(seed)

    def draw() -> GeneratedPair:
        length = chance.randint(min_length, max_length)
        words = [str(chance.randrange(symbols)) for _ in range(length)]
        alignment = " ".join(f"{i}-{length - 1 - i}" for i in range(length))
        return GeneratedPair(" ".join(words), " ".join(reversed(words)), alignment)

    return (draw() for _ in range(count))
