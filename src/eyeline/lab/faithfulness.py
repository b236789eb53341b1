"""Does attention explain? Weights permuted, flattened, shifted by an adversary; source symbols left out one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from eyeline.config_base import Settings, Whole
from eyeline.contracts import Source
from eyeline.data.corpus import Batch, Corpus
from eyeline.errors import UserError
from eyeline.evaluation.alignments import given_pairs
from eyeline.figures import Line, Panel
from eyeline.lab.adversary import LARGEST, attack
from eyeline.lab.bench import Bench, Experiment, Names, chosen
from eyeline.lab.findings import Findings, Table
from eyeline.lab.practice import backwards, corpus_of, exact, model_of, practise, sequences, widths
from eyeline.lab.tampering import Change, predictions, read, tampered, variation
from eyeline.ladder import Seq2Seq

SYMBOLS, LENGTHS = 20, (3, 10)
RUNGS = ("bahdanau", "luong", "pointer-generator", "transformer", "state-space")
QUANTILES = tuple(range(0, 101, 5))


class FaithfulnessSettings(Settings):
    rungs: Names = RUNGS
    """what is trained to reverse, when no run is given; every one needs attention"""
    steps: Whole = Field(600, ge=1)
    """updates of each"""
    size: Whole = Field(64, ge=8, multiple_of=8)
    """width"""
    sources: Whole = Field(24, ge=2)
    """how many are tampered with"""
    permutations: Whole = Field(3, ge=1)
    """random orders of the weights of each look"""
    attacks: Whole = Field(40, ge=1)
    """updates of the adversary"""
    allowed: float = Field(0.05, gt=0, lt=1)
    """how far the adversary may move a prediction, in total variation"""
    flat: bool = True
    """whether each rung is trained once more with flat attention: what it can do without choosing where to look"""


def measure(settings: FaithfulnessSettings, bench: Bench) -> Findings:
    models = _models(settings, bench) if bench.predictor is None else _run(settings, bench)
    rows, moved = [], []
    for name, model, corpus, right, flat in models:
        batch = corpus.batch(np.arange(min(len(corpus), settings.sources))).to(bench.device)
        found = {kind: _distances(model, batch, change) for kind, change in _changes(settings, bench)}
        attacked, shift = attack(model, batch, bench, settings.allowed, settings.attacks)
        kept = attacked <= settings.allowed
        rows.append(
            (
                name,
                right,
                flat,
                *(float(found[kind].mean()) for kind in ("permuted", "flat")),
                100 * float(kept.mean()),
                float(shift[kept].mean() / LARGEST) if kept.any() else None,
                *left_out(model, batch),
            )
        )
        moved.append((name, found["permuted"], found["flat"]))
    table = Table(
        f"How far predictions move (total variation, 0 to 1) when attention is changed. Adversary: looks it can move with at "
        f"most {settings.allowed:g}, and how far it then moves attention (of all that is possible). τ: rank correlation with "
        "leave-one-out",
        (
            "model",
            "right %",
            "trained flat %",
            "permuted",
            "flat",
            "adversary's looks %",
            "attention moved",
            "τ",
            "largest agrees %",
        ),
        rows,
    )
    return Findings("Is attention an explanation?", [table], [_panel(moved), _scatter(rows)], _sayings(rows, settings))


Model = tuple[
    str, Seq2Seq, Corpus, float | None, float | None
]  # name, model, pairs, % right, % right when trained with flat looks


def _models(settings: FaithfulnessSettings, bench: Bench) -> Iterator[Model]:
    rungs = chosen(settings.rungs, RUNGS, "rungs")
    train = corpus_of(sequences(4000, SYMBOLS, LENGTHS, bench.seed, backwards), SYMBOLS)
    held = corpus_of(sequences(max(100, settings.sources), SYMBOLS, LENGTHS, bench.seed + 1, backwards), SYMBOLS)
    sizes = widths(settings.size) | {"heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    for rung in rungs:
        scores: list[float] = []
        models = [model_of(rung, SYMBOLS, bench.seed, bench.device, sizes)]
        if settings.flat:
            models.append(tampered(model_of(rung, SYMBOLS, bench.seed, bench.device, sizes), flatten))
        for model, name in zip(models, (rung, f"{rung}, flat"), strict=False):
            practise(model, train, bench, steps=settings.steps, batch_tokens=768, name=name)
            scores.append(100 * float(exact(model, held, bench.device).mean()))
        yield rung, models[0], held, scores[0], scores[1] if settings.flat else None


def _run(settings: FaithfulnessSettings, bench: Bench) -> Iterator[Model]:
    """Raises UserError for a model without attention, or one that points."""
    predictor = bench.predictor
    assert predictor is not None
    where = f"model.architecture={predictor.config.model.architecture}"
    if predictor.config.points:
        raise UserError("outputs are positions of the source: leaving one out renames the others", where)
    asked = predictor.asked(given_pairs(predictor, bench.pairs[: settings.sources]))
    if not len(asked.corpus):
        raise UserError("all pairs are blank", "--pairs")
    with torch.no_grad():
        step = predictor.model(*read(asked.corpus.batch([0]).to(bench.device)))
    if "source" not in step.attention:
        raise UserError("this architecture looks at its source once and has no attention to tamper with", where)
    yield predictor.run.path.resolve().name, predictor.model, asked.corpus, None, None


# ---- changes --------------------------------------------------------------------------------------------------------


def flatten(weights: Tensor, hidden: Tensor, place: int) -> Tensor:
    """The same weight for everything that is not hidden."""
    seen = (~hidden).to(weights.dtype).expand_as(weights)
    return seen / seen.sum(-1, keepdim=True).clamp(min=1)


def permuting(generator: torch.Generator) -> Change:
    """Weights of each look in a random order, among what is not hidden."""

    def change(weights: Tensor, hidden: Tensor, place: int) -> Tensor:
        drawn = torch.rand(weights.shape, generator=generator).to(weights.device)
        order = drawn.masked_fill(hidden, 2.0).argsort(-1)  # hidden ones last, where their zeros are
        return weights.gather(-1, order).masked_fill(hidden, 0.0)

    return change


def _changes(settings: FaithfulnessSettings, bench: Bench) -> list[tuple[str, list[Change]]]:
    orders: list[Change] = [permuting(bench.generator(number)) for number in range(settings.permutations)]
    return [("permuted", orders), ("flat", [flatten])]


def _distances(model: Seq2Seq, batch: Batch, changes: Sequence[Change]) -> np.ndarray[Any, Any]:
    """How far the prediction at each real position moves, the mean over `changes`."""
    with torch.no_grad():
        plain = predictions(model, *read(batch))
        moved = [variation(plain, predictions(tampered(model, change), *read(batch))) for change in changes]
    return torch.stack(moved).mean(0)[~batch.target_mask].cpu().numpy()


# ---- leave one out --------------------------------------------------------------------------------------------------


def without_each(source: Source, row: int) -> Source:
    """One source in as many copies as it has symbols, END apart, each without another one of them."""
    length = int(source.lengths[row])
    kept = torch.tensor(
        [[place for place in range(length) if place != left] for left in range(length - 1)], device=source.ids.device
    )
    copies = None if source.copy_ids is None else source.copy_ids[row][kept]
    return replace(source, ids=source.ids[row][kept], lengths=torch.full((length - 1,), length - 1), copy_ids=copies)


def left_out(model: Seq2Seq, batch: Batch) -> tuple[float | None, float | None]:
    """Over all looks: the mean rank correlation of attention with how far each prediction moves when a source symbol is left out;
    and the percentage in which the symbol with most attention is the one that matters most. END is out of both."""
    ranks, agree = [], []
    with torch.no_grad():
        step = model(*read(batch))
        plain, attention = model.head(step, batch.source).exp(), step.attention["source"]
        for row, length in enumerate(batch.source.lengths.tolist()):
            if length < 4:  # three symbols and END
                continue
            real = ~batch.target_mask[row]
            source = without_each(batch.source, row)
            inputs = batch.inputs[row : row + 1, real].expand(length - 1, -1)
            moved = variation(plain[row, real], predictions(model, source, inputs)).T.cpu().double().numpy()  # [T, S - 1]
            looks = attention[row, real, : length - 1].cpu().double().numpy()
            for a, b in zip(looks, moved, strict=True):
                ranks.append(kendall(a, b))
                agree.append(a.argmax() == b.argmax())
    if not ranks:
        return None, None
    return float(np.nanmean(ranks)), 100 * float(np.mean(agree))


def kendall(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """τ_b, which allows for equal values (Kendall 1945); NaN where all values of a side are equal."""
    upper = np.triu_indices(len(a), 1)
    one, two = (np.sign(values[:, None] - values)[upper] for values in (a, b))
    norm = np.sqrt(float((one != 0).sum()) * float((two != 0).sum()))
    return float((one * two).sum() / norm) if norm else float("nan")


# ---- what is shown --------------------------------------------------------------------------------------------------


def _panel(moved: Sequence[tuple[str, Any, Any]]) -> Panel:
    """For each share of the looks, how far at most the prediction moved."""
    lines = []
    for number, (name, permuted, flat) in enumerate(moved):
        for values, dashed in ((permuted, False), (flat, True)):
            label = f"{name}{', flat' if dashed else ', permuted'}"
            lines.append(Line(label, QUANTILES, np.percentile(values, QUANTILES).tolist(), dashed=dashed, colour=number))
    return Panel("How far predictions move", "% of predictions", "total variation, at most", lines)


def _scatter(rows: Sequence[tuple[Any, ...]]) -> Panel:
    """Of each model, what random orders do and what an adversary can."""
    lines = [Line(row[0], [row[3]], [row[6]], colour=number) for number, row in enumerate(rows)]
    return Panel("What attention is free to do", "moved by random orders", "attention an adversary moves, of 1", lines)


def _sayings(rows: Sequence[tuple[Any, ...]], settings: FaithfulnessSettings) -> list[str]:
    sayings = []
    for name, right, flat, permuted, flattened, looks, shift, tau, agree in rows:
        text = f"{name}: permuting moves predictions by {permuted:.2f}, flattening by {flattened:.2f}"
        if shift is not None:
            text += f"; an adversary keeps {looks:.0f} % of them within {settings.allowed:g}"
            text += f" and moves attention {shift:.2f} of the way"
        if tau is not None:
            text += f"; τ with leave-one-out {tau:.2f}, the same symbol first in {agree:.0f} %"
        if flat is not None:
            text += f". Trained with flat attention it gets {flat:.0f} % right, else {right:.0f} %"
        sayings.append(text + ".")
    return sayings


EXPERIMENT = Experiment(
    "faithfulness",
    "Attention is not explanation: other weights give the same prediction (Jain & Wallace 2019); or is it? "
    "(Wiegreffe & Pinter 2019)",
    FaithfulnessSettings,
    measure,
    run="pairs",
)
