"""`predict --format pharaoh`: the links of what is predicted are those that `align` finds between the same two texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_process import Command

from toy_runs import ToyRuns, write_pairs

GIVEN = {
    "luong": ["a b c", "", "f e d c b a f", " ", "d"],
    "guided": ["a b c", "f f", ""],
    "names": ["Babo , Dodi and Fafu", "my name is Zuzu", "Kaki lives in Lolo"],
    "features": ["walk\tV;PST", "talk\tV;PRS;3"],
    "odd": ["é ß", "ab a", "한국어"],
    "points": ["[[0.9, 0.2], [0.1, 0.4]]", "[[0.3, 0.1], [0.1, 0.9], [0.2, 0.5]]"],
    "letters": ["c a b"],
}


@pytest.mark.parametrize("run", GIVEN)
@pytest.mark.parametrize("tokens", [False, True])
def test_links_are_those_that_align_finds(eyeline: Command, toys: ToyRuns, tmp_path: Path, run: str, tokens: bool) -> None:
    stdin = "".join(f"{line}\n" for line in GIVEN[run]).encode()
    form = "pharaoh-tokens" if tokens else "pharaoh"
    links = eyeline("predict", toys.path(run), "--format", form, stdin=stdin).lines
    outputs = eyeline("predict", toys.path(run), stdin=stdin).lines
    assert len(links) == len(outputs) == len(GIVEN[run])
    pairs, columns = tmp_path / "pairs.tsv", ["--columns", "source,features,target" if run == "features" else "source,target"]
    if run == "points":
        pairs = tmp_path / "pairs.jsonl"
        given = ((json.loads(s), [*map(int, t.split())]) for s, t in zip(GIVEN[run], outputs, strict=True))
        pairs.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in given))
        columns = []
    else:
        write_pairs(pairs, zip(GIVEN[run], outputs, strict=True))
    aligned = eyeline("align", toys.path(run), pairs, *columns, *(["--tokens"] if tokens else [])).lines
    assert links == aligned
    assert any(links)


def test_a_word_of_many_tokens_is_one_word(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    (tmp_path / "prefix.txt").write_text("une petite pomme\n")
    given = ["predict", toys.path("bpe"), "--prefix", tmp_path / "prefix.txt", "--max-length", "1", "--format"]
    words, tokens = (eyeline(*given, form, stdin=b"the small cat\n").lines[0] for form in ("pharaoh", "pharaoh-tokens"))
    assert [int(link.split("-")[1]) for link in sorted(words.split(), key=lambda link: link.split("-")[1])] == [0, 1, 2]
    assert len(tokens.split()) > 3


def test_what_replaces_an_unknown_word_counts_as_it(eyeline: Command, toys: ToyRuns) -> None:
    given = ["predict", toys.path("strangers"), "--format", "pharaoh"]
    plain = eyeline(*given, stdin=b"Babo lives in Dodi\n").lines
    assert eyeline(*given, "--replace-unknown", stdin=b"Babo lives in Dodi\n").lines == plain


@pytest.mark.parametrize(
    ("run", "arguments", "said"),
    [
        ("seq2seq", [], "this architecture looks at its source once"),
        ("luong", ["--n-best", "2"], "alignments are of the best output alone (--format pharaoh --n-best 2)"),
        ("luong", ["--too-long", "split"], "sources in pieces have no alignment (--format pharaoh --too-long split)"),
    ],
)
def test_where_there_are_no_links(eyeline: Command, toys: ToyRuns, run: str, arguments: list[str], said: str) -> None:
    assert said in eyeline("predict", toys.path(run), "--format", "pharaoh", *arguments, stdin=b"a b\n").error
