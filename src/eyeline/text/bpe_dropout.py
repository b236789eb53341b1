"""BPE-dropout (Provilkov et al. 2020): a text cut into other pieces each time, its ids made from its ids. Knows one tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from eyeline.contracts import RESERVED
from eyeline.text.tokenizers import Tokenizer


class BpeDropout:
    """Cuts anew what a `bpe` tokenizer of ours has cut into pieces: algorithm 1 of the paper. At each step every merge that is
    possible is left out with probability `rate`, and of the rest the one learnt first is made, the leftmost of these.

    Works on ids, so that no text need be at hand. Reserved ids and features stay what they are, and nothing is merged across
    them; no merge spans words, since none was learnt that does.
    """

    def __init__(self, tokenizer: Tokenizer, rate: float) -> None:
        assert tokenizer.kind == "bpe"
        self.rate = rate
        lookup = tokenizer.lookup
        merges = json.loads(tokenizer.content)["model"]["merges"]
        self._merges = {(lookup(left), lookup(right)): (rank, lookup(left + right)) for rank, (left, right) in enumerate(merges)}
        self._letters: dict[int, list[int]] = {}
        self._begins: set[int] = set()
        for number in range(len(RESERVED), tokenizer.size):
            piece = tokenizer.piece(number)
            letters = [lookup(letter) for letter in piece]
            if letters and all(letter >= len(RESERVED) for letter in letters):
                self._letters[number] = letters
                if piece.startswith(" "):
                    self._begins.add(number)

    def __call__(self, ids: Sequence[int], random: Random) -> list[int]:
        """Ids, without END, to ids that decode to the same text."""
        cut: list[int] = []
        word: list[int] = []
        for number in ids:
            letters = self._letters.get(number)
            if letters is None or number in self._begins:
                cut += self._merged(word, random)
                word = []
            if letters is None:
                cut.append(number)
            else:
                word += letters
        return cut + self._merged(word, random)

    def _merged(self, word: list[int], random: Random) -> list[int]:
        """Letters put together; a place of the word is looked at again only where something changed or chance must be asked."""
        merges, rate = self._merges, self.rate
        while len(word) > 1:
            best, place = None, 0
            for at in range(len(word) - 1):
                merge = merges.get((word[at], word[at + 1]))
                if merge is not None and (not rate or random.random() >= rate) and (best is None or merge < best):
                    best, place = merge, at
            if best is None:
                break
            word[place : place + 2] = [best[1]]
        return word
