"""Gold links of a pair's words or characters made into links of its tokens, for guided alignment (Chen et al. 2016).

Sure and possible links count alike. A token that its gold links to nothing has no link, and END has none on either side: the
gold says nothing about where a model should look when it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

from eyeline.data.coding import Spelling
from eyeline.errors import DataError
from eyeline.metrics import parse_links
from eyeline.text.records import Pair
from eyeline.text.tokenizers import Encoded
from eyeline.text.words import word_spans

Unit = Literal["words", "characters"]
TokenLinks = list[tuple[int, int]]  # (source token, target token), from 0, features counted
Members = list[list[int]]  # the tokens of each word, or of each character


def token_links(pair: Pair, source: Encoded, target: Encoded, spelling: Spelling, unit: Unit) -> TokenLinks:
    """The pair's gold links, which count words or characters of it as typed, between the tokens of its encoded sides.

    Every token of a source word is linked with every token of the target word that the gold links it to; so are the tokens that
    hold linked characters.

    Raises:
        DataError: a link that is none, or is beyond the words or characters there are.
    """
    if unit == "words":
        sides = _of_words(source), _of_words(target)
    else:
        sides = _of_characters(pair.source, source, spelling.of_source), _of_characters(pair.target, target, spelling.of_target)
    links: set[tuple[int, int]] = set()
    for i, j in parse_links(pair.alignment or "", pair.path, pair.line).possible:
        for name, place, members in zip(("source", "target"), (i, j), sides, strict=True):
            if place >= len(members):
                what = f"a link {i}-{j}, and the {name} has {len(members)} {unit}"
                raise DataError(what, pair.path, pair.line, "links count from 0; data.links says what they count")
        links.update((s, t) for s in sides[0][i] for t in sides[1][j])
    return sorted(links)


def _of_words(encoded: Encoded) -> Members:
    members: Members = [[] for _ in word_spans(encoded.text)]  # as many as were typed: spelling moves no blank
    for token, word in enumerate(encoded.words):
        if word is not None:
            members[word].append(token)
    return members


def _of_characters(text: str, encoded: Encoded, spell: Callable[[str], str]) -> Members:
    """By the place of each character in the text that was encoded, where it may be spelt with more or fewer of them."""
    places: list[list[int]] = [[] for _ in encoded.text]
    for token, (start, end) in enumerate(encoded.spans):
        for place in range(start, end):
            places[place].append(token)
    if len(encoded.text) == len(text):
        return places
    ends = [len(spell(text[:count])) for count in range(len(text) + 1)]
    spelt = [range(min(start, end - 1), end) for start, end in pairwise(ends)]  # a mark that has joined its letter is there
    return [sorted({token for place in span for token in places[place]}) for span in spelt]
