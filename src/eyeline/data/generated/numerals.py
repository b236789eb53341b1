"""Numbers in words, and their digits, in ten languages.

The words come from CLDR's rules by way of unicode-rbnf. A rule splits a number into a quotient, a remainder and words of
its own; following the rules shows which digits each word stands for. Knows nothing of files or models.
"""

from __future__ import annotations

import math
import random
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from eyeline.data.generated import GeneratedPair, Links
from eyeline.errors import ConfigError, nearest, require

LANGUAGES = ("en", "de", "fr", "es", "ru", "ko", "ja", "ar", "hi", "tr")
RULES = "spellout-numbering"
LARGEST = 10**12  # beyond it some languages give digits instead of words
PATIENCE = 10_000  # draws in a row without anything new before a set counts as exhausted


@dataclass(frozen=True)
class Piece:
    """Some text, and the digits that it stands for as powers of ten: "twenty" of 20,000 stands for power 4."""

    text: str
    powers: tuple[int, ...] = ()
    leaf: bool = False  # the name of a whole number, rather than a scale word such as "hundred"


def numerals(
    count: int,
    seed: int,
    *,
    languages: Sequence[str] = LANGUAGES,
    smallest: int = 1,
    limit: int = 10**6,
    taken: Collection[int] = (),
) -> list[GeneratedPair]:
    """Different numbers in words, each in a language drawn evenly. The same arguments give the same pairs.

    The logarithm of the number is uniform; what was drawn before is drawn again elsewhere, so that the few small numbers are
    soon used up and more of the larger ones come than their share.

    Args:
        count: how many pairs; no source comes twice.
        seed: of the draw.
        languages: as unicode-rbnf names them.
        smallest, limit: numbers n with smallest ≤ n < limit.
        taken: numbers never to use, such as those of another part of the data.

    Raises:
        ConfigError: an unknown language, limits that cannot be, more pairs than can be drawn.
        MissingExtra: unicode-rbnf is not installed.
    """
    if not 1 <= smallest < limit <= LARGEST:
        raise ConfigError(f"numbers lie between 1 and {LARGEST}", f"smallest={smallest}, limit={limit}")
    if not languages:
        raise ConfigError("no language is given", "languages", f"such as: {', '.join(LANGUAGES)}")
    chance, unusable = random.Random(seed), frozenset(taken)
    low, high = math.log(smallest), math.log(limit)
    seen: set[str] = set()
    pairs: list[GeneratedPair] = []
    fruitless = 0  # draws in a row that gave nothing new
    while len(pairs) < count:
        if fruitless > PATIENCE:
            raise ConfigError(f"only {len(pairs)} different pairs could be drawn", f"count={count}", "raise the limit")
        fruitless += 1
        number = min(limit - 1, max(smallest, int(math.exp(low + (high - low) * chance.random()))))
        language = languages[chance.randrange(len(languages))]
        if number in unusable:
            continue
        pair = aligned(number, spelled(number, language))
        if pair.source not in seen:  # a word may belong to two languages: six
            seen.add(pair.source)
            pairs.append(pair)
            fruitless = 0
    return pairs


def spelled(number: int, language: str) -> list[Piece]:
    """A number in words, in pieces that joined are what unicode-rbnf itself writes, in NFC.

    Raises:
        ConfigError: unicode-rbnf does not know the language.
    """
    engine = _engine(language)
    pieces = [Piece(_clean(p.text), p.powers, p.leaf) for p in _follow(engine, RULES, number, 0)]
    joined = "".join(piece.text for piece in pieces)
    theirs = _clean(engine.format_number(number, ruleset_names=[RULES]).text)
    assert joined == theirs, f"{joined!r} is not what unicode-rbnf writes for {number} in {language}: {theirs!r}"
    return pieces


def aligned(number: int, pieces: Sequence[Piece]) -> GeneratedPair:
    """The pair and its links: each letter of a word to the digits that the word stands for; sure where a single letter is
    the name of a single digit, as 三 is. Zeros that nobody says have no link, nor have blanks, hyphens and "and"."""
    digits = str(number)
    links, start = Links(), 0
    for piece in pieces:
        letters = [start + i for i, character in enumerate(piece.text) if unicodedata.category(character)[0] in "LMN"]
        link = links.sure if piece.leaf and len(letters) == len(piece.powers) == 1 else links.possible
        for i in letters:
            for power in piece.powers:
                link(i, len(digits) - 1 - power)
        start += len(piece.text)
    return GeneratedPair("".join(piece.text for piece in pieces), digits, str(links))


def _follow(engine: Any, rules: str, number: int, low: int) -> Iterator[Piece]:
    """What a set of rules says for a number whose ones are the digit of 10^low of the whole."""
    kinds = require("unicode_rbnf.engine", "generate")
    rule = engine.rulesets[rules].find_rule(number)
    divisor = _divisor(rule.value, rule.radix, number)
    quotient, remainder = divmod(number, divisor) if rule.value > 0 else (0, 0)
    substitutes = any(isinstance(part, kinds.SubRulePart) for part in rule.parts)
    replaces = any(isinstance(part, kinds.ReplaceRulePart) for part in rule.parts)
    own = () if replaces or number == 0 else _powers(number - remainder, divisor if substitutes else 1, low)
    for part in rule.parts:
        if isinstance(part, kinds.TextRulePart):
            yield Piece(part.text, own, leaf=not substitutes)
        elif isinstance(part, kinds.PluralFormatPart):
            yield Piece(part.render(quotient, engine.language), own)
        elif isinstance(part, kinds.ReplaceRulePart):
            yield from _follow(engine, part.ruleset_name, number, low)
        else:
            is_quotient = part.type == kinds.SubType.QUOTIENT
            value = quotient if is_quotient else remainder
            if value == 0 and (part.is_optional or part.ruleset_name is None):
                continue
            power = _valuation(divisor)
            assert not is_quotient or divisor == 10**power, f"the quotient by {divisor} is not made of digits"
            yield Piece(part.text_before)
            yield from _follow(engine, part.ruleset_name or rules, value, low + power if is_quotient else low)
            yield Piece(part.text_after)


def _divisor(base: int, radix: int, number: int) -> int:
    """By what a rule divides: the power of its radix that its base value reaches; as unicode-rbnf has it, it is the radix
    itself for 60 and 80 in steps of twenty."""
    if base <= 0:
        return 1
    if base >= 10:
        base = 10 ** (len(str(base)) - 1) if str(base)[0] != "1" else base
    below = 1
    while below * radix <= base:
        below *= radix
    above = below if below == base else below * radix
    return above if number >= above else below


def _powers(said: int, divisor: int, low: int) -> tuple[int, ...]:
    """The powers of ten of the digits of `said`, from its first digit down to those that the divisor rounds away."""
    return tuple(low + power for power in range(len(str(said)) - 1, _valuation(divisor) - 1, -1))


def _valuation(divisor: int) -> int:
    """How many zeros the divisor ends in."""
    return len(str(divisor)) - len(str(divisor).rstrip("0"))


def _clean(text: str) -> str:
    """NFC without soft hyphens, which mark only where a word may be broken."""
    return unicodedata.normalize("NFC", text.replace("\xad", ""))


@lru_cache
def _engine(language: str) -> Any:
    library = require("unicode_rbnf", "generate")
    known = library.RbnfEngine.get_supported_languages()
    if language not in known:
        raise ConfigError("unicode-rbnf does not know this language", language, nearest(language, known))
    return library.RbnfEngine.for_language(language)
