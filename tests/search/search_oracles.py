"""Slow, plain answers to what the searches must find: every sequence there is, and a beam search in Python lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from search_fakes import Table

from eyeline.contracts import END

Answer = tuple[tuple[int, ...], float, bool]  # ids, score, finished
Extra = Callable[[tuple[int, ...]], float]  # ids of a finished answer -> what its normalised score has besides


def nothing(ids: tuple[int, ...]) -> float:
    return 0.0


def worth(answer: Answer, penalty: float, extra: Extra = nothing) -> float:
    ids, score, finished = answer
    return score / float(max(1, len(ids)) ** penalty) + (extra(ids) if finished else 0.0)


def ranked(answers: Sequence[Answer], penalty: float, extra: Extra = nothing) -> list[Answer]:
    """Finished ones first, then by normalised score."""
    return sorted(answers, key=lambda answer: (not answer[2], -worth(answer, penalty, extra)))


def all_answers(table: Table, words: Sequence[int], minimum: int, maximum: int) -> list[Answer]:
    """Every finished output of at most `maximum` tokens; and the longest possible prefixes that END cannot close."""
    finished: list[Answer] = []
    stuck: list[Answer] = []
    layer: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for length in range(maximum + 1):
        stuck, grown = [], []
        for prefix, score in layer:
            row = table(prefix)
            if row.get(END, 0) > 0 and length >= minimum:
                finished.append(((*prefix, END), score + math.log(row[END]), True))
            else:
                stuck.append((prefix, score, False))
            grown += [((*prefix, word), score + math.log(row[word])) for word in words if row.get(word, 0) > 0]
        if not grown:
            break
        layer = grown
    return finished + stuck


def plain_beam(
    table: Table,
    words: Sequence[int],
    beam: int,
    n_best: int,
    penalty: float,
    minimum: int,
    maximum: int,
    extra: Extra = nothing,
    patience: float | None = None,
) -> list[Answer]:
    """The documented rules, one source, in lists. Without patience it never stops early: it shows that this changes nothing."""
    ended = 0
    finished: list[Answer] = []
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for length in range(maximum + 1):
        candidates = []
        for prefix, score in live:
            row = table(prefix)
            for token in [END, *words]:
                if row.get(token, 0) > 0 and (token != END or length >= minimum):
                    candidates.append(((*prefix, token), score + math.log(row[token])))
        candidates.sort(key=lambda candidate: -candidate[1])
        closed = [c for c in candidates[:beam] if c[0][-1] == END]
        finished = ranked([*finished, *((ids, score, True) for ids, score in closed)], penalty, extra)[:beam]
        ended += len(closed)
        grown = [c for c in candidates[: 2 * beam] if c[0][-1] != END][:beam]
        impatient = patience is not None and len(finished) >= n_best and ended >= patience * beam
        if impatient:  # what would be the best of all, if it ended now at no cost, is waited for
            first = worth(ranked(finished, penalty, extra)[0], penalty, extra)
            impatient = all(worth(((*ids, END), score, True), penalty) <= first for ids, score in grown)
        if length == maximum or not grown or impatient:
            done = {ids[:-1] for ids, _ in closed}
            return ranked([*finished, *((ids, score, False) for ids, score in live if ids not in done)], penalty, extra)[:n_best]
        live = grown
    raise AssertionError("the loop returns")
