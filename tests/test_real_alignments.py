"""The scorer of alignments on real gold files, against counts made here with plain loops, where EYELINE_DATA names a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eyeline.metrics import LinkCounts, alignment_scores, parse_links
from eyeline.text.pairs import read_pairs

DATA = Path(os.environ.get("EYELINE_DATA", "")) / "xl-wa"
COLUMNS = ["source", "target", "alignment"]

pytestmark = pytest.mark.skipif(not (DATA / "es_test.tsv").is_file(), reason="EYELINE_DATA names no folder of data sets")

Row = list[str]  # source, target, links
Heuristic = Callable[[list[Row], str], list[set[tuple[int, int]]]]


def rows_of(name: str) -> list[Row]:
    return [line.split("\t") for line in (DATA / name).read_bytes().decode("utf-8").split("\n") if line]


def straight(rows: list[Row], language: str) -> list[set[tuple[int, int]]]:
    """Each target word to the source word as far along."""
    made = []
    for source, target, _ in rows:
        wide, high = len(source.split(" ")), len(target.split(" "))
        made.append({(j * wide // high, j) for j in range(high)})
    return made


def same(rows: list[Row], language: str) -> list[set[tuple[int, int]]]:
    """Words that are spelt alike: names, numbers and stops."""
    made = []
    for source, target, _ in rows:
        words = target.split(" ")
        made.append({(i, j) for i, word in enumerate(source.split(" ")) for j, other in enumerate(words) if word == other})
    return made


def silver(rows: list[Row], language: str) -> list[set[tuple[int, int]]]:
    """What two statistical aligners agree on, of other sentences: as good as chance, and shaped like real links."""
    other = rows_of(f"{language}_train.tsv")
    return [{(int(i), int(j)) for i, j in (link.split("-") for link in row[2].split())} for row in other[: len(rows)]]


def nothing(rows: list[Row], language: str) -> list[set[tuple[int, int]]]:
    return [set() for _ in rows]


@pytest.mark.parametrize("heuristic", [straight, same, silver, nothing])
@pytest.mark.parametrize("every", [0, 2, 3])  # which links are made possible only: none, every second, every third
@pytest.mark.parametrize("language", ["es", "hu", "nl"])
def test_the_scorer_agrees_with_an_independent_count(language: str, every: int, heuristic: Heuristic) -> None:
    rows = rows_of(f"{language}_test.tsv")
    assert len(rows) == 245
    made = heuristic(rows, language)
    gold = []
    for _, _, text in rows:
        links = text.split()
        gold.append([link.replace("-", "p") if every and place % every == 0 else link for place, link in enumerate(links)])

    a = s = a_and_s = a_and_p = 0
    for links, wanted in zip(made, gold, strict=True):
        sure, possible = set(), set()
        for link in set(wanted):
            i, mark, j = link.partition("p") if "p" in link else link.partition("-")
            possible.add((int(i), int(j)))
            if mark == "-":
                sure.add((int(i), int(j)))
        s += len(sure)
        for found in links:
            a += 1
            a_and_s += 1 if found in sure else 0
            a_and_p += 1 if found in possible else 0

    read = [parse_links(" ".join(wanted)) for wanted in gold]
    scores = alignment_scores(made, [line.sure for line in read], [line.possible for line in read])
    assert (scores.links, scores.sure) == (a, s)
    assert scores.precision == pytest.approx(100 * a_and_p / a if a else 0.0)
    assert scores.recall == pytest.approx(100 * a_and_s / s)
    assert scores.aer == pytest.approx(100 * (1 - (a_and_s + a_and_p) / (a + s)))
    if not every:
        assert scores.aer == pytest.approx(100 - scores.f1)
    halves = (range(0, len(rows), 2), range(1, len(rows), 2))
    summed = [sum((LinkCounts.of(made[row], *read[row]) for row in half), LinkCounts()) for half in halves]
    assert (summed[0] + summed[1]).scores() == scores


@pytest.mark.parametrize("language", ["es", "hu", "nl"])
def test_gold_files_are_read_as_they_are_written(language: str) -> None:
    rows = rows_of(f"{language}_test.tsv")
    pairs = list(read_pairs([str(DATA / f"{language}_test.tsv")], COLUMNS))
    assert [[pair.source, pair.target, pair.alignment] for pair in pairs] == rows
    perfect = [parse_links(pair.alignment or "") for pair in pairs]
    scores = alignment_scores([line.sure for line in perfect], [line.sure for line in perfect])
    assert (scores.precision, scores.recall, scores.f1, scores.aer) == (100, 100, 100, 0)
