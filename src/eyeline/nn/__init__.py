"""The parts, each a plain `torch.nn.Module` that is usable alone. They take parts and numbers, never settings or names."""

from eyeline.nn.attention import (
    AdditiveAttention,
    Attention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    Keys,
    ProjectedDotAttention,
    ScaledDotAttention,
    masked_softmax,
    scaled_dot_product_attention,
)
from eyeline.nn.copying import StepThenAttendGated
from eyeline.nn.decoders import AttendThenStep, ContextEveryStep, StateOnly, StepThenAttend, StepThenAttendFed
from eyeline.nn.embedding import Embedding, ExtendedEmbedding
from eyeline.nn.heads import Generate, PointOrGenerate
from eyeline.nn.local import LocalMonotonic, LocalPredictive
from eyeline.nn.multihead import HeadKeys, MultiHeadAttention
from eyeline.nn.pointing import Distinct, ElementEncoder, Point, Repeatable, StepThenPoint, Symbols, Vectors
from eyeline.nn.readout import Affine, Attentional, Gate, Maxout
from eyeline.nn.recurrent import CopyBridge, DenseBridge, Encoding, RecurrentEncoder, RecurrentLayers, Reversed, Stack
from eyeline.nn.scores import (
    AdditiveScore,
    ConcatScore,
    DotScore,
    GeneralScore,
    ProjectedDotScore,
    ScaledDotScore,
    Score,
)

__all__ = [
    "AdditiveAttention",
    "AdditiveScore",
    "Affine",
    "AttendThenStep",
    "Attention",
    "Attentional",
    "ConcatAttention",
    "ConcatScore",
    "ContextEveryStep",
    "CopyBridge",
    "DenseBridge",
    "Distinct",
    "DotAttention",
    "DotScore",
    "ElementEncoder",
    "Embedding",
    "Encoding",
    "ExtendedEmbedding",
    "Gate",
    "GeneralAttention",
    "GeneralScore",
    "Generate",
    "HeadKeys",
    "Keys",
    "LocalMonotonic",
    "LocalPredictive",
    "Maxout",
    "MultiHeadAttention",
    "Point",
    "PointOrGenerate",
    "ProjectedDotAttention",
    "ProjectedDotScore",
    "RecurrentEncoder",
    "RecurrentLayers",
    "Repeatable",
    "Reversed",
    "ScaledDotAttention",
    "ScaledDotScore",
    "Score",
    "Stack",
    "StateOnly",
    "StepThenAttend",
    "StepThenAttendFed",
    "StepThenAttendGated",
    "StepThenPoint",
    "Symbols",
    "Vectors",
    "masked_softmax",
    "scaled_dot_product_attention",
]
