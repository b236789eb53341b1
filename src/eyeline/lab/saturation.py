"""Why scores are divided by √d_k: entropy and gradients of softmax against the width, by chance and in a trained model."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from eyeline.config_base import Settings, Whole
from eyeline.data.corpus import Corpus
from eyeline.errors import UserError
from eyeline.evaluation.alignments import given_pairs
from eyeline.figures import Line, Panel
from eyeline.lab.bench import Bench, Experiment, Wholes
from eyeline.lab.findings import Findings, Table
from eyeline.lab.looks import looks, spread
from eyeline.lab.practice import backwards, corpus_of, exact, model_of, practise, sequences
from eyeline.ladder import Seq2Seq
from eyeline.nn import DotScore, GeneralScore, ProjectedDotScore, ScaledDotScore

EXAMPLES = ((2.0, 0.5, -1.0), (8.0, 0.0, 0.0))
EXAMPLE_WIDTH = 64  # d_k of the second example: 8 / √64 = 1
SYMBOLS, LENGTHS = 20, (3, 12)  # of the sequences that small models reverse
LARGEST_SHARE = 0.6  # m up to which the limit is shown
AT_MOST = 200  # pairs that real attention is taken from


class SaturationSettings(Settings):
    widths: Wholes = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    """d_k of random queries and keys"""
    keys: Whole = Field(64, ge=2)
    """how many keys a query meets"""
    draws: Whole = Field(2000, ge=10)
    """queries at each width"""
    steps: Whole = Field(250, ge=1)
    """updates of the small Transformers that are trained, when no run is given"""
    size: Whole = Field(64, ge=8, multiple_of=8)
    """their width, in two heads"""


def jacobian_norm(weights: Tensor) -> Tensor:
    """The Frobenius norm of ∂softmax/∂scores = diag(p) - p pᵀ, from p [..., S].

    It is what the gradients of the scores have in the mean square: E|J g|² = |J|² for g ~ N(0, 1).
    """
    squares = weights.square()
    total = squares.sum(-1)
    return (total - 2 * (squares * weights).sum(-1) + total.square()).clamp(min=0).sqrt()


def random_scores(width: int, keys: int, draws: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Scores [draws, keys] of queries and keys from N(0, 1), and the keys [draws, keys, width]."""
    query = torch.randn(draws, 1, width, generator=generator, dtype=torch.double)
    key = torch.randn(draws, keys, width, generator=generator, dtype=torch.double)
    return (query @ key.transpose(1, 2))[:, 0], key


def theory(width: int, keys: int) -> float | None:
    """Entropy of softmax over `keys` independent scores N(0, d_k), in the limit of many keys (Derrida 1981, the random energy
    model): ln n - d_k / 2 while many share the weight; beyond d_k = 2 ln n a few have it all, and of their weights, which are
    Poisson-Dirichlet with m = √(2 ln n / d_k), the entropy is ψ(1) - ψ(1 - m). None between, where the limit is far.
    """
    if width <= math.log(keys):
        return math.log(keys) - width / 2
    share = math.sqrt(2 * math.log(keys) / width)
    if share > LARGEST_SHARE:
        return None
    return float(
        torch.digamma(torch.tensor(1.0, dtype=torch.double)) - torch.digamma(torch.tensor(1 - share, dtype=torch.double))
    )


def examples() -> Table:
    rows = []
    for scores, scale, name in (
        (EXAMPLES[0], 1.0, "[2, .5, -1]"),
        (EXAMPLES[1], 1.0, "[8, 0, 0]"),
        (EXAMPLES[1], EXAMPLE_WIDTH**-0.5, "[8, 0, 0] / √64"),
    ):
        weights = (torch.tensor(scores, dtype=torch.double) * scale).softmax(-1)
        shown = ", ".join(f"{weight:.4f}" for weight in weights.tolist())
        rows.append((name, f"[{shown}]", float(spread(weights)), float(jacobian_norm(weights))))
    return Table("Three scores", ("scores", "softmax", "entropy (nats)", "norm of its derivative"), rows)


def measure(settings: SaturationSettings, bench: Bench) -> Findings:
    if bench.predictor is not None:
        _scale_of(bench.predictor.model)  # what cannot be measured is told at once
    tables = [examples()]
    rows = [_by_chance(width, settings, bench) for width in bench.each(settings.widths, "widths")]
    tables.append(
        Table(
            f"Random queries against {settings.keys} random keys, N(0, 1) in each of d_k numbers; entropy in nats, at most "
            f"{math.log(settings.keys):.3f}. Gradients: of the scores (mean, median), of the query (mean)",
            ("d_k", "entropy", "scaled", "theory", "of scores", "median", "scaled", "of the query", "scaled"),
            rows,
        )
    )
    panels = _panels(rows)
    verdict = _sayings(rows)
    if bench.predictor is not None:
        tables += _of_run(bench)
    else:
        more_tables, more_panels, more = _trained(settings, bench)
        tables, panels, verdict = tables + more_tables, panels + more_panels, verdict + more
    return Findings("Softmax over dot products, with and without 1/√d_k", tables, panels, verdict)


