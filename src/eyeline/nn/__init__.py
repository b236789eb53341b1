"""The parts, each a plain `torch.nn.Module` that is usable alone. They take parts and numbers, never settings or names."""

from eyeline.nn.attention import (
    AdditiveAttention,
    Attention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    Keys,
    Looking,
    ProjectedDotAttention,
    ScaledDotAttention,
    masked_softmax,
    scaled_dot_product_attention,
)
from eyeline.nn.beam_cache import BeamCache
from eyeline.nn.cache import Cache
from eyeline.nn.copying import StepThenAttendGated
from eyeline.nn.coverage import Coverage, CoveredAttention, CoveredKeys, FertilityCoverage, GatedCoverage, SumCoverage
from eyeline.nn.decoders import AttendThenStep, ContextEveryStep, StateOnly, StepThenAttend, StepThenAttendFed
from eyeline.nn.dropout import Dropout
from eyeline.nn.embedding import Embedding, ExtendedEmbedding
from eyeline.nn.feedforward import FeedForward, PostNorm, PreNorm, Residual, SwiGLU
from eyeline.nn.heads import Generate, PointOrGenerate
from eyeline.nn.linear_attention import CausalLinearSelfAttention, LinearSelfAttention, Sums
from eyeline.nn.local import LocalMonotonic, LocalPredictive
from eyeline.nn.multihead import HeadKeys, MultiHeadAttention
from eyeline.nn.pointing import Distinct, ElementEncoder, Point, Repeatable, StepThenPoint, Symbols, Vectors
from eyeline.nn.positions import Alibi, LearnedPositions, NoPositions, Order, Positions, Rotary, Sinusoidal, Unordered
from eyeline.nn.readout import Affine, Attentional, Gate, Maxout
from eyeline.nn.recurrent import CopyBridge, DenseBridge, Encoding, RecurrentEncoder, RecurrentLayers, Reversed, Stack
from eyeline.nn.scan import selective_scan
from eyeline.nn.scores import (
    AdditiveScore,
    ConcatScore,
    DotScore,
    GeneralScore,
    ProjectedDotScore,
    ScaledDotScore,
    Score,
)
from eyeline.nn.self_attention import BothWays, Causal, CausalSelfAttention, SelfAttention
from eyeline.nn.state_space import (
    CausalConvolution,
    Selected,
    SelectedLayers,
    SelectiveLayer,
    StateSpaceDecoder,
    StateSpaceDecoderLayer,
    StateSpaceEncoder,
    TwoWayLayer,
)
from eyeline.nn.transformer import (
    DecoderLayer,
    Encoded,
    EncoderLayer,
    LayerKeys,
    LayerStates,
    PlacedEmbedding,
    TransformerDecoder,
    TransformerEncoder,
)
from eyeline.nn.transformer_copying import CopyLook, CopyMemory, GatedTransformerDecoder, OwnLook, ShownLook
from eyeline.nn.unpadded import Unpadded
from eyeline.nn.window_attention import CausalWindowSelfAttention, WindowCache, WindowSelfAttention

__all__ = [
    "AdditiveAttention",
    "AdditiveScore",
    "Affine",
    "Alibi",
    "AttendThenStep",
    "Attention",
    "Attentional",
    "BeamCache",
    "BothWays",
    "Cache",
    "Causal",
    "CausalConvolution",
    "CausalLinearSelfAttention",
    "CausalSelfAttention",
    "CausalWindowSelfAttention",
    "ConcatAttention",
    "ConcatScore",
    "ContextEveryStep",
    "CopyBridge",
    "CopyLook",
    "CopyMemory",
    "Coverage",
    "CoveredAttention",
    "CoveredKeys",
    "DecoderLayer",
    "DenseBridge",
    "Distinct",
    "DotAttention",
    "DotScore",
    "Dropout",
    "ElementEncoder",
    "Embedding",
    "Encoded",
    "EncoderLayer",
    "Encoding",
    "ExtendedEmbedding",
    "FeedForward",
    "FertilityCoverage",
    "Gate",
    "GatedCoverage",
    "GatedTransformerDecoder",
    "GeneralAttention",
    "GeneralScore",
    "Generate",
    "HeadKeys",
    "Keys",
    "LayerKeys",
    "LayerStates",
    "LearnedPositions",
    "LinearSelfAttention",
    "LocalMonotonic",
    "LocalPredictive",
    "Looking",
    "Maxout",
    "MultiHeadAttention",
    "NoPositions",
    "Order",
    "OwnLook",
    "PlacedEmbedding",
    "Point",
    "PointOrGenerate",
    "Positions",
    "PostNorm",
    "PreNorm",
    "ProjectedDotAttention",
    "ProjectedDotScore",
    "RecurrentEncoder",
    "RecurrentLayers",
    "Repeatable",
    "Residual",
    "Reversed",
    "Rotary",
    "ScaledDotAttention",
    "ScaledDotScore",
    "Score",
    "Selected",
    "SelectedLayers",
    "SelectiveLayer",
    "SelfAttention",
    "ShownLook",
    "Sinusoidal",
    "Stack",
    "StateOnly",
    "StateSpaceDecoder",
    "StateSpaceDecoderLayer",
    "StateSpaceEncoder",
    "StepThenAttend",
    "StepThenAttendFed",
    "StepThenAttendGated",
    "StepThenPoint",
    "SumCoverage",
    "Sums",
    "SwiGLU",
    "Symbols",
    "TransformerDecoder",
    "TransformerEncoder",
    "TwoWayLayer",
    "Unordered",
    "Unpadded",
    "Vectors",
    "WindowCache",
    "WindowSelfAttention",
    "masked_softmax",
    "scaled_dot_product_attention",
    "selective_scan",
]
