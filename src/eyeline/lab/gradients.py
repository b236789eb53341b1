"""How much of the loss reaches each source state: ∂loss/∂h_t for every t, and what the plain recurrence does to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from eyeline.config_base import Settings, Whole
from eyeline.contracts import BEGIN, END, Source
from eyeline.figures import Line, Panel
from eyeline.lab.bench import Bench, Experiment, Names, Wholes, chosen
from eyeline.lab.findings import Findings, Table
from eyeline.lab.practice import FIRST, model_of, one_source
from eyeline.ladder import Seq2Seq
from eyeline.loss import negative_log_likelihood
from eyeline.nn import Encoding

SYMBOLS, ANSWER = 32, 10  # kinds of symbols, and how many the target has
CELLS = ("rnn", "lstm", "gru")
MODELS = {  # name -> architecture, cell
    **{cell: ("seq2seq", cell) for cell in CELLS},
    **{f"{cell} + attention": ("luong", cell) for cell in CELLS},
    "transformer": ("transformer", ""),
    "state-space": ("state-space", ""),
}
LEAST = 1e-30  # norms that are smaller are drawn here
POINTS = 60  # of a curve at most
PRODUCTS = (1, 2, 5, 10, 20, 50, 100)  # steps back
GAINS = (0.9, 1.0, 1.1)  # of orthogonal recurrent weights


class GradientsSettings(Settings):
    models: Names = tuple(MODELS)
    """whose states"""
    lengths: Wholes = (50, 100, 200, 500, 1000)
    """source lengths S, the END symbol counted"""
    size: Whole = Field(64, ge=8, multiple_of=8)
    """width of states"""
    batch: Whole = Field(4, ge=1)
    """sources that norms are averaged over"""
    initialisation: Literal["eyeline", "pytorch"] = "eyeline"
    """recurrent weights: orthogonal and an LSTM's forget gate at one (eyeline), or uniform within 1/√width (pytorch)"""


