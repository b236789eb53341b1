"""A beam over projected values says what a beam over contexts does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from eyeline.config_models import BahdanauSettings, PointerGeneratorSettings
from eyeline.contracts import BEGIN, Hypothesis, Source
from eyeline.ladder import build
from eyeline.ladder.model import Seq2Seq
from eyeline.nn.packing import UNITS, pack, round_weights
from eyeline.nn.projected_values import PROJECTED
from eyeline.search import beam_search, score

VOCABULARY, N, S = 30, 4, 9
WIDTHS = {"embedding_size": 24, "encoder_size": 40, "decoder_size": UNITS, "attention_size": 16}
SETTINGS = {
    "bahdanau": BahdanauSettings(**WIDTHS),
    "bahdanau, two layers": BahdanauSettings(**WIDTHS, decoder_layers=2),
    "pointer-generator": PointerGeneratorSettings(**WIDTHS, coverage="none"),
    "pointer-generator, rnn": PointerGeneratorSettings(**WIDTHS, coverage="none", cell="rnn"),
}


def drawn(name: str) -> Seq2Seq:
    torch.manual_seed(1)
    model = build(SETTINGS[name], VOCABULARY, VOCABULARY).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # far from where learning begins, where all is alike
    return model


def some() -> Source:
    ids = torch.randint(4, VOCABULARY, (N, S))
    return Source(ids, torch.tensor([S, S, 5, 2]), ids.clone(), 0)


def same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]]) -> None:
    assert [[each.ids for each in answers] for answers in found] == [[each.ids for each in answers] for answers in wanted]
    for ours, theirs in zip(chain(*found), chain(*wanted), strict=True):
        torch.testing.assert_close(torch.tensor(ours.token_scores), torch.tensor(theirs.token_scores), rtol=0, atol=1e-4)
        torch.testing.assert_close(ours.attention["source"], theirs.attention["source"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_beam_says_what_it_said(name: str) -> None:
    model, source = drawn(name), some()
    packed = pack(copy.deepcopy(model))
    assert isinstance(packed, Seq2Seq)
    assert isinstance(packed.decoder, PROJECTED)
    assert packed.state_dict().keys() == model.state_dict().keys()
    for beam in (1, 3, 5):
        same(
            beam_search(packed, source, beam_size=beam, n_best=beam, max_length=12),
            beam_search(model, source, beam_size=beam, n_best=beam, max_length=12),
        )


@pytest.mark.parametrize("name", SETTINGS)
@torch.no_grad()
def test_values_are_projected_once_where_hypotheses_share_them(name: str) -> None:
    packed, source = pack(drawn(name)), some()
    assert isinstance(packed, Seq2Seq)
    memory = packed.encode(source)
    token = torch.full((N,), 5)
    _, state = packed.decoder.step(token, packed.decoder.start(memory), memory)
    assert made(memory) is None, "one hypothesis a source"
    beams = torch.arange(N).repeat_interleave(3)
    _, state = packed.decoder.step(token[beams], state.select(beams), memory)
    once = made(memory)
    assert once is not None
    packed.decoder.step(token[beams], state, memory)
    assert made(memory) is once
    fewer = memory.select(torch.tensor([2, 0]))
    torch.testing.assert_close(made(fewer), once[[2, 0]], rtol=0, atol=0)


def made(memory: Any) -> Tensor | None:
    """The projected values of a memory, where they have been made."""
    found = memory.projected.get(lambda: None)
    return None if found is None else found.values


@pytest.mark.parametrize("name", SETTINGS)
@torch.no_grad()
def test_long_sources_and_gradients_take_the_plain_way(name: str) -> None:
    packed = pack(drawn(name))
    assert isinstance(packed, Seq2Seq)
    ids = torch.randint(4, VOCABULARY, (1, 200))
    for source, gradients in ((Source(ids, torch.tensor([200]), ids, 0), False), (some().select(torch.tensor([0])), True)):
        memory, beams = packed.encode(source), torch.zeros(3, dtype=torch.long)
        state = packed.decoder.start(memory).select(beams)
        with torch.set_grad_enabled(gradients):
            packed.decoder.step(torch.full((3,), 5), state, memory)
        assert made(memory) is None


@pytest.mark.usefixtures("small_layers_rounded")
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("lay", "rounding"), [(pack, 1e-4), (round_weights, 0.1)])
@torch.no_grad()
def test_what_a_beam_finds_scores_what_it_says(name: str, lay: Callable[[nn.Module], nn.Module], rounding: float) -> None:
    """With 8 bits to the size of a rounding: a number in the middle between two integers may fall to either."""
    packed, source = lay(drawn(name)), some()
    assert isinstance(packed, Seq2Seq)
    for row, (best,) in enumerate(beam_search(packed, source, beam_size=4, max_length=12)):
        ids = torch.tensor([best.ids])
        inputs = torch.cat([torch.full((1, 1), BEGIN), ids[:, :-1]], 1)
        (again,) = score(packed, source.select(torch.tensor([row])), inputs, ids, torch.zeros_like(ids, dtype=torch.bool))
        assert again.score == pytest.approx(best.score, abs=rounding)
