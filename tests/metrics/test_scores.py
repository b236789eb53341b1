"""Scores of text and symbols: known values, shapes refused, empty lines, every script, and sums that give the corpus score."""

import subprocess
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.errors import ConfigError, UserError
from eyeline.metrics import METRICS, aggregate, corpus_score, statistics

NAMES = sorted(METRICS)
ERROR_RATES = ["cer", "symbol_error_rate", "ter", "wer"]
SIMILARITIES = ["bleu", "chrf", "exact_match", "rougeL"]

THREE = (["A B C D E", "F G H I J", "K L M N O"], ["A B C D E", "q r s t u", "v w x y z"])


def score(name, hypotheses, references):
    return corpus_score(name, hypotheses, references).score


# O30: the wrong shape is refused, and the order of the lines does not matter


def test_bleu_of_three_lines_is_not_the_score_of_the_first_alone():
    assert score("bleu", *THREE) == pytest.approx(100 / 3)


def test_corpus_bleu_is_not_the_mean_of_sentences():
    hypotheses = ["the cat sat on the mat", "a dog barked at night loudly"]
    references = ["the cat sat on the mat", "the dog barked loudly at night"]
    assert score("bleu", hypotheses, references) == pytest.approx(63.2867, abs=5e-5)
    alone = [score("bleu", [h], [r]) for h, r in zip(hypotheses, references, strict=True)]
    assert sum(alone) / 2 != pytest.approx(63.2867, abs=0.5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("hypotheses", "references", "said"),
    [
        (["a", "b"], ["a"], "2 hypotheses and 1 references"),
        (["a"], ["a", "b", "c"], "1 hypotheses and 3 references"),
        ("a", ["a"], "hypotheses are one str"),
        (["a"], "a", "references are one str"),
        (["a", "b"], [["a"], ["b"]], "line 1 of the references is a list"),
        ([["a", "b"]], [["a", "b"]], "line 1 of the hypotheses is a list"),
        (["a", None], ["a", "b"], "line 2 of the hypotheses is a NoneType"),
        (["a", "b"], ["a", b"b"], "line 2 of the references is a bytes"),
        (["a"], {"a"}, "references are one set"),
        ([], [], "no lines to score"),
    ],
)
def test_a_wrong_shape_is_refused_and_named(name, hypotheses, references, said):
    with pytest.raises(UserError, match=said):
        corpus_score(name, hypotheses, references)
    with pytest.raises(UserError, match=said):
        statistics(name, hypotheses, references)


def test_a_misspelt_metric_names_the_nearest():
    with pytest.raises(ConfigError, match=r"metric=blue.*did you mean 'bleu'"):
        corpus_score("blue", ["a"], ["a"])


