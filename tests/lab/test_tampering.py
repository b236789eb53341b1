"""Changed attention changes what it should: nothing by the identity, everything it mixes by other weights. On every rung."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from eyeline.lab import adversary, faithfulness
from eyeline.lab.bench import Bench
from eyeline.lab.looks import looks
from eyeline.lab.practice import backwards, corpus_of, model_of, sequences
from eyeline.lab.tampering import tampered

RUNGS = ("bahdanau", "luong", "pointer-generator", "transformer", "pointer-generator-transformer", "state-space")
SIZES: dict[str, Any] = {"embedding_size": 8, "encoder_size": 8, "decoder_size": 8, "attention_size": 8, "size": 16, "heads": 2}


def model_and_batch(rung: str) -> tuple[Any, Any]:
    corpus = corpus_of(sequences(5, 9, (2, 6), 1, backwards), 9)
    return model_of(rung, 9, 1, sizes={**SIZES, "encoder_layers": 2, "decoder_layers": 2}).eval(), corpus.batch(np.arange(5))


@pytest.mark.parametrize("rung", RUNGS)
def test_the_identity_changes_nothing_and_every_look_passes_by(rung: str) -> None:
    model, batch = model_and_batch(rung)
    passed = []

    def watch(weights: torch.Tensor, hidden: torch.Tensor, place: int) -> torch.Tensor:
        passed.append(weights.shape[-2])
        return weights

    other = tampered(model, watch)
    with torch.no_grad():
        plain, same = (faithfulness.predictions(one, batch.source, batch.inputs) for one in (model, other))
    torch.testing.assert_close(plain, same, rtol=1e-4, atol=1e-5)
    assert sum(passed) % batch.inputs.shape[1] == 0
    assert sum(passed) >= batch.inputs.shape[1]
    assert {id(p) for p in other.parameters()} == {id(p) for p in model.parameters()}


@pytest.mark.parametrize("rung", RUNGS)
def test_flat_attention_is_flat_and_moves_predictions(rung: str) -> None:
    model, batch = model_and_batch(rung)
    other = tampered(model, faithfulness.flatten)
    with torch.no_grad():
        found = looks(other, batch)
        moved = faithfulness.variation(*(faithfulness.predictions(one, batch.source, batch.inputs) for one in (model, other)))
    flat = (~batch.source.mask).float() / batch.source.lengths[:, None]
    for weights in found.values():
        torch.testing.assert_close(weights, flat[:, None].expand_as(weights))
    assert moved.max() > 1e-5


def test_permuted_weights_are_the_same_weights_elsewhere() -> None:
    weights = torch.tensor([[[0.5, 0.3, 0.2, 0.0]], [[0.9, 0.1, 0.0, 0.0]]])
    hidden = torch.tensor([[[False, False, False, True]], [[False, False, True, True]]])
    change = faithfulness.permuting(torch.Generator().manual_seed(1))
    seen = set()
    for _ in range(30):
        found = change(weights, hidden, 0)
        assert not found[hidden].any()
        torch.testing.assert_close(found.sort(-1).values, weights.sort(-1).values)
        seen.add(tuple(found[0, 0].tolist()))
    assert len(seen) == 6


@pytest.mark.parametrize("rung", RUNGS)
def test_an_adversary_moves_attention_and_leaves_the_model_alone(rung: str) -> None:
    model, batch = model_and_batch(rung)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    moved, apart = adversary.attack(model, batch, Bench(), allowed=0.05, attacks=3)
    assert moved.shape == apart.shape == (int((~batch.target_mask).sum()),)
    assert ((moved >= 0) & (moved <= 1)).all()
    assert ((apart > 0) & (apart <= adversary.LARGEST + 1e-6)).all()
    for parameter, old in zip(model.parameters(), before, strict=True):
        torch.testing.assert_close(parameter, old, rtol=0, atol=0)
        assert parameter.requires_grad


def test_what_attention_ignores_does_not_matter_and_what_it_copies_does() -> None:
    """A model made by hand: the prediction is the symbol that is looked at, so leaving that one out is what moves it most."""
    model, batch = model_and_batch("transformer")
    tau, agree = faithfulness.left_out(model, batch)
    assert tau is not None
    assert -1 <= tau <= 1
    assert agree is not None
    assert 0 <= agree <= 100
