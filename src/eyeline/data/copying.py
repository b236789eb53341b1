"""Extended ids: words that no vocabulary holds become outputs, a few for each source. Knows strings and ids; no models.

A target vocabulary of V entries is extended, for one source, by the symbols of that source that it does not hold: V + k is the
k-th of them, in order of appearance (See et al. 2017, section 2.2). So another source's V + k is another word.

Symbols are compared as `Encoded.surfaces` writes them, blanks included: both sides want tokenizers of one kind, or none agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eyeline.contracts import UNKNOWN

Lookup = Callable[[str], int]  # of the target vocabulary: the id of a surface, UNKNOWN where it holds none; `Tokenizer.lookup`


@dataclass(frozen=True, slots=True)
class Copyable:
    """A source, as what may be copied from it."""

    ids: list[int]  # the extended id of each token, without END; `Sources.of` puts END behind, which is copied as END
    extra: list[str]  # the surfaces that V, V + 1, … stand for; `Tokenizer.decode` and its like want them


def copyable(surfaces: Sequence[str], lookup: Lookup, vocabulary: int) -> Copyable:
    """What may be copied from a source with these `surfaces`, one a token, for a target vocabulary of `vocabulary` (V) entries.

    A token that stands for no text, such as an inflection tag, has the empty surface and is UNKNOWN: a copy of it would write
    what nobody typed, and the weight that attention gives it must go somewhere. Training, whose targets hold no tags, learns to
    gate such looks away.
    """
    ids: list[int] = []
    numbers: dict[str, int] = {}
    for surface in surfaces:
        held = lookup(surface)
        if held == UNKNOWN and surface:
            held = numbers.setdefault(surface, vocabulary + len(numbers))
        ids.append(held)
    return Copyable(ids, list(numbers))


def extended(surfaces: Sequence[str], lookup: Lookup, vocabulary: int, extra: Sequence[str]) -> list[int]:
    """The ids of a target with these `surfaces`, without END: the vocabulary's own where it has one, else that of its source's
    word, else UNKNOWN. `extra` is that of the source as the model reads it, after any cut."""
    numbers = {surface: vocabulary + place for place, surface in enumerate(extra)}
    return [numbers.get(surface, UNKNOWN) if (held := lookup(surface)) == UNKNOWN else held for surface in surfaces]
