"""The settings of each architecture: one class a rung, and the union that the `architecture` key chooses from."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from eyeline.config_base import Real, Settings, Whole

# What a model's output ids mean: entries of the target vocabulary; these and the source's own symbols; positions of the source.
Outputs = Literal["vocabulary", "copies", "positions"]
Coverage = Literal["none", "sum", "fertility", "gated", "location"]


class Architecture(Settings):
    """What every rung has."""

    outputs: ClassVar[Outputs] = "vocabulary"
    architecture: str
    """the name of the rung"""

    @property
    def longest(self) -> int | None:
        """The most symbols, END counted, of a source or target that the model can read; None: any number."""
        return None

    @property
    def cross_attention(self) -> tuple[int, int] | None:
        """How many layers of the decoder look at the source, and with how many heads each; None for one attention, or none."""
        return None


class RecurrentSettings(Architecture):
    """What every recurrent rung has."""

    bidirectional: bool = True
    """encode in both directions"""
    cell: Literal["rnn", "lstm", "gru"] = "lstm"
    """recurrent cell"""
    embedding_size: Whole = Field(128, ge=1)
    """width of the embeddings of either side"""
    encoder_size: Whole = Field(256, ge=1)
    """width of the encoder, per direction"""
    decoder_size: Whole = Field(256, ge=1)
    """width of the decoder"""
    encoder_layers: Whole = Field(1, ge=1)
    """recurrent layers of the encoder"""
    decoder_layers: Whole = Field(1, ge=1)
    """recurrent layers of the decoder"""
    dropout: Real = Field(0.2, ge=0, lt=1)
    """on embeddings, between layers, and on what the output layer reads"""


class Seq2SeqSettings(RecurrentSettings):
    architecture: Literal["seq2seq"] = "seq2seq"
    """recurrent encoder and decoder with a fixed vector between them (Sutskever 2014, Cho 2014)"""
    bidirectional: bool = False
    """encode in both directions"""
    context: Literal["once", "every-step"] = "once"
    """the source vector starts the decoder (once: Sutskever 2014) or also enters every step (every-step: Cho 2014)"""
    reverse_source: bool = False
    """read the source backwards (Sutskever 2014)"""


class BahdanauSettings(RecurrentSettings):
    architecture: Literal["bahdanau"] = "bahdanau"
    """additive attention on the previous state (Bahdanau 2015)"""
    attention_size: Whole = Field(256, ge=1)
    """width of the additive score"""
    coverage: Coverage = "none"
    """what attention knows of where it has looked; none, sum (See 2017), fertility, gated (Tu 2016), location (Chorowski 2015)"""


class LuongSettings(RecurrentSettings):
    architecture: Literal["luong"] = "luong"
    """multiplicative attention on the new state (Luong 2015)"""
    score: Literal["dot", "general", "concat", "scaled-dot", "projected-dot"] = "general"
    """how the query meets the keys"""
    rank: Whole | None = Field(None, ge=1)
    """projected-dot: width of the space that query and keys are projected into; default: the decoder's width"""
    scope: Literal["global", "local-m", "local-p"] = "global"
    """all of the source, or a window of it: around the target's own position (local-m) or around a predicted one (local-p)"""
    window: Whole = Field(10, ge=1)
    """local-m, local-p: D, how far the window reaches to either side"""
    coverage: Coverage = "none"
    """what attention knows of where it has looked: none, sum (See 2017), fertility, gated (Tu 2016), location (Chorowski 2015)"""
    input_feeding: bool = True
    """feed the attentional vector to the next step; without it all target positions are trained at once"""

    @model_validator(mode="after")
    def _coverage_is_of_the_whole_source(self) -> LuongSettings:
        if self.coverage != "none" and self.scope != "global":
            raise ValueError(f"coverage={self.coverage} counts looks at the whole source, scope={self.scope} sees a window of it")
        return self

    @model_validator(mode="after")
    def _only_projections_have_a_rank(self) -> LuongSettings:
        if self.rank is not None and self.score != "projected-dot":
            raise ValueError(f"rank={self.rank} is for score=projected-dot; score={self.score} has none: leave rank out")
        return self


class PointerNetworkSettings(RecurrentSettings):
    outputs: ClassVar[Outputs] = "positions"
    architecture: Literal["pointer-network"] = "pointer-network"
    """outputs are positions of the source (Vinyals 2015)"""
    bidirectional: bool = False
    """encode in both directions"""
    attention_size: Whole = Field(256, ge=1)
    """width of the additive score"""
    element_size: Whole = Field(0, ge=0)
    """numbers in each element of a real-valued source; 0: sources are symbols. Training sets it from the pairs"""
    distinct: bool = False
    """no position is pointed at twice, as in sorting, hulls and tours"""


class PointerGeneratorSettings(RecurrentSettings):
    outputs: ClassVar[Outputs] = "copies"
    architecture: Literal["pointer-generator"] = "pointer-generator"
    """generates from the vocabulary or copies from the source (See 2017)"""
    attention_size: Whole = Field(256, ge=1)
    """width of the additive score"""
    coverage: Coverage = "sum"
    """what attention knows of where it has looked: none, sum (See 2017), fertility, gated (Tu 2016), location (Chorowski 2015)"""


