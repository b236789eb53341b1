"""Scores of given outputs by teacher forcing."""

from __future__ import annotations

import math

import pytest
import torch
from search_fakes import A, B, TableModel, TinyModel, assert_same, forced, sources, toy

from eyeline.contracts import END
from eyeline.errors import RunError
from eyeline.search import score, scoring


def test_every_real_token_counts_end_with_it():
    (answer,) = score(TableModel(toy), sources([7]), *forced([(A, B, END)]), length_penalty=1.0)
    assert answer.ids == (A, B, END)
    assert answer.token_scores == pytest.approx([math.log(p) for p in (0.35, 0.02, 0.40)], abs=1e-6)
    assert answer.score == pytest.approx(math.log(0.35 * 0.02 * 0.40), abs=1e-6)
    assert answer.normalized_score == pytest.approx(answer.score / 3)
    assert answer.finished


def test_an_output_without_end_is_scored_as_it_is_and_unfinished():
    (answer,) = score(TableModel(toy), sources([7]), *forced([(A, A)]))
    assert answer.score == pytest.approx(math.log(0.35 * 0.95), abs=1e-6)
    assert not answer.finished


def test_the_empty_output_is_its_end_alone():
    (answer,) = score(TableModel(toy), sources([7]), *forced([(END,)]), length_penalty=1.0)
    assert (answer.ids, answer.normalized_score) == ((END,), pytest.approx(-0.9163, abs=5e-5))


def test_perplexity_does_not_depend_on_the_batch_size():
    model = TinyModel(4)
    lines = [[4 + (i * j) % 8 for j in range(1 + i % 5)] for i in range(12)]
    targets = [(*[4 + (i + j) % 8 for j in range(i % 4)], END) for i in range(12)]
    perplexities = []
    for size in (1, 3, 7, 12):
        answers = []
        for first in range(0, 12, size):
            answers += score(model, sources(*lines[first : first + size]), *forced(targets[first : first + size]))
        perplexities.append(math.exp(-sum(a.score for a in answers) / sum(len(a.ids) for a in answers)))
    assert perplexities == pytest.approx([perplexities[0]] * 4, rel=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 5, 1000])
def test_slices_change_nothing_and_bound_the_logits(rows, monkeypatch):
    model = TinyModel(1)
    batch, target = sources([4, 5], [6]), forced([(7, 8, 9, 10, END), (4, END)])
    whole = score(model, batch, *target, attention=True)
    monkeypatch.setattr(scoring, "ROWS_AT_ONCE", rows)
    seen, head = [], model.head
    monkeypatch.setattr(model, "head", lambda step, source: (seen.append(step.features.shape[:2]), head(step, source))[1])
    for left, right in zip(whole, score(model, batch, *target, attention=True), strict=True):
        assert_same(left, right)
    assert sum(T for _, T in seen) == 5
    assert max(B * T for B, T in seen) <= max(rows, 2)


def test_padding_is_never_looked_at_even_when_the_model_is_not_finite_there():
    class Wild(TinyModel):
        def head(self, step, source):
            answers = super().head(step, source)
            return torch.cat([answers[:, :2], torch.full_like(answers[:, 2:], math.nan)], 1)

    batch, target = sources([4, 5], [6]), forced([(7, END), (END,)])
    tame = score(TinyModel(1), batch, *target)
    wide = [torch.nn.functional.pad(part, (0, 3), value=value) for part, value in zip(target, (5, 5, True), strict=True)]
    for left, right in zip(tame, score(Wild(1), batch, *wide), strict=True):
        assert_same(left, right)
    with pytest.raises(RunError, match="NaN"):
        score(Wild(1), batch, *forced([(7, 8, END), (END,)]))


def test_an_impossible_token_scores_minus_infinity():
    (answer,) = score(TableModel(toy), sources([7]), *forced([(1, END)]))
    assert answer.score == -math.inf


def test_attention_only_when_asked():
    (answer,) = score(TinyModel(0), sources([4, 5]), *forced([(6, END)]))
    assert answer.attention == {}
