"""The table before training, and its hints."""

from __future__ import annotations

from collections.abc import Sequence

from eyeline.config import Normalization, TokenizerKind
from eyeline.text.normalization import normalize
from eyeline.text.pairs import ReadReport
from eyeline.text.report import DataReport, SideCount, SideReport
from eyeline.text.tally import Tally
from eyeline.text.tokenizers import Tokenizer


def side(
    kind: TokenizerKind, train: Sequence[str], valid: Sequence[str] = (), form: Normalization = "nfc", size: int = 8000
) -> SideReport:
    tokenizer = Tokenizer.train(kind, [normalize(text, form) for text in train], size)
    counts = []
    for texts in (train, valid):
        counts.append(SideCount())
        counts[-1].extend(tokenizer.encode_ids([normalize(text, form) for text in texts]))
    return SideReport("source", tokenizer, form, counts[0], counts[1] if valid else None)


def test_rows_hold_what_was_counted() -> None:
    report = DataReport([side("word", ["a b c", "a"], ["a x x x"]), side("character", ["ab"])], Tally())
    assert report.rows() == [
        ("", "source", "source"),
        ("training lines", "2", "1"),
        ("tokens a line", "2.0 (longest 3)", "2.0 (longest 2)"),
        ("vocabulary", "7 (word)", "6 (character)"),
        ("unknown in training", "0.00 %", "0.00 %"),
        ("validation lines", "1", "-"),
        ("unknown in validation", "75.00 %", "-"),
    ]


def test_what_was_left_out_is_said_with_its_lines() -> None:
    read, later = ReadReport(extra_columns=1200), Tally()
    read.skipped.add("not UTF-8", "a.tsv", 3)
    for line in range(7):
        later.add("empty source", "a.tsv", line + 10)
    report = DataReport.of([side("character", ["ab"])], [read, ReadReport()], [later])
    assert report.notes() == [
        "left out, empty source: 7 (a.tsv:10, 11, 12, 13, 14 and 2 more)",
        "left out, not UTF-8: 1 (a.tsv:3)",
        "ignored: columns beyond those named, in 1,200 lines",
    ]
    text = report.render().split("\n")
    assert text[1].split() == ["training", "lines", "1"]
    assert text[-3:] == report.notes()


def test_rare_syllables_suggest_jamo_and_jamo_is_content() -> None:
    texts = [chr(0xAC00 + 28 * number) + "가" for number in range(100)]
    (hint,) = DataReport([side("character", texts)], Tally()).hints()
    assert "99 of 100 Hangul syllables are seen fewer than 5 times; normalization: jamo" in hint
    assert DataReport([side("character", texts, form="jamo")], Tally()).hints() == []
    assert DataReport([side("character", texts * 5)], Tally()).hints() == []
    assert DataReport([side("character", ["abc"])], Tally()).hints() == []


def test_rare_words_suggest_bpe() -> None:
    texts = [f"the w{number}" for number in range(100)]
    for kind in ("word", "whitespace-symbols"):
        (hint,) = DataReport([side(kind, texts)], Tally()).hints()
        assert "100 of 101 words are seen once; tokenizer kind: bpe" in hint
        assert DataReport([side(kind, texts * 2)], Tally()).hints() == []
    (hint,) = DataReport([side("word", texts * 2, ["the x y z"])], Tally()).hints()
    assert "75.0 % of the tokens are unknown" in hint
    (hint,) = DataReport([side("word", texts * 2, size=20)], Tally()).hints()
    assert "of the tokens are unknown" in hint
    assert DataReport([side("bpe", texts)], Tally()).hints() == []


def test_an_empty_split_divides_by_nothing() -> None:
    assert (SideCount().mean, SideCount().unknown_rate) == (0.0, 0.0)