def measure(settings: GradientsSettings, bench: Bench) -> Findings:
    names = chosen(settings.models, MODELS, "models")
    norms: dict[tuple[str, int], list[float]] = {}
    for name, length in bench.each([(name, length) for name in names for length in settings.lengths], "encodings"):
        norms[name, length] = state_gradients(_model(name, settings, bench), _source(length, settings, bench)).tolist()
    rows = []
    for name in names:
        for length in settings.lengths:
            values = norms[name, length]
            rows.append((name, length, values[0], values[length // 2], values[-1], _ratio(values), _decay(values)))
    states = Table(
        "|∂loss/∂h_t| of untrained models; t = 1 is the first symbol, t = S the END mark. Factor a step: the mean over "
        "the source",
        ("model", "S", "t = 1", "t = S/2", "t = S", "first / last", "factor a step"),
        rows,
    )
    longest = max(settings.lengths)
    middle = sorted(settings.lengths)[len(settings.lengths) // 2]
    panels = [_curves(names, norms, length) for length in dict.fromkeys((min(settings.lengths), middle, longest))]
    products, more, told = _products(settings, bench)
    return Findings(
        "Where the gradient of the loss arrives in the source",
        [states, products],
        [*panels, more],
        [*_sayings(names, norms, settings), *told],
    )


def _model(name: str, settings: GradientsSettings, bench: Bench) -> Seq2Seq:
    architecture, cell = MODELS[name]
    sizes: dict[str, Any] = {"embedding_size": settings.size, "encoder_size": settings.size, "decoder_size": settings.size}
    sizes |= {"cell": cell or "lstm", "bidirectional": False, "size": settings.size, "feedforward_size": 2 * settings.size}
    model = model_of(architecture, SYMBOLS, bench.seed, bench.device, sizes)
    if settings.initialisation == "pytorch" and cell:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(bench.seed)
            for layer in model.encoder.layers:
                layer.reset_parameters()
    return model


def _source(length: int, settings: GradientsSettings, bench: Bench) -> Source:
    ids = torch.randint(FIRST, FIRST + SYMBOLS, (settings.batch, length - 1), generator=bench.generator(length))
    return one_source(ids.tolist(), SYMBOLS, bench.device)


def state_gradients(model: Seq2Seq, source: Source) -> Tensor:
    """[S] norms of ∂loss/∂h_t, root of the mean square over the sources, each with a loss of its own.

    h_t of a recurrent encoder is what step t hands on to step t + 1 and to attention, an LSTM's c included, so that its gradient
    is of every way to the loss; of the others, which hand nothing on, what the encoder says of position t. The loss is of ten
    symbols.
    """
    states, encoding = _recurrent(model, source) if hasattr(model.encoder, "planes") else _others(model, source)
    rows = source.ids.shape[0]
    answer = torch.arange(FIRST, FIRST + ANSWER, device=source.ids.device).expand(rows, -1)
    begin, end = answer.new_full((rows, 1), BEGIN), answer.new_full((rows, 1), END)
    inputs, outputs = torch.cat([begin, answer], 1), torch.cat([answer, end], 1)
    step = model.decoder(inputs, model.decoder.remember(encoding))
    loss = negative_log_likelihood(model.head, step, source, outputs, torch.zeros_like(outputs, dtype=torch.bool))
    found = torch.autograd.grad(loss.objective, states)
    gradients = torch.stack(found, 1) if len(found) > 1 else found[0]  # [B, S, D]
    return gradients.double().square().sum(-1).mean(0).sqrt()


def _recurrent(model: Seq2Seq, source: Source) -> tuple[list[Tensor], Encoding]:
    """One forward layer, a step at a time: what each hands on [B, P·D], an LSTM's h and c, and the encoding made of them."""
    (layer,) = model.encoder.layers
    embedded = model.encoder.embedding(source.ids)
    rows, length = source.ids.shape
    planes: tuple[Tensor, ...] = (embedded.new_zeros(rows, layer.hidden_size),) * model.encoder.planes  # [B, D] each
    states, seen = [], []
    for place in range(length):
        before = tuple(plane[None] for plane in planes)
        _, after = layer(embedded[:, place : place + 1], before if isinstance(layer, nn.LSTM) else before[0])
        state = torch.cat([plane[0] for plane in (after if isinstance(layer, nn.LSTM) else (after,))], -1)
        planes = state.chunk(len(planes), -1)  # of the very tensor that is derived by
        states.append(state)
        seen.append(planes[0])
    return states, Encoding(torch.stack(seen, 1), torch.stack(planes, 1)[:, None], source.mask)


def _others(model: Seq2Seq, source: Source) -> tuple[list[Tensor], Any]:
    encoded = model.encoder(source)
    return [encoded.states], encoded


def _ratio(values: Sequence[float]) -> float | None:
    return values[0] / values[-1] if values[-1] else None


def _decay(values: Sequence[float]) -> float | None:
    """By how much the norm is multiplied from one step back to the next, the geometric mean; None where it is 0 at the start."""
    return (values[0] / values[-2]) ** (1 / max(1, len(values) - 2)) if values[0] > 0 and values[-2] > 0 else None


def _curves(names: Sequence[str], norms: dict[tuple[str, int], list[float]], length: int) -> Panel:
    places = sorted({round(1 + place * (length - 1) / (POINTS - 1)) for place in range(POINTS)})
    lines = [
        Line(name, places, [norms[name, length][place - 1] for place in places], colour=list(MODELS).index(name))
        for name in names
    ]
    return Panel(f"S = {length}, untrained", "source position t", "|∂loss/∂h_t|", lines, log_y=True, floor=LEAST)


# ---- the product of Jacobians ---------------------------------------------------------------------------------------


def recurrent_products(weight: Tensor, inputs: Tensor, steps: Sequence[int]) -> list[tuple[float, float]]:
    """For each k of `steps`: the largest singular value of ∂h_T/∂h_{T-k}, and the product of those of its k factors.

    h_t = tanh(W h_{t-1} + x_t) from zero over `inputs` x [T, D]; factors are diag(1 - h_t²) W (Pascanu et al. 2013, equation 5).
    """
    state, factors = torch.zeros_like(inputs[0]), []
    for given in inputs:
        state = torch.tanh(weight @ state + given)
        factors.append((1 - state.square())[:, None] * weight)
    product, bound, found = torch.eye(len(weight), dtype=weight.dtype), 1.0, {}
    for back, factor in enumerate(reversed(factors), 1):
        product = product @ factor
        bound *= float(torch.linalg.matrix_norm(factor, 2))
        if back in steps:
            found[back] = (float(torch.linalg.matrix_norm(product, 2)), bound)
    return [found[back] for back in steps]


def _products(settings: GradientsSettings, bench: Bench) -> tuple[Table, Panel, list[str]]:
    """The plain recurrence alone: what really comes back over k steps, beside the two bounds of it."""
    size, longest = settings.size, max(PRODUCTS)
    inputs = 0.5 * torch.randn(longest + 20, size, generator=bench.generator(1), dtype=torch.double)
    noise = torch.randn(size, size, generator=bench.generator(2), dtype=torch.double)
    orthogonal = torch.linalg.qr(noise)[0]
    weights = {f"orthogonal × {gain}": gain * orthogonal for gain in GAINS}
    weights["Gaussian, σ = 1"] = noise / torch.linalg.matrix_norm(noise, 2)
    weights["Gaussian, radius 1"] = noise / torch.linalg.eigvals(noise).abs().max()
    rows, lines = [], []
    for number, (name, weight) in enumerate(weights.items()):
        largest = float(torch.linalg.matrix_norm(weight, 2))
        radius = float(torch.linalg.eigvals(weight).abs().max())
        for linear, given in ((False, inputs), (True, None)):
            if given is None:
                found = [
                    (float(torch.linalg.matrix_norm(torch.linalg.matrix_power(weight, back), 2)), math.nan) for back in PRODUCTS
                ]
            else:
                found = recurrent_products(weight, given, PRODUCTS)
            lines.append(
                Line(f"{name}{', linear' if linear else ''}", PRODUCTS, [real for real, _ in found], dashed=linear, colour=number)
            )
            if not linear:
                last = found[-1]
                rows.append((name, radius, largest, last[0], last[1], largest**longest))
    table = Table(
        f"Plain recurrence h = tanh(W h + x), {longest} steps back: |∂h_T/∂h_(T-k)|, the product of its factors' norms, and σ^k",
        ("W", "radius", "σ", "really", "product of norms", "σ^k"),
        rows,
    )
    panel = Panel(
        "Plain recurrence: σ of the product of Jacobians",
        "steps back",
        "largest singular value",
        lines,
        log_x=True,
        log_y=True,
        floor=LEAST,
    )
    grown = rows[GAINS.index(max(GAINS))]
    saying = (
        f"With σ = {grown[2]:.1f} the bound σ^{longest} is {grown[5]:.1e} and the gradient {grown[3]:.1e}: a largest singular "
        "value above one is needed for gradients to explode, and does not make them."
    )
    return table, panel, [saying]


def _sayings(names: Sequence[str], norms: dict[tuple[str, int], list[float]], settings: GradientsSettings) -> list[str]:
    sayings, length = [], max(settings.lengths)
    for name in names:
        values = norms[name, length]
        factor = _decay(values)
        if name in CELLS and factor is not None and values[0] > 0:
            sayings.append(
                f"{name}: over {length} symbols the gradient falls to {values[0] / values[-1]:.1e}, by {factor:.3f} a step."
            )
        elif name in CELLS:
            sayings.append(f"{name}: over {length} symbols nothing is left of the gradient in single precision.")
        elif values[0] > 0:
            spread = max(values) / min(values) if min(values) > 0 else math.inf
            sayings.append(f"{name}: the first symbol of {length} gets {values[0]:.1e}; largest over smallest {spread:.1f}.")
    return sayings


EXPERIMENT = Experiment(
    "gradients",
    "Gradients vanish on their way through a recurrent encoder, gates keep them, and attention gives them a way of length one "
    "(Bengio et al. 1994; Pascanu et al. 2013; Bahdanau et al. 2015)",
    GradientsSettings,
    measure,
)
