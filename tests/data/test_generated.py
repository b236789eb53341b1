"""Reversal, the files that generated sets are written to, and the frozen samples of the package."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.data.generated import GeneratedPair, Links, draws, sample, samples_folder, write_tsv
from eyeline.data.generated.reversal import reversal
from eyeline.errors import ConfigError, UserError


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")[:-1]]


@given(st.integers(0, 200), st.integers(0, 5))
def test_draws_are_a_permutation(size: int, seed: int) -> None:
    assert sorted(draws(size, random.Random(seed))) == list(range(size))


def test_draws_are_even() -> None:
    chance = random.Random(1)
    firsts = Counter(tuple(draws(3, chance)) for _ in range(6_000))
    assert len(firsts) == 6
    assert all(880 < count < 1_120 for count in firsts.values())


def test_a_link_that_is_sure_stays_sure_and_links_are_sorted() -> None:
    links = Links()
    links.possible(10, 0)
    links.sure(2, 1)
    links.possible(2, 1)
    links.possible(2, 0)
    links.possible(2, 0)
    links.sure(2, 0)
    assert str(links) == "2-0 2-1 10p0"


def test_reversal() -> None:
    pairs = list(reversal(600, 1, 30))
    assert list(reversal(900, 1, 30))[:600] == pairs
    assert list(reversal(600, 2, 30)) != pairs
    assert {len(pair.source.split(" ")) for pair in pairs} == set(range(1, 31))
    assert {word for pair in pairs for word in pair.source.split(" ")} == {str(n) for n in range(50)}
    for pair in pairs:
        source, target = pair.source.split(" "), pair.target.split(" ")
        assert target == source[::-1]
        joined = [tuple(map(int, link.split("-"))) for link in pair.alignment.split(" ")]
        assert [i for i, _ in joined] == list(range(len(source)))
        assert all(i + j == len(source) - 1 for i, j in joined)


def test_reversal_says_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="min_length=5, max_length=4"):
        reversal(1, 1, 4, min_length=5)
    with pytest.raises(ConfigError, match="symbols=0"):
        reversal(1, 1, symbols=0)


def test_a_file_has_three_columns_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    pairs = [GeneratedPair('"a', "ب\u200f", "0-0 1p1"), GeneratedPair("é\u2028", "x", "0p0")]
    assert write_tsv(iter(pairs), tmp_path / "one.tsv") == 2
    assert (tmp_path / "one.tsv").read_bytes() == '"a\tب\u200f\t0-0 1p1\né\u2028\tx\t0p0\n'.encode()
    write_tsv(pairs, tmp_path / "one.tsv.gz")
    write_tsv(pairs, tmp_path / "two.tsv.gz")
    assert (tmp_path / "one.tsv.gz").read_bytes() == (tmp_path / "two.tsv.gz").read_bytes()
    assert (tmp_path / "one.tsv.gz").read_bytes()[4:8] == bytes(4)  # no time of writing
    assert gzip.decompress((tmp_path / "one.tsv.gz").read_bytes()) == (tmp_path / "one.tsv").read_bytes()


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pairs.tsv"
    write_tsv(reversal(3, 1), path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)  # what comes before the renaming
    with pytest.raises(UserError, match=r"No space left on device .*pairs\.tsv"):
        write_tsv(reversal(9, 1), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").mkdir()
    with pytest.raises(UserError, match=r"a directory is in the place of the file .*pairs\.tsv"):
        write_tsv(reversal(1, 1), tmp_path / "pairs.tsv")


def test_samples_are_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'dates'"):
        sample("date")
    with pytest.raises(ConfigError, match="did you mean 'train'"):
        sample("dates", "trian")


@pytest.mark.parametrize(
    ("name", "sizes", "tokens"),
    [("dates", (10_000, 1_000, 1_000), "0123456789-"), ("numerals", (10_000, 500, 500), "0123456789")],
)
def test_the_samples_are_whole_and_their_parts_disjoint(name: str, sizes: tuple[int, ...], tokens: str) -> None:
    parts = [rows(sample(name, part)) for part in ("train", "valid", "test")]
    assert tuple(map(len, parts)) == sizes
    everything = [row for part in parts for row in part]
    assert len({source for source, _, _ in everything}) == len(everything)
    for source, target, alignment in everything:
        assert set(target) <= set(tokens)
        assert alignment
        for link in alignment.split(" "):
            i, j = map(int, link.replace("p", "-").split("-"))
            assert 0 <= i < len(source)
            assert 0 <= j < len(target)
    train, valid, test = ({target for _, target, _ in part} for part in parts)
    assert not train & valid
    assert not train & test
    assert not valid & test
    if name == "dates":
        assert all(date(1900, 1, 1) <= date.fromisoformat(target) <= date(2099, 12, 31) for _, target, _ in everything)


def test_the_sample_of_sorting_is_sorted_and_its_parts_disjoint() -> None:
    parts = {
        part: list(map(json.loads, gzip.decompress(sample("sorting", part).read_bytes()).splitlines()))
        for part in ("train", "valid", "test")
    }
    assert {part: len(pairs) for part, pairs in parts.items()} == {"train": 6_000, "valid": 500, "test": 500}
    everything = [pair for pairs in parts.values() for pair in pairs]
    assert len({str(pair["source"]) for pair in everything}) == len(everything)
    for pair in everything:
        assert [pair["source"][place] for place in pair["target"]] == sorted(pair["source"])


def test_the_samples_are_small() -> None:
    assert sum(path.stat().st_size for path in samples_folder().iterdir()) < 1_500_000


def test_every_character_of_the_held_out_parts_was_seen_in_training() -> None:
    for name in ("dates", "numerals"):
        seen = {character for source, _, _ in rows(sample(name, "train")) for character in source}
        for part in ("valid", "test"):
            assert {character for source, _, _ in rows(sample(name, part)) for character in source} <= seen


def test_the_command_makes_the_samples_that_are_shipped(tmp_path: Path) -> None:
    pytest.importorskip("babel")
    pytest.importorskip("unicode_rbnf")
    from eyeline.data.generated import freeze

    record = json.loads((samples_folder() / freeze.RECORD).read_text(encoding="utf-8"))
    assert set(record["versions"]) == set(freeze.LIBRARIES)
    if record["versions"] != freeze.installed():
        pytest.skip(f"the samples were made with {record['versions']}, installed are {freeze.installed()}")
    freeze.freeze(tmp_path)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(path.name for path in samples_folder().iterdir())
    for file in made:
        ours, shipped = (folder / file for folder in (tmp_path, samples_folder()))
        if file.endswith(".gz"):  # what is inside; compressors differ
            assert gzip.decompress(ours.read_bytes()) == gzip.decompress(shipped.read_bytes())
        else:
            assert ours.read_bytes() == shipped.read_bytes()


def test_the_extra_libraries_are_imported_only_where_used() -> None:
    program = (
        "import sys, eyeline.data.generated.freeze, eyeline.data.generated.reversal as r; r.reversal(3, 1);"
        "assert not {'babel', 'unicode_rbnf', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
