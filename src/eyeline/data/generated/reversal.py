"""Symbols to be said backwards: the smallest task on which attention can be seen at work. Knows nothing of files or models."""

from __future__ import annotations

import random

from eyeline.data.generated import GeneratedPair
from eyeline.errors import ConfigError


def reversal(count: int, seed: int, max_length: int = 25, *, symbols: int = 50, min_length: int = 1) -> list[GeneratedPair]:
    """Symbols 0 … symbols - 1, separated by blanks, and the same backwards; every link is sure. Same arguments, same pairs.

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
    pairs = []
    for _ in range(count):
        length = chance.randint(min_length, max_length)
        words = [str(chance.randrange(symbols)) for _ in range(length)]
        alignment = " ".join(f"{i}-{length - 1 - i}" for i in range(length))
        pairs.append(GeneratedPair(" ".join(words), " ".join(reversed(words)), alignment))
    return pairs
