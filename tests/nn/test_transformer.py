"""The Transformer put together: against PyTorch's on copied weights, what is made once, and what is shown on request."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from answers import some_inputs, some_source, stepping, teacher
from eyeline.config_models import TransformerSettings
from eyeline.contracts import Source
from eyeline.errors import ConfigError
from eyeline.ladder import build
from eyeline.nn import GatedTransformerDecoder, MultiHeadAttention
from rungs import RUNGS, drawn, make

SIZE, HEADS, INNER, LAYERS = 8, 2, 12, 2
LIKE = {"size": SIZE, "heads": HEADS, "feedforward_size": INNER, "encoder_layers": LAYERS, "decoder_layers": LAYERS}
OURS = "transformer-pre-relu-sinusoidal-tied"


def copied(theirs: nn.Module, ours: Mapping[str, Tensor], names: Mapping[str, str]) -> None:
    """Gives a layer of PyTorch's the weights of one of ours; in cross-attention its one product is our two."""
    weights = dict(ours)
    if "cross.query.weight" in weights:
        for kind in ("weight", "bias"):
            weights[f"cross.inward.{kind}"] = torch.cat(
                [weights[f"cross.{part}.{kind}"] for part in ("query", "keys_and_values")]
            )
    theirs.load_state_dict(
        {f"{name}{end}": weights[f"{names[name]}{end.replace('in_proj_', '')}"] for name, end in PARTS if name in names}
    )


PARTS = [
    *((f"{part}.", f"in_proj_{kind}") for part in ("self_attn", "multihead_attn") for kind in ("weight", "bias")),
    *((f"{part}.out_proj.", kind) for part in ("self_attn", "multihead_attn") for kind in ("weight", "bias")),
    *((f"{part}.", kind) for part in ("linear1", "linear2", "norm1", "norm2", "norm3") for kind in ("weight", "bias")),
]
BOTH = {
    "self_attn.": "attention.inward.",
    "self_attn.out_proj.": "attention.outward.",
    "linear1.": "feedforward.inward.",
    "linear2.": "feedforward.outward.",
    "norm1.": "first.norm.",
    "norm2.": "second.norm.",
}
DECODER = {**BOTH, "multihead_attn.": "cross.inward.", "multihead_attn.out_proj.": "cross.output.", "norm3.": "third.norm."}


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_agrees_with_the_library(norm: str, activation: str) -> None:
    """Encoder states and decoder features of a padded batch, from the same embedded symbols."""
    settings = TransformerSettings(**LIKE, norm=norm, activation=activation, dropout=0.0)
    model: Any = drawn(settings, 0, False).double()
    common = {"activation": activation, "batch_first": True, "norm_first": norm == "pre", "dtype": torch.float64}
    top = nn.LayerNorm(SIZE, dtype=torch.float64) if norm == "pre" else None  # nn.Transformer has one above post-norm, too
    below = nn.TransformerEncoderLayer(SIZE, HEADS, INNER, 0.0, **common)
    above = nn.TransformerDecoderLayer(SIZE, HEADS, INNER, 0.0, **common)
    encoder = nn.TransformerEncoder(below, LAYERS, top, enable_nested_tensor=False).eval()
    decoder = nn.TransformerDecoder(above, LAYERS, copy.deepcopy(top)).eval()
    for ours, other, names in ((model.encoder, encoder, BOTH), (model.decoder, decoder, DECODER)):
        for layer, one in zip(ours.layers, other.layers, strict=True):
            copied(one, layer.state_dict(), names)
        if other.norm is not None:
            other.norm.load_state_dict(ours.norm.state_dict())
    dims = make(RUNGS[OURS])[1]
    source, inputs = some_source(dims), some_inputs(dims, 4)
    shown = ~source.mask
    wanted = encoder(model.encoder.embedding(source.ids * shown), src_key_padding_mask=source.mask)
    torch.testing.assert_close(model.encoder(source).states[shown], wanted[shown], rtol=0, atol=1e-12)
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    wanted = decoder(model.decoder.embedding(inputs), wanted, tgt_mask=later, memory_key_padding_mask=source.mask)
    torch.testing.assert_close(model.decoder(inputs, model.encode(source)).features, wanted, rtol=0, atol=1e-12)