class AttentiveSettings(Architecture):
    """What every Transformer has."""

    size: Whole = Field(256, ge=1)
    """width of the model"""
    heads: Whole = Field(4, ge=1)
    """attention heads a layer; they share the width"""
    encoder_layers: Whole = Field(3, ge=1)
    """layers of the encoder"""
    decoder_layers: Whole = Field(3, ge=1)
    """layers of the decoder"""
    feedforward_size: Whole = Field(1024, ge=1)
    """width inside the feed-forward parts"""
    dropout: Real = Field(0.1, ge=0, lt=1)
    """on embeddings, on attention weights, and on what each part adds"""
    norm: Literal["pre", "post"] = "pre"
    """normalise what a part reads (pre), or the sum after it (post, as Vaswani 2017)"""
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    """between the two maps of a feed-forward part"""
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "none"] = "sinusoidal"
    """how order is told"""
    max_positions: Whole = Field(1024, ge=1)
    """learned: entries of the table; longer inputs are refused"""
    attention: Literal["full", "window", "linear"] = "full"
    """self-attention over everything, over a sliding window, or in linear time; cross-attention is always full"""
    window: Whole = Field(64, ge=1)
    """window: how far a position sees to either side (in the decoder: backwards)"""
    tie_output: bool = True
    """the output layer's weights are the target embedding's"""

    @property
    def longest(self) -> int | None:
        return self.max_positions if self.positions == "learned" else None

    @property
    def cross_attention(self) -> tuple[int, int]:
        return self.decoder_layers, self.heads

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.size % self.heads:
            raise ValueError(f"heads={self.heads} cannot share size={self.size}: make the size a multiple of the heads")
        if self.positions == "rotary" and self.size // self.heads % 2:
            raise ValueError(f"positions=rotary turns pairs of numbers, and size / heads is odd: {self.size // self.heads}")
        return self

    @model_validator(mode="after")
    def _linear_attention_has_no_scores(self) -> Self:
        if self.attention == "linear" and self.positions in ("rotary", "alibi"):
            raise ValueError(
                f"positions={self.positions} acts on scores, and attention=linear never makes them: "
                "use sinusoidal, learned or none"
            )
        return self


def _must_exist(layer: int, head: int | None, layers: int, heads: int) -> None:
    """A layer, from 0, or from -1 backwards, and a head, from 0, of so many."""
    if not -layers <= layer < layers:
        raise ValueError(f"alignment_layer={layer} is none of decoder_layers={layers}")
    if head is not None and head >= heads:
        raise ValueError(f"alignment_head={head} is none of heads={heads}, which count from 0")


class TransformerSettings(AttentiveSettings):
    architecture: Literal["transformer"] = "transformer"
    """self-attention and cross-attention, no recurrence (Vaswani 2017)"""
    alignment_layer: Whole = -1
    """whose cross-attention is shown, aligned and guided: a decoder layer, from 0; -1 is the last"""
    alignment_head: Whole | None = Field(None, ge=0)
    """the head of that layer; none: the mean of all its heads"""

    @model_validator(mode="after")
    def _what_is_shown_exists(self) -> Self:
        _must_exist(self.alignment_layer, self.alignment_head, self.decoder_layers, self.heads)
        return self


class PointerGeneratorTransformerSettings(AttentiveSettings):
    outputs: ClassVar[Outputs] = "copies"
    architecture: Literal["pointer-generator-transformer"] = "pointer-generator-transformer"
    """a Transformer that generates from the vocabulary or copies from the source"""
    copy_head: Literal["learned"] | Annotated[Whole, Field(ge=0)] = "learned"
    """what copies: a cross-attention of its own on top (learned), or this head of the last decoder layer, from 0"""

    @model_validator(mode="after")
    def _what_copies_exists(self) -> Self:
        if self.copy_head != "learned" and self.copy_head >= self.heads:
            raise ValueError(f"copy_head={self.copy_head} is none of heads={self.heads}, which count from 0")
        return self


class StateSpaceSettings(Architecture):
    architecture: Literal["state-space"] = "state-space"
    """selective state spaces with cross-attention (Gu & Dao 2023)"""
    size: Whole = Field(256, ge=1)
    """width of the model"""
    state_size: Whole = Field(16, ge=1)
    """numbers that each channel remembers"""
    expansion: Whole = Field(2, ge=1)
    """channels inside a selective layer, as a multiple of the width"""
    convolution: Whole = Field(4, ge=1)
    """positions that the short convolution before the scan sees"""
    heads: Whole = Field(4, ge=1)
    """heads of the decoder's cross-attention; they share the width"""
    encoder_layers: Whole = Field(2, ge=1)
    """layers of the encoder, each scanning both ways"""
    decoder_layers: Whole = Field(2, ge=1)
    """layers of the decoder"""
    dropout: Real = Field(0.1, ge=0, lt=1)
    """on embeddings, on attention weights, and on what each part adds"""
    tie_output: bool = True
    """the output layer's weights are the target embedding's"""
    alignment_layer: Whole = -1
    """whose cross-attention is shown, aligned and guided: a decoder layer, from 0; -1 is the last"""
    alignment_head: Whole | None = Field(None, ge=0)
    """the head of that layer; none: the mean of all its heads"""

    @property
    def cross_attention(self) -> tuple[int, int]:
        return self.decoder_layers, self.heads

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.size % self.heads:
            raise ValueError(f"heads={self.heads} cannot share size={self.size}: make the size a multiple of the heads")
        return self

    @model_validator(mode="after")
    def _what_is_shown_exists(self) -> Self:
        _must_exist(self.alignment_layer, self.alignment_head, self.decoder_layers, self.heads)
        return self


ModelSettings = Annotated[
    Seq2SeqSettings
    | BahdanauSettings
    | LuongSettings
    | PointerNetworkSettings
    | PointerGeneratorSettings
    | TransformerSettings
    | PointerGeneratorTransformerSettings
    | StateSpaceSettings,
    Field(discriminator="architecture"),
]
MODEL_SETTINGS: dict[str, type[Architecture]] = {
    kind.model_fields["architecture"].default: kind for kind in get_args(get_args(ModelSettings)[0])
}