LINES = st.lists(
    st.tuples(st.text("ab cé한ع.\f\u2028", max_size=12), st.text("ab cé한ع.\f\u2028", max_size=12)), min_size=1, max_size=6
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(lines=LINES, data=st.data())
def test_any_lines_have_a_finite_score_that_their_order_does_not_change(name, lines, data):
    mixed = data.draw(st.permutations(lines))
    there = score(name, [h for h, _ in lines], [r for _, r in lines])
    assert np.isfinite(there)
    assert there >= 0
    assert name in ERROR_RATES or there <= 100 + 1e-9  # sacreBLEU rounds in logarithms
    assert score(name, [h for h, _ in mixed], [r for _, r in mixed]) == pytest.approx(there, abs=1e-9)


# O31: empty lines are scored where they stand


def test_an_empty_output_keeps_its_place():
    assert score("bleu", ["", "F G H I J"], ["A B C D E", "F G H I J"]) == pytest.approx(36.7879, abs=5e-5)
    assert score("exact_match", ["", "F G H I J"], ["A B C D E", "F G H I J"]) == 50
    assert score("wer", ["", "F G H I J"], ["A B C D E", "F G H I J"]) == 50
    assert score("rougeL", ["", "F G H I J"], ["A B C D E", "F G H I J"]) == 50


@pytest.mark.parametrize("name", NAMES)
def test_a_system_that_says_nothing_is_the_worst(name):
    references = ["a b c d e", "f", "g h i j"]
    empty, right = score(name, ["", " ", ""], references), score(name, references, references)
    assert empty == (0 if name in SIMILARITIES else 100)
    assert (empty < right) == (name in SIMILARITIES)


@pytest.mark.parametrize("blank", ["", " ", "\f", "\u3000\t"])
def test_blank_references_are_finite(blank):
    for name in NAMES:
        assert np.isfinite(score(name, ["a b"], [blank]))
        assert np.isfinite(score(name, [""], [blank]))
    assert score("bleu", [""], [blank]) == 0
    assert score("wer", ["a b"], [blank]) == 100
    assert score("wer", ["a b", "c"], [blank, "c"]) == 200  # two insertions over one reference word, the line still counted
    assert score("exact_match", [""], [blank]) == 100


# O32: every script counts


@pytest.mark.parametrize("text", ["สวัสดี ครับ", "पूर्व प्रधानमन्त्री शिंजो आबेको", "你好 世界", "مرحبا", "Grüße", "🙂 🙃"])
def test_equal_text_is_perfect_in_any_script(text):
    for name in ("rougeL", "exact_match", "chrf"):
        assert score(name, [text], [text]) == pytest.approx(100)
    for name in ("wer", "cer", "symbol_error_rate", "ter"):
        assert score(name, [text], [text]) == 0


def test_accents_count_and_unlike_words_do_not():
    assert score("rougeL", ["Crist bal est ayudando"], ["Cristóbal está ayudando"]) == pytest.approx(100 * 2 / 7)
    assert score("rougeL", ["你好 世界"], ["再见 朋友"]) == 0
    assert score("rougeL", ["Word"], ["word"]) == 0


def test_rouge_l_by_hand():
    # the longest common subsequence of `a b c d` and `a x c` is `a c`: P 1/2, R 2/3, F 4/7
    assert score("rougeL", ["a b c d", "q"], ["a x c", "q"]) == pytest.approx(100 * (4 / 7 + 1) / 2)


# what our own metrics count


def test_error_rates_are_pooled_over_the_corpus():
    hypotheses, references = ["f iː n ɪ k", "x"], ["f iː n ɪ k s", "t iː"]
    assert score("symbol_error_rate", hypotheses, references) == pytest.approx(100 * 3 / 8)
    assert score("wer", hypotheses, references) == pytest.approx(100 * 3 / 8)
    assert score("cer", ["kitten", "a b"], ["sitting", "ab"]) == pytest.approx(100 * 4 / 9)


def test_forms_of_one_text_are_equal():
    composed, decomposed = "caf\u00e9 한국", unicodedata.normalize("NFD", "caf\u00e9 한국")
    assert composed != decomposed
    for name in ("exact_match", "rougeL"):
        assert score(name, [decomposed], [composed]) == 100
    assert score("cer", [decomposed], [composed]) == 0
    assert score("cer", ["cafe 한국"], [decomposed]) == pytest.approx(100 / 7)  # over composed characters, the blank counted


@settings(max_examples=60, deadline=None)
@given(lines=LINES)
def test_all_lines_match_exactly_when_no_character_is_edited(lines):
    hypotheses, references = [h for h, _ in lines], [r for _, r in lines]
    assert (score("exact_match", hypotheses, references) == 100) == (score("cer", hypotheses, references) == 0)


def _edits(a, b):
    """Levenshtein distance by its recurrence, a second way to what the library counts."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y)))
    return row[-1]


@settings(max_examples=60, deadline=None)
@given(
    said=st.lists(st.sampled_from(["a", "iː", "aː", "한", "b"]), max_size=8),
    wanted=st.lists(st.sampled_from(["a", "iː", "aː", "한"]), min_size=1, max_size=8),
)
def test_symbol_errors_are_levenshtein_edits(said, wanted):
    assert score("symbol_error_rate", [" ".join(said)], [" ".join(wanted)]) == pytest.approx(
        100 * _edits(said, wanted) / len(wanted)
    )


# statistics that may be summed


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_summed_statistics_give_exactly_what_sacrebleu_gives(name):
    from sacrebleu.metrics import BLEU, CHRF, TER

    words = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", ".", ",", "über", "한국", "你好"]
    generator = np.random.default_rng(5)
    references = [" ".join(generator.choice(words, size=generator.integers(0, 12))) for _ in range(40)]
    hypotheses = [" ".join(w for w in line.split() if generator.random() > 0.2) for line in references]
    theirs = {"bleu": BLEU, "chrf": CHRF, "ter": TER}[name]()
    assert score(name, hypotheses, references) == theirs.corpus_score(hypotheses, [references]).score
    opening, _, rest = corpus_score(name, hypotheses, references).signature.partition("|")
    assert opening.lower().startswith(name)
    assert rest == str(theirs.get_signature())


@pytest.mark.parametrize("name", NAMES)
def test_the_sum_of_some_rows_is_the_score_of_these_lines(name):
    hypotheses = ["the cat sat on a mat", "", "dogs bark at night", "x"]
    references = ["the cat sat on the mat", "nothing at all", "the dogs bark at night", "x"]
    rows = statistics(name, hypotheses, references)
    assert rows.shape[0] == 4
    assert aggregate(name, rows.sum(axis=0)) == score(name, hypotheses, references)
    chosen = [2, 0, 0, 3]  # as a resample chooses: one line twice, one never
    assert aggregate(name, rows[chosen].sum(axis=0)) == pytest.approx(
        score(name, [hypotheses[i] for i in chosen], [references[i] for i in chosen])
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_signature_says_what_the_number_depends_on(name):
    signature = corpus_score(name, ["a b"], ["a b"]).signature
    parts = dict(part.split(":") for part in signature.split("|")[1:])
    assert {"version", "nrefs", "case"} <= parts.keys()
    assert "tok" in parts or name == "chrf"


def test_importing_the_room_imports_no_library_it_may_not_need():
    code = "import sys, eyeline.metrics; print(sorted({'torch', 'sacrebleu', 'rapidfuzz', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