def counting(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """The arguments of each call of a method of `MultiHeadAttention` from now on."""
    calls, real = [], getattr(MultiHeadAttention, name)
    monkeypatch.setattr(MultiHeadAttention, name, lambda self, *given: calls.append(given) or real(self, *given))
    return calls


def test_keys_are_made_once_a_source_and_never_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    model, dims = make(RUNGS[OURS])
    remembered, asked = counting(monkeypatch, "remember"), counting(monkeypatch, "forward")
    source = some_source(dims)
    stepping(model, source, some_inputs(dims, 12))  # three hypotheses a source, five steps
    assert [len(states) for states, *_ in remembered] == [4] * LAYERS
    assert len(asked) == 5 * LAYERS
    assert {(len(query), len(keys.keys)) for query, keys, _ in asked} == {(12, 4)}


def test_attention_nobody_asks_for_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    model, dims = make(RUNGS[OURS])
    made = counting(monkeypatch, "weights")
    source, inputs = some_source(dims), some_inputs(dims, 4)
    step = model.decoder(inputs, model.encode(source))
    model.head(step, source)
    assert set(step.attention) == {"source"}
    assert not made
    asked = step.attention["source"]
    assert len(made) == 1
    assert asked.shape == (4, 5, 6)
    assert torch.equal(step.features, model.decoder(inputs, model.encode(source)).features), "asking changes a result"


@pytest.mark.parametrize("name", [name for name, settings in RUNGS.items() if "transformer" in settings.architecture])
def test_maps_of_every_layer_and_head(name: str) -> None:
    """Each row is a distribution over what may be seen, and what a step shows is among them."""
    model, dims = make(RUNGS[name])
    settings: Any = RUNGS[name]
    source, inputs = some_source(dims), some_inputs(dims, 4)
    memory = model.encode(source)
    maps = {**model.encoder.maps(source), **model.decoder.maps(inputs, memory)}
    assert set(maps) == {f"encoder.{n}" for n in range(settings.encoder_layers)} | {
        f"{place}.{n}" for n in range(settings.decoder_layers) for place in ("source", "target")
    }
    widths = {"encoder": (6, 6), "target": (5, 5), "source": (5, 6)}
    for place, weights in maps.items():
        assert weights.shape == (4, settings.heads, *widths[place.partition(".")[0]])
        sums = weights.sum(-1).transpose(1, 2)  # [B, T, H]
        sums = sums[~source.mask] if place.startswith("encoder") else sums
        torch.testing.assert_close(sums, torch.ones_like(sums))
        if not place.startswith("target"):
            assert not weights[source.mask[:, None, None].expand_as(weights)].any()
        else:
            assert not weights.triu(1).any()
    shown = model.decoder(inputs, memory).attention["source"]
    if not isinstance(model.decoder, GatedTransformerDecoder):
        chosen = maps[f"source.{settings.alignment_layer % settings.decoder_layers}"]
        torch.testing.assert_close(
            shown, chosen.mean(1) if settings.alignment_head is None else chosen[:, settings.alignment_head]
        )
    elif settings.copy_head != "learned":
        torch.testing.assert_close(shown, maps[f"source.{settings.decoder_layers - 1}"][:, settings.copy_head])


def test_maps_are_of_this_source_alone() -> None:
    model, dims = make(RUNGS[OURS])
    source = some_source(dims)
    one = source.select(torch.tensor([2]))
    torch.testing.assert_close(model.encoder.maps(source)["encoder.1"][2:3], model.encoder.maps(one)["encoder.1"])


def long_source(length: int) -> Source:
    return Source(torch.full((1, length), 5), torch.tensor([length]))


@pytest.mark.parametrize("sized", ["transformer-pre-gelu-learned-1x2", "transformer-post-gelu-linear-learned"])
def test_longer_than_the_table(sized: str) -> None:
    """A table of 7: refused by name in the encoder, in teacher forcing and in stepping; 7 are no problem."""
    model, dims = make(RUNGS[sized])
    teacher(model, long_source(7), some_inputs(dims, 1, 7))
    stepping(model, long_source(7), some_inputs(dims, 1, 7))
    for way in (teacher, stepping):
        with pytest.raises(ConfigError, match=r"an input of 9 symbols is longer .* \(model.max_positions=7\)"):
            way(model, long_source(9), some_inputs(dims, 1, 2))
        with pytest.raises(ConfigError, match=r"an input of 8 symbols is longer .* \(model.max_positions=7\)"):
            way(model, long_source(2), some_inputs(dims, 1, 8))


def test_weights_are_drawn_as_said() -> None:
    """Glorot's bound for each map alone, zero biases, embeddings of length one; tied weights are the embedding's."""
    torch.manual_seed(0)
    model: Any = build(TransformerSettings(size=64, heads=4, feedforward_size=128, encoder_layers=1, decoder_layers=1), 50, 40)
    layer = model.decoder.layers[0]
    for linear, parts in ((layer.attention.inward, 3), (layer.cross.keys_and_values, 2), (layer.feedforward.inward, 1)):
        bound = (6 / (linear.weight.shape[0] // parts + 64)) ** 0.5
        for part in linear.weight.chunk(parts):
            assert 0.9 * bound < part.abs().max() <= bound
        assert not linear.bias.any()
    table = model.decoder.embedding.embedding.table.weight
    assert table is model.head.project.weight
    assert table[1:].norm(dim=1).mean().item() == pytest.approx(1, abs=0.05)
    assert not table[0].any()
    embedded = model.decoder.embedding.eval()(torch.arange(1, 40)[None])
    assert embedded.var().item() == pytest.approx(1.5, abs=0.3), "symbols and places are of one size"
