"""What builders make of settings: layers, widths, dropout, bridges, shared embeddings."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import torch

from answers import some_inputs, some_source, stepping, teacher
from eyeline.config_models import (
    BahdanauSettings,
    LuongSettings,
    PointerGeneratorTransformerSettings,
    RecurrentSettings,
    Seq2SeqSettings,
    TransformerSettings,
)
from eyeline.contracts import Decoder
from eyeline.errors import ConfigError
from eyeline.ladder import LADDER, build
from eyeline.nn import CopyBridge, DenseBridge
from rungs import CELLS, RUNGS, SOURCE, TARGET, TINY, make, options

OPTIONS = {name: (kind, given) for name, kind, given in options()}


def test_the_list_of_rungs_leaves_out_nothing() -> None:
    """Every architecture, and every cell with every pair of depths, is among what the battery runs over."""
    assert {settings.architecture for settings in RUNGS.values()} == set(LADDER)
    recurrent = [settings for settings in RUNGS.values() if isinstance(settings, RecurrentSettings)]
    met = {(s.architecture, s.cell, s.encoder_layers, s.decoder_layers) for s in recurrent}
    for architecture in ("seq2seq", "luong"):
        assert sum(row[0] == architecture for row in met) == len(CELLS) * 4
    assert {(s.encoder_layers, s.decoder_layers) for s in recurrent} == {(1, 1), (1, 2), (2, 1), (2, 2)}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("layers", [1, 3])
def test_as_many_layers_as_asked_for(name: str, layers: int) -> None:
    """Weight sets in the state_dict, on either side."""
    kind, given = OPTIONS[name]
    model = build(kind(**{**TINY, **given, "encoder_layers": layers, "decoder_layers": layers + 1}), SOURCE, TARGET)
    found: dict[str, set[str]] = {"encoder": set(), "decoder": set()}
    for weight in model.state_dict():
        if match := re.search(r"layers\.(\d+)\.weight_hh_l0$", weight):
            found[weight.partition(".")[0]].add(match[1])
    assert len(found["encoder"]) == layers
    assert len(found["decoder"]) == layers + 1


@pytest.mark.parametrize("settings", [TransformerSettings, PointerGeneratorTransformerSettings])
@pytest.mark.parametrize("layers", [1, 3])
def test_as_many_layers_of_attention_as_asked_for(settings: Any, layers: int) -> None:
    sizes = {"size": 8, "heads": 2, "feedforward_size": 4}
    model = build(settings(**sizes, encoder_layers=layers, decoder_layers=layers + 1), SOURCE, TARGET)
    met = {(name.partition(".")[0], *re.findall(r"layers\.(\d+)\.attention", name)) for name in model.state_dict()}
    assert {key for key in met if len(key) == 2} == {
        *(("encoder", str(n)) for n in range(layers)),
        *(("decoder", str(n)) for n in range(layers + 1)),
    }


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("cell", CELLS)
def test_dropout_with_one_layer(name: str, cell: str) -> None:
    """Asked for in the settings, it acts in training, on either side; never in eval mode; and nothing warns."""
    kind, given = OPTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = build(kind(**{**TINY, **given, "cell": cell, "dropout": 0.5}), SOURCE, TARGET)
        check_dropout(model, True)
        check_dropout(build(kind(**{**TINY, **given, "cell": cell, "dropout": 0.0}), SOURCE, TARGET), False)


def check_dropout(model: Any, acts: bool) -> None:
    dims = make(RUNGS["bahdanau-rnn-1x1"])[1]  # the same vocabularies
    source, inputs = some_source(dims), some_inputs(dims, 4)
    model.train()
    with torch.no_grad():
        first, second = (teacher(model, source, inputs).log_probs for _ in range(2))
        assert torch.equal(first, second) != acts
        memory = model.encode(source)
        first, second = (model.decoder(inputs, memory).features for _ in range(2))
        assert torch.equal(first, second) != acts, "the decoder's own dropout"
        first, second = (model.encoder(source).final for _ in range(2))
        assert torch.equal(first, second) != acts, "the encoder's own dropout"
        model.eval()
        assert torch.equal(teacher(model, source, inputs).log_probs, teacher(model, source, inputs).log_probs)


def test_dot_over_unequal_widths_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="general"):
        build(LuongSettings(score="dot", encoder_size=4, decoder_size=4, bidirectional=True), SOURCE, TARGET)
    build(LuongSettings(score="dot", encoder_size=4, decoder_size=8, bidirectional=True), SOURCE, TARGET)


@pytest.mark.parametrize(
    ("settings", "bridge"),
    [
        (Seq2SeqSettings(encoder_size=6, decoder_size=6), CopyBridge),
        (Seq2SeqSettings(encoder_size=6, decoder_size=12, bidirectional=True), CopyBridge),
        (Seq2SeqSettings(encoder_size=6, decoder_size=6, bidirectional=True), DenseBridge),
        (Seq2SeqSettings(encoder_size=6, decoder_size=6, decoder_layers=2), DenseBridge),
        (BahdanauSettings(encoder_size=6, decoder_size=6), DenseBridge),
    ],
)
def test_states_are_copied_where_shapes_agree(settings: Seq2SeqSettings | BahdanauSettings, bridge: type) -> None:
    assert type(build(settings, SOURCE, TARGET).decoder.bridge) is bridge


@pytest.mark.parametrize("architecture", [name for name in LADDER if name != "pointer-network"])  # which has one vocabulary
def test_one_table_where_the_vocabulary_is_shared(architecture: str) -> None:
    settings = next(s for s in RUNGS.values() if s.architecture == architecture)
    apart, shared = build(settings, SOURCE, SOURCE), build(settings, SOURCE, SOURCE, shared=True)
    width = settings.embedding_size if isinstance(settings, RecurrentSettings) else settings.size
    assert sum(p.numel() for p in apart.parameters()) - sum(p.numel() for p in shared.parameters()) == SOURCE * width


@pytest.mark.parametrize("rung", RUNGS)
def test_every_decoder_keeps_the_seam(rung: str) -> None:
    assert isinstance(make(RUNGS[rung])[0].decoder, Decoder)


@pytest.mark.parametrize("score", ["dot", "general", "concat"])
def test_without_input_feeding_all_positions_are_computed_at_once(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of the attention for a whole target, where stepping takes one a position."""
    model, dims = make(RUNGS[next(name for name in RUNGS if name.startswith(f"luong-{score}-gru"))])
    real, calls = model.decoder.attention.look, []
    monkeypatch.setattr(model.decoder.attention, "look", lambda q, k: calls.append(q.shape[1]) or real(q, k))
    for path in (teacher, stepping):
        path(model, some_source(dims), some_inputs(dims, 4))
    assert calls == [5] + [1] * 5


def test_an_initial_state_depends_on_its_own_source_alone() -> None:
    for name in ("bahdanau-bi-lstm-1x2", "seq2seq-once-bi-lstm-2x2", "luong-dot-bi-lstm-2x2"):
        model, dims = make(RUNGS[name])
        source = some_source(dims)
        other = source.ids.clone()
        other[1:] = (other[1:] + 1 - 4) % (SOURCE - 4) + 4
        before = model.decoder.start(model.encode(source)).hidden
        after = model.decoder.start(model.encode(type(source)(other, source.lengths))).hidden
        torch.testing.assert_close(before[0], after[0], rtol=0, atol=1e-6)
        assert not torch.allclose(before[2], after[2])


def test_one_target_token_and_one_source_symbol() -> None:
    for settings in RUNGS.values():
        model, dims = make(settings)
        source, inputs = some_source(dims, (1,)), some_inputs(dims, 1, 1)
        with torch.no_grad():
            torch.testing.assert_close(
                teacher(model, source, inputs).log_probs, stepping(model, source, inputs).log_probs, rtol=0, atol=1e-5
            )
