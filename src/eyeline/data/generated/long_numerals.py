"""Numbers in words of a wanted length, long ones as well as short ones. Knows numerals; nothing of files or models.

Numbers drawn evenly have words for nearly all of their digits, so that short sources would have few digits and long ones many: a
model could tell length by magnitude, and would never meet "billion" in a short source. Here the number of digits and the share
of them that are not zero are drawn apart: a short source may be of any magnitude, and what is new in a long one is its length.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from eyeline.data.generated import GeneratedPair
from eyeline.data.generated.numerals import PATIENCE, aligned, spelled
from eyeline.errors import ConfigError

DIGITS = 12  # of the largest number


def long_numerals(
    count: int,
    seed: int,
    *,
    languages: Sequence[str],
    shortest: int = 1,
    longest: int = 60,
    taken: Collection[int] = (),
) -> list[GeneratedPair]:
    """Different numbers in words of `shortest` to `longest` characters, each in a language drawn evenly.

    Args:
        count: how many pairs; no source comes twice.
        seed: of the draw; the same arguments give the same pairs.
        languages: as unicode-rbnf names them.
        taken: numbers never to use, such as those of another part of the data.

    Raises:
        ConfigError: an unknown language, or more pairs than can be drawn.
        MissingExtra: unicode-rbnf is not installed.
    """
    chance, unusable = random.Random(seed), frozenset(taken)
    seen: set[str] = set()
    pairs: list[GeneratedPair] = []
    fruitless = 0
    while len(pairs) < count:
        if fruitless > PATIENCE:
            raise ConfigError(
                f"only {len(pairs)} different pairs could be drawn", f"count={count}, longest={longest}", "allow more lengths"
            )
        fruitless += 1
        number = _number(chance)
        if number in unusable:
            continue
        pair = aligned(number, spelled(number, languages[chance.randrange(len(languages))]))
        if shortest <= len(pair.source) <= longest and pair.source not in seen:
            seen.add(pair.source)
            pairs.append(pair)
            fruitless = 0
    return pairs


def _number(chance: random.Random) -> int:
    """1 to 12 digits; after the first, each is zero or not with a chance that is drawn as well."""
    filled = chance.random()
    first = chance.randint(1, 9)
    rest = [chance.randint(1, 9) if chance.random() < filled else 0 for _ in range(chance.randrange(DIGITS))]
    return int("".join(map(str, [first, *rest])))