def _by_chance(width: int, settings: SaturationSettings, bench: Bench) -> tuple[Any, ...]:
    """A row of the table."""
    at_once = max(1, 4_000_000 // (settings.keys * width))
    parts = []
    for first in range(0, settings.draws, at_once):
        draws = min(at_once, settings.draws - first)
        scores, keys = random_scores(width, settings.keys, draws, bench.generator(width, first))
        upstream = torch.randn(draws, settings.keys, generator=bench.generator(width, first, 1), dtype=torch.double)
        found = []
        for scale in (1.0, width**-0.5):
            weights = (scores * scale).softmax(-1)
            of_scores = weights * (upstream - (weights * upstream).sum(-1, keepdim=True))  # J g
            of_query = scale * (of_scores[:, None] @ keys)[:, 0].norm(dim=-1)
            found += [spread(weights), jacobian_norm(weights), of_query]
        parts.append(torch.stack(found))
    entropy, of_scores, of_query, scaled_entropy, scaled, scaled_query = torch.cat(parts, 1)
    mean = [float(values.mean()) for values in (entropy, scaled_entropy)]
    return (
        width,
        *mean,
        theory(width, settings.keys),
        float(of_scores.mean()),
        float(of_scores.median()),
        float(scaled.mean()),
        float(of_query.mean()),
        float(scaled_query.mean()),
    )


def _panels(rows: Sequence[Sequence[Any]]) -> list[Panel]:
    columns = list(zip(*rows, strict=True))
    widths = columns[0]

    def line(name: str, column: int, colour: int, dashed: bool = False) -> Line:
        return Line(name, widths, columns[column], colour=colour, dashed=dashed)

    return [
        Panel(
            "Entropy of random attention",
            "d_k",
            "nats",
            [line("plain", 1, 1), line("divided by √d_k", 2, 0), line("plain, in theory (many keys)", 3, 7, True)],
            log_x=True,
        ),
        Panel(
            "Gradient that reaches the scores",
            "d_k",
            "norm",
            [line("plain, mean", 4, 1), line("plain, median", 5, 4), line("divided by √d_k, mean", 6, 0)],
            log_x=True,
            log_y=True,
            floor=1e-12,
        ),
        Panel(
            "Gradient that reaches the query",
            "d_k",
            "mean norm",
            [line("plain", 7, 1), line("divided by √d_k", 8, 0)],
            log_x=True,
            log_y=True,
        ),
    ]


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent b of y ~ x^b, by least squares of the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _sayings(rows: Sequence[Sequence[Any]]) -> list[str]:
    wide = [row for row in rows if row[0] >= 16]
    if len(wide) < 2:
        return []
    widths = [row[0] for row in wide]
    falls, rises = slope(widths, [row[4] for row in wide]), slope(widths, [row[7] for row in wide])
    last = wide[-1]
    return [
        f"Without the scale the entropy falls to {last[1]:.3f} nats at d_k = {last[0]:.0f}; with it, it stays at {last[2]:.2f}.",
        f"The typical (median) gradient of the scores falls to {last[5]:.1e}, but their mean only as d_k^{falls:.2f}: now and "
        "then two keys are nearly level, and there the gradient is whole.",
        f"The gradient that reaches the query does not vanish in the mean: it goes as d_k^{rises:.2f}, since it is a sum of "
        "whole keys, whose length grows as √d_k.",
    ]


# ---- real scores ----------------------------------------------------------------------------------------------------


def sharpened(weights: Tensor, factor: float) -> Tensor:
    """Attention [..., S] as it would be were its scores `factor` times as large: scores are the logarithms of weights, up to a
    number that softmax does not see."""
    return (weights.log() * factor).softmax(-1)


def _trained(settings: SaturationSettings, bench: Bench) -> tuple[list[Table], list[Panel], list[str]]:
    """Transformers that learn to say symbols backwards, their query maps drawn as always, or √d_k times as large, which is as if
    there were no scale: how each learns, and how spread its attention is."""
    corpus = corpus_of(sequences(4000, SYMBOLS, LENGTHS, bench.seed, backwards), SYMBOLS)
    held = corpus_of(sequences(200, SYMBOLS, LENGTHS, bench.seed + 1, backwards), SYMBOLS)
    every = max(1, settings.steps // 10)
    width = settings.size // 2
    sizes = {"size": settings.size, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feedforward_size": 2 * settings.size}
    rows, curves, tables = [], [], []
    for name, factor in (("divided by √d_k", 1.0), ("plain", width**0.5)):
        model = model_of("transformer", SYMBOLS, bench.seed, bench.device, sizes)
        with torch.no_grad():
            for query in _query_maps(model):
                query.mul_(factor)
        at_first = _mean_entropy(model, held, bench)
        losses = practise(model, corpus, bench, steps=settings.steps, batch_tokens=1024, name=name)
        smooth = np.convolve(losses, np.ones(every) / every, "valid").tolist()
        curves.append(Line(name, list(range(every, settings.steps + 1)), smooth, colour=0 if factor == 1.0 else 1))
        right = 100 * float(exact(model, held, bench.device).mean())
        rows.append((name, float(np.mean(losses[-every:])), right, at_first, _mean_entropy(model, held, bench)))
        if factor == 1.0:
            tables.append(_real(model, held, bench))
    learning = Table(
        f"Small Transformers (d_k = {width}) that learn to reverse, {settings.steps} steps; plain: query maps are drawn "
        "√d_k times larger",
        ("scores", "loss at the end", "exact match %", "entropy at first", "at the end"),
        rows,
    )
    saying = f"A Transformer whose scores are not scaled at first ends at a loss of {rows[1][1]:.3f}, a scaled "
    saying += f"one at {rows[0][1]:.3f}."
    return [*tables, learning], [Panel("Learning to reverse", "step", "loss a token (nats)", curves)], [saying]


def _query_maps(model: Seq2Seq) -> Iterator[Tensor]:
    """The weights and biases that make queries, of every attention of a Transformer."""
    for layer in model.encoder.layers:
        yield from _queries_of(layer.attention)
    for layer in model.decoder.layers:
        yield from _queries_of(layer.attention)
        yield from (layer.cross.query.weight, layer.cross.query.bias)


def _queries_of(attention: Any) -> tuple[Tensor, Tensor]:
    size = attention.heads * attention.width
    return attention.inward.weight[:size], attention.inward.bias[:size]


def _mean_entropy(model: Seq2Seq, corpus: Corpus, bench: Bench) -> float:
    return float(np.mean([float(spread(weights).mean()) for _, weights in _attentions(model, corpus, bench)]))


def _attentions(model: Seq2Seq, corpus: Corpus, bench: Bench) -> list[tuple[str, Tensor]]:
    """Each attention to the source in double precision, [real positions, S]: so that their logarithms are the scores."""
    batch = corpus.batch(np.arange(min(len(corpus), AT_MOST))).to(bench.device)
    with torch.no_grad():
        found = looks(copy.deepcopy(model).double(), batch)
    return [(name, weights[~batch.target_mask]) for name, weights in found.items()]


def _real(model: Seq2Seq, corpus: Corpus, bench: Bench) -> Table:
    """Real attention as it is, and with the same scores scaled otherwise. Raises UserError where scores are no products."""
    scale, width = _scale_of(model)
    rows: list[tuple[Any, ...]] = []
    for name, weights in _attentions(model, corpus, bench):
        plain, scaled = (sharpened(weights, factor / scale) for factor in (1.0, width**-0.5))
        rows.append((name, *(float(value(w).mean()) for value in (spread, jacobian_norm) for w in (plain, scaled))))
    kind = "divided by √d_k" if scale < 1 else "plain"
    return Table(
        f"Cross-attention of a trained model, d_k = {width}, trained with {kind} scores: the same scores both ways (means)",
        ("attention", "entropy, plain", "scaled", "derivative, plain", "scaled"),
        rows,
    )


def _scale_of(model: Seq2Seq) -> tuple[float, int]:
    """By what the products of a model's cross-attention are multiplied, and their width."""
    layers = getattr(model.decoder, "layers", None)
    if layers is not None:
        width = int(layers[0].cross.width)
        return width**-0.5, width
    score = getattr(getattr(model.decoder, "attention", None), "score", None)
    if isinstance(score, ScaledDotScore | ProjectedDotScore):
        return score.size**-0.5, score.size
    if isinstance(score, DotScore | GeneralScore):
        return 1.0, score.size
    raise UserError(
        "this model's scores are not products, and have no scale", hint="a transformer has, or luong with score=general"
    )


def _of_run(bench: Bench) -> list[Table]:
    predictor = bench.predictor
    assert predictor is not None
    asked = predictor.asked(given_pairs(predictor, bench.pairs[:AT_MOST]))
    return [_real(predictor.model, asked.corpus, bench)]


EXPERIMENT = Experiment(
    "saturation",
    "Without division by √d_k, dot products of wide vectors push softmax to where its gradients are extremely small "
    "(Vaswani et al. 2017, section 3.2.1)",
    SaturationSettings,
    measure,
    run="pairs",
)
