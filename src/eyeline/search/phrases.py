"""Phrases of ids, found while an output grows. Knows ids; no model, no search rule.

An output holds a phrase when its tokens stand in it in a row, wherever: phrases may overlap, and one may be a part of another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, PAD
from eyeline.errors import ConfigError

Phrase = tuple[int, ...]


class Automaton:
    """Where an output stands in every phrase at once: Aho and Corasick 1975, as a trie with the longest suffix of each node.

    A node is the longest end of what was said that some phrase begins with; 0 is the empty one. Sets of phrases are bit masks.
    """

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        """Raises ConfigError for an empty phrase, or one with ids that no output has."""
        self.phrases = tuple(phrases)
        self.depth = [0]  # tokens that a node stands for
        self.through = [0]  # phrases that begin with these
        self.ending = [0]  # phrases that end in these
        self._children: list[dict[int, int]] = [{}]
        self._suffix = [0]
        for number, phrase in enumerate(self.phrases):
            if not phrase or {PAD, BEGIN, END} & set(phrase):
                raise ConfigError("a phrase has tokens, and only such as outputs have", f"phrase={list(phrase)}")
            self._add(1 << number, phrase)
        self._find_suffixes()

    def _add(self, bit: int, phrase: Phrase) -> None:
        node = 0
        self.through[0] |= bit
        for token in phrase:
            child = self._children[node].get(token)
            if child is None:
                child = self._children[node][token] = len(self.depth)
                self.depth.append(self.depth[node] + 1)
                self.through.append(0)
                self.ending.append(0)
                self._children.append({})
                self._suffix.append(0)
            node = child
            self.through[node] |= bit
        self.ending[node] |= bit

    def _find_suffixes(self) -> None:
        waiting = deque(self._children[0].values())
        while waiting:
            node = waiting.popleft()
            for token, child in self._children[node].items():
                self._suffix[child] = self.after(self._suffix[node], token)
                self.ending[child] |= self.ending[self._suffix[child]]
                waiting.append(child)

    def after(self, node: int, token: int) -> int:
        """The node once `token` is said."""
        while (child := self._children[node].get(token)) is None:
            if node == 0:
                return 0
            node = self._suffix[node]
        return child

    def ends_of(self, node: int) -> list[int]:
        """The node and its suffixes, longest first, the empty one last."""
        found = [node]
        while node:
            node = self._suffix[node]
            found.append(node)
        return found

    def continuations(self, node: int, phrases: int) -> set[int]:
        """The tokens that begin or go on with one of `phrases`."""
        return {
            token for end in self.ends_of(node) for token, child in self._children[end].items() if self.through[child] & phrases
        }

    def completing(self, node: int) -> set[int]:
        """The tokens that complete a phrase."""
        return {token for end in self.ends_of(node) for token, child in self._children[end].items() if self.ending[child]}


@cache
def automaton(phrases: tuple[Phrase, ...]) -> Automaton:
    """One for equal phrases: a terminology is the same for many lines."""
    return Automaton(phrases)


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """[R, longest] long, PAD behind each row's end."""
    width = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], dtype=torch.long).view(len(rows), width)


@dataclass(frozen=True)
class Avoided:
    """No output has one of its source's forbidden phrases: the token that would complete one is banned."""

    automata: tuple[Automaton, ...]  # one a source
    nodes: tuple[tuple[int, ...], ...]  # [n][W]

    @classmethod
    def of(cls, phrases: Sequence[Sequence[Sequence[int]]]) -> Avoided:
        """Of the phrases of each source, before the first token. Raises ConfigError for phrases that are none."""
        automata = tuple(automaton(tuple(sorted({tuple(phrase) for phrase in several}))) for several in phrases)
        return cls(automata, ((0,),) * len(automata))

    def bans(self, position: int) -> Tensor | None:
        known = dict[tuple[int, int], list[int]]()
        rows = []
        for one, nodes in zip(self.automata, self.nodes, strict=True):
            for node in nodes:
                key = (id(one), node)
                if key not in known:
                    known[key] = sorted(one.completing(node))
                rows.append(known[key])
        return padded(rows)

    def select(self, keep: Tensor, parents: Tensor, tokens: Tensor) -> Avoided:
        automata = tuple(self.automata[row] for row in keep.tolist())
        nodes = tuple(
            tuple(one.after(self.nodes[row][parent], token) for parent, token in zip(before, said, strict=True))
            for one, row, before, said in zip(automata, keep.tolist(), parents.tolist(), tokens.tolist(), strict=True)
        )
        return Avoided(automata, nodes)
