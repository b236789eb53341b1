"""Which head aligns best: against plain loops over single pairs, whatever the batches; blank pairs, gold links, what is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import eyeline
from eyeline.contracts import BEGIN, Source
from eyeline.errors import ConfigError, DataError, RunError
from eyeline.evaluation import Head, align_by, align_pairs, chosen_head, gold_links, heads, keep_head, rank_heads, selects, table
from eyeline.evaluation.heads import CELLS, check_keeping
from eyeline.ladder import Seq2Seq
from eyeline.metrics import GoldLinks, alignment_scores
from eyeline.predictor import Asked, Predictor
from eyeline.runs import Run
from eyeline.text.records import Pair
from eyeline.text.tokenizers import Tokenizer
from toy_runs import SENTENCES, ToyRuns, linked_copies

MODELS: dict[str, dict[str, Any]] = {
    "transformer": {"feedforward_size": 16},
    "pointer-generator-transformer": {"feedforward_size": 16},
    "state-space": {"state_size": 2},
}
EVERY = [Head(layer, number) for layer in (0, 1) for number in (0, 1, None)]
LINKED = [
    ("the cat sleeps", "le chat dort", "0-0 1-1 2p2"),
    ("", "le chat", ""),
    ("the small cat eats", "le petit chat mange", "0-0 1p1 2p1 3-3 0p3"),
    (" ", "", ""),
    ("a dog eats the apple", "un chien mange la pomme", "4-4 3-3 0-0"),
    ("apple", "", ""),
    ("a small apple", "une petite pomme", "0-1 1-0 2p2"),
]


def pairs_of(rows: Sequence[tuple[str, str, str | None]]) -> list[Pair]:
    return [Pair(source, target, (), links, "held.tsv", line) for line, (source, target, links) in enumerate(rows, 1)]


PAIRS = pairs_of(LINKED)


def fresh(architecture: str, kind: str = "bpe", **settings: Any) -> Predictor:
    """A run that has learnt nothing: its heads look everywhere."""
    torch.manual_seed(5)
    model = {"size": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 2, **MODELS[architecture], **settings}
    sides = [Tokenizer.train(kind, [pair[side] for pair in SENTENCES], 40) for side in (0, 1)]  # type: ignore[arg-type]
    config = eyeline.Config.from_dict({"model": {"architecture": architecture, **model}, "tokenizer": {"kind": kind, "size": 40}})
    run = Run(Path("nowhere"), config, *sides)
    built = run.build().eval()
    for parameter in built.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return Predictor(run, built)


def plain_links(predictor: Predictor, pair: Pair, head: Head, words: bool) -> set[tuple[int, int]]:
    """The rules in loops, one pair at a time."""
    read = predictor.read(pair.source)
    target = predictor.coder.encode_target(pair.target, read)
    if not read.encoded.ids or not target.ids:
        return set()
    ids, copies = [*read.encoded.ids, 3], None if read.copies is None else torch.tensor([[*read.copies, 3]])
    source = Source(torch.tensor([ids]), torch.tensor([len(ids)]), copies, len(read.extra))
    with torch.no_grad():
        maps = predictor.model.decoder.maps(torch.tensor([[BEGIN, *target.ids]]), predictor.model.encode(source))
    of_layer = maps[f"source.{head.layer}"][0]  # [H, T, S]
    weights = of_layer.mean(0) if head.number is None else of_layer[head.number]
    rows = weights[:-1, :-1].tolist()
    sides = [list(encoded.words) if words else list(range(len(encoded.ids))) for encoded in (target, read.encoded)]
    links = set()
    for place in {number for number in sides[0] if number is not None}:
        mass: dict[int, float] = {}
        for row, number in zip(rows, sides[0], strict=True):
            for weight, column in zip(row, sides[1], strict=True):
                if number == place and column is not None:
                    mass[column] = mass.get(column, 0.0) + weight
        links.add((max(sorted(mass), key=mass.__getitem__), place))
    return links


def check_the_links(architecture: str = "transformer", kind: str = "bpe") -> None:
    predictor = fresh(architecture, kind)
    seen = set()
    for words in (True, False):
        for head in EVERY:
            found = align_by(predictor, PAIRS, head, words=words)
            assert found == [plain_links(predictor, pair, head, words) for pair in PAIRS]
            seen.add(tuple(found))
    assert len(seen) > len(EVERY)  # heads do not look alike, so that one can hardly stand for another


@pytest.mark.parametrize("architecture", MODELS)
@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_each_heads_links_are_those_of_plain_loops(architecture: str, kind: str) -> None:
    check_the_links(architecture, kind)


@pytest.mark.parametrize("architecture", ["transformer", "state-space"])
def test_a_head_aligns_as_a_run_that_shows_it_does(architecture: str) -> None:
    for head in EVERY:
        shows = fresh(architecture, alignment_layer=head.layer, alignment_head=head.number)
        assert align_pairs(shows, PAIRS, words=True) == align_by(fresh(architecture), PAIRS, head, words=True)


def check_the_ranking() -> None:
    for architecture in MODELS:
        predictor = fresh(architecture)
        ranked = rank_heads(predictor, PAIRS, words=True)
        gold = gold_links(predictor, PAIRS, words=True)
        assert gold is not None
        for one in ranked:
            links = align_by(predictor, PAIRS, one.head, words=True)
            assert one.scores == alignment_scores(links, [line.sure for line in gold], [line.possible for line in gold])
        assert {one.head for one in ranked} == {*EVERY, *([None] if "pointer" in architecture else [])}
        keys = [(one.scores.aer, -one.scores.f1) for one in ranked]
        assert keys == sorted(keys)
        assert [one.head for one in ranked if one.shown] == [None if "pointer" in architecture else Head(1, None)]


def test_every_head_is_ranked_by_sure_and_possible_links() -> None:
    check_the_ranking()


@pytest.mark.parametrize("cells", [1, 2000, CELLS])
def test_batches_change_nothing_and_bound_what_stands_in_memory(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor, sizes = fresh("transformer"), []
    whole = rank_heads(predictor, PAIRS, words=True)
    real = type(predictor.model.decoder).maps

    def watched(self: Any, tokens: torch.Tensor, memory: Any) -> dict[str, torch.Tensor]:
        maps = real(self, tokens, memory)
        sizes.append((len(tokens), 3 * sum(maps[f"source.{layer}"].numel() for layer in range(2)) / 2))
        return maps

    monkeypatch.setattr(heads, "CELLS", cells)
    monkeypatch.setattr(type(predictor.model.decoder), "maps", watched)
    assert rank_heads(predictor, PAIRS, words=True) == whole
    assert all(rows == 1 or size <= cells for rows, size in sizes)
    assert sum(rows for rows, _ in sizes) == len(PAIRS) - 1  # the pair that is blank on both sides is not asked for


def test_a_guided_head_is_found(toys: ToyRuns) -> None:
    predictor, pairs = toys.predictor("guided"), pairs_of(linked_copies(40, 7))
    ranked = rank_heads(predictor, pairs, words=True)
    assert ranked[0].head == Head(0, 1)
    assert ranked[0].shown
    assert ranked[0].scores.aer < 5 < ranked[-1].scores.aer
    lines = list(table(ranked))
    assert len(lines) == 7
    assert lines[1].split()[:2] == ["0", "1"]
    assert lines[1].endswith("shown")


# ---- what is named -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "number", "head"),
    [(None, None, None), (0, 1, Head(0, 1)), (-1, None, Head(1, None)), (-2, 0, Head(0, 0)), (None, 0, Head(1, 0))],
)
def test_layers_and_heads_are_named_as_in_the_settings(layer: int | None, number: int | None, head: Head | None) -> None:
    for architecture in MODELS:
        assert chosen_head(fresh(architecture), layer, number) == head


def test_a_head_alone_is_of_the_layer_that_is_shown() -> None:
    assert chosen_head(fresh("transformer", alignment_layer=0), None, 1) == Head(0, 1)
    assert chosen_head(fresh("pointer-generator-transformer", copy_head=0), None, 1) == Head(1, 1)


@pytest.mark.parametrize(
    ("layer", "number", "words"),
    [(2, None, r"2 layers.*--layer 2"), (-3, 0, r"--layer -3"), (0, 2, r"2 heads.*--head 2"), (None, -1, r"--head -1")],
)
def test_what_is_no_head_is_refused_by_its_option(layer: int | None, number: int | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        chosen_head(fresh("transformer"), layer, number)


@pytest.mark.parametrize(("name", "has"), [("luong", "one"), ("letters", "one"), ("seq2seq", "no")])
def test_a_rung_without_a_choice_says_so(toys: ToyRuns, name: str, has: str) -> None:
    predictor = toys.predictor(name)
    architecture = predictor.config.model.architecture
    said = rf"this architecture has {has} attention, and no heads to choose from \(model\.architecture={architecture}\)"
    tries: list[Callable[[], Any]] = [
        lambda: rank_heads(predictor, PAIRS, words=True),
        lambda: chosen_head(predictor, None, 0),
        lambda: check_keeping(predictor),
    ]
    for attempt in tries:
        with pytest.raises(ConfigError, match=said):
            attempt()


# ---- gold links ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "words", "said"),
    [
        ([("a b", "b a", "0-0"), ("a", "b", None)], True, r"no gold links .*held\.tsv:2\); name their column"),
        ([("a b", "b a", "0-0"), ("ab", "b", "1-0")], True, r"not words \(held\.tsv\); add --tokens"),
        ([("a b", "b a", ""), ("a", "b", " ")], False, r"not one gold link"),
        ([("a b", "b a", "0:0")], False, r"'0:0' is not an alignment link \(held\.tsv:1\)"),
    ],
)
def test_gold_links_that_cannot_be_measured_by(rows: Any, words: bool, said: str) -> None:
    with pytest.raises(DataError, match=said):
        rank_heads(fresh("transformer"), pairs_of(rows), words=words)


def test_links_of_characters_are_put_between_the_tokens_that_hold_them() -> None:
    """Hangul in letters: 한 is three tokens, 국 three, and 어 two."""
    plain = fresh("transformer")
    data = {"links": "characters", "normalization": {"source": "jamo", "target": "nfc"}}
    config = eyeline.Config.from_dict({**plain.config.to_dict(), "data": data, "tokenizer": {"kind": "character"}})
    letters = "".join(map(chr, range(0x1100, 0x11FF)))
    sides = [Tokenizer.train("character", [text], 300) for text in (letters, "abc")]
    predictor = Predictor(Run(Path("nowhere"), config, *sides), plain.model)
    (pair,) = pairs_of([("한국어", "abc", "0-0 1p1 2-2")])
    (gold,) = gold_links(predictor, [pair], words=False) or [None]
    sure = {(0, 0), (1, 0), (2, 0), (6, 2), (7, 2)}
    assert gold == GoldLinks(frozenset(sure), frozenset(sure | {(3, 1), (4, 1), (5, 1)}))
    assert gold_links(predictor, [pair], words=True) is None
    assert gold_links(plain, [pair], words=False) == [GoldLinks(frozenset({(0, 0), (2, 2)}), frozenset({(0, 0), (1, 1), (2, 2)}))]


def test_attention_that_is_no_number_is_named() -> None:
    predictor = fresh("transformer")
    predictor.model.decoder.layers[1].cross.query.weight.data[0] = torch.nan
    with pytest.raises(RunError, match="attention is not numbers"):
        rank_heads(predictor, PAIRS, words=True)


# ---- what is kept --------------------------------------------------------------------------------------------------------


def test_what_is_kept_is_what_a_run_shows_and_nothing_else_changes(toys: ToyRuns, tmp_path: Path) -> None:
    shutil.copytree(toys.path("guided"), tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    pairs = pairs_of(linked_copies(20, 8))
    for head in (Head(1, None), Head(0, 1), Head(1, 0)):
        predictor = eyeline.load(tmp_path / "run")
        keep_head(predictor, head)
        after = eyeline.load(tmp_path / "run")
        assert align_pairs(after, pairs, words=True) == align_by(predictor, pairs, head, words=True)
        assert [one.head for one in rank_heads(after, pairs, words=True) if one.shown] == [head]
        changed = {path for path in (tmp_path / "run").rglob("*") if path.is_file() and before.get(path) != path.read_bytes()}
        assert changed <= {tmp_path / "run" / "config.yaml"}
        old, new = toys.predictor("guided").config.to_dict(), after.config.to_dict()
        assert {**old, "model": None} == {**new, "model": None}
        for left, right in zip(after.predict(["a b c"]), predictor.predict(["a b c"]), strict=True):
            assert (left.text, left.score) == (right.text, right.score)


def test_where_copying_is_shown_nothing_can_be_kept() -> None:
    predictor = fresh("pointer-generator-transformer", copy_head=1)
    with pytest.raises(ConfigError, match="shows where it copies from"):
        keep_head(predictor, Head(0, 0))
    assert selects(predictor, Head(0, 1)) == "--layer 0 --head 1"
    assert selects(fresh("transformer"), Head(0, None)) == (
        "--layer 0, or model.alignment_layer=0 and model.alignment_head=null in the run's config.yaml, which --keep writes"
    )
    assert [one.head for one in rank_heads(predictor, PAIRS, words=True) if one.shown] == [Head(1, 1)]


# ---- planted faults ------------------------------------------------------------------------------------------------------


def places_forgotten(self: Predictor, pairs: Any, real: Any = Predictor.asked) -> Asked:
    asked = real(self, pairs)
    return Asked(asked.given, list(range(len(asked.places))), asked.reads, asked.corpus)


def altered(change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Any:
    def looks(predictor: Predictor, corpus: Any, real: Any = heads._looks) -> Any:
        return ((row, change(every)) for row, every in real(predictor, corpus))

    return looks


def sources_mixed(self: Seq2Seq, source: Source, real: Any = Seq2Seq.encode) -> Any:
    return real(self, source.select(torch.arange(len(source.ids)).flip(0)))


@pytest.mark.parametrize(
    ("where", "name", "fault", "check"),
    [
        (Predictor, "asked", places_forgotten, check_the_links),
        (heads, "_looks", altered(lambda every: every[::-1]), check_the_links),  # layers from the last
        (heads, "_looks", altered(lambda every: every[:, [1, 0, 2]]), check_the_links),  # heads mixed up
        (heads, "_looks", altered(lambda every: every[:, [0, 1, 0]]), check_the_links),  # one head for the mean
        (heads, "_looks", altered(lambda every: np.roll(every, 1, -2)), check_the_links),  # the row before
        (heads, "shown_head", lambda config: Head(0, None), check_the_ranking),
        (Seq2Seq, "encode", sources_mixed, check_the_links),
    ],
)
def test_a_fault_is_caught(where: Any, name: str, fault: Any, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, name, fault)
    with pytest.raises(AssertionError):
        check()
