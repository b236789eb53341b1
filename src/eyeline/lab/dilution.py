"""How much of the first symbol is left in an encoder's last state, by cosine and by a linear probe, against the distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from eyeline.config_base import Settings, Whole
from eyeline.figures import Line, Panel
from eyeline.lab.bench import Bench, Experiment, Names, Wholes, chosen
from eyeline.lab.findings import Findings, Table
from eyeline.lab.practice import FIRST, backwards, binomial, corpus_of, model_of, one_source, practise, sequences
from eyeline.ladder import Seq2Seq

SYMBOLS = 16
MODELS = {  # name -> architecture, cell
    "rnn": ("seq2seq", "rnn"),
    "lstm": ("seq2seq", "lstm"),
    "gru": ("seq2seq", "gru"),
    "gru + attention": ("luong", "gru"),
    "transformer": ("transformer", ""),
    "state-space": ("state-space", ""),
}
RIDGE = 1e-6  # of the mean square of the states: enough for the arithmetic, too little to hide what is there


class DilutionSettings(Settings):
    models: Names = tuple(MODELS)
    """whose encoders"""
    distances: Wholes = (1, 2, 5, 10, 20, 40, 80)
    """symbols that follow the first, the END mark apart"""
    size: Whole = Field(64, ge=8, multiple_of=8)
    """width of states"""
    steps: Whole = Field(450, ge=1)
    """updates of the trained ones, which learn to say symbols backwards: the first is said last"""
    trained_to: Whole = Field(10, ge=2)
    """the longest source of their training"""
    probed: Whole = Field(800, ge=2 * SYMBOLS)
    """sources that the probe is fitted to, and half as many that it is tested on"""


def measure(settings: DilutionSettings, bench: Bench) -> Findings:
    names = chosen(settings.models, MODELS, "models")
    rows, lines = [], {True: [], False: []}  # type: ignore[var-annotated]
    for name in names:
        for trained in (False, True):
            model = _model(name, settings, bench)
            if trained:
                corpus = corpus_of(sequences(4000, SYMBOLS, (2, settings.trained_to), bench.seed, backwards), SYMBOLS)
                practise(model, corpus, bench, steps=settings.steps, batch_tokens=1024, name=name)
            found = [_left(model, distance, settings, bench) for distance in settings.distances]
            rows += [
                (name, "yes" if trained else "no", distance, *left)
                for distance, left in zip(settings.distances, found, strict=True)
            ]
            lines[trained].append((name, found))
    table = Table(
        f"The first of {SYMBOLS} symbols in the last state. Cosine: between sources that differ in it alone (1: nothing is "
        f"left). Probe: linear, chance {100 / SYMBOLS:.2f} %",
        ("encoder", "trained", "distance", "cosine", "probe %", "low", "high"),
        rows,
    )
    return Findings("What is left of the first symbol", [table], _panels(lines, settings), _sayings(rows, settings))


def _model(name: str, settings: DilutionSettings, bench: Bench) -> Seq2Seq:
    architecture, cell = MODELS[name]
    size = settings.size
    sizes: dict[str, Any] = {
        "embedding_size": size,
        "encoder_size": size,
        "decoder_size": size,
        "size": size,
        "feedforward_size": 2 * size,
    }
    sizes |= {"cell": cell or "lstm", "bidirectional": False, "encoder_layers": 1, "decoder_layers": 1, "heads": 2}
    return model_of(architecture, SYMBOLS, bench.seed, bench.device, sizes).eval()


def _left(model: Seq2Seq, distance: int, settings: DilutionSettings, bench: Bench) -> tuple[float, float, float, float]:
    """Mean cosine of the last states of sources that differ in the first symbol alone; the probe's accuracy in percent."""
    tested = settings.probed // 2
    chance = bench.generator(distance)
    draws = torch.randint(0, SYMBOLS, (settings.probed + tested, distance + 1), generator=chance)
    shift = torch.randint(1, SYMBOLS, (tested,), generator=chance)
    other = draws[:tested].clone()
    other[:, 0] = (other[:, 0] + shift) % SYMBOLS
    states, changed = last_states(model, draws + FIRST, bench), last_states(model, other + FIRST, bench)
    cosine = torch.nn.functional.cosine_similarity(states[:tested], changed, dim=-1)
    right = probe(states.numpy(), draws[:, 0].numpy(), settings.probed)
    low, high = binomial(right, tested)
    return float(cosine.mean()), 100 * right / tested, 100 * low, 100 * high


def last_states(model: Seq2Seq, ids: Tensor, bench: Bench) -> Tensor:
    """[N, D] in double precision: the top state at the END mark of each source of `ids` [N, S]."""
    parts = []
    for some in ids.split(max(1, 16_384 // ids.shape[1])):  # type: ignore[no-untyped-call]
        with torch.no_grad():
            states = model.encoder(one_source(some.tolist(), SYMBOLS, bench.device)).states  # [n, S + 1, D], none is padded
        parts.append(states[:, -1].double().cpu())
    return torch.cat(parts)


def probe(states: np.ndarray[Any, Any], symbols: np.ndarray[Any, Any], fitted: int) -> int:
    """How many symbols of the rows after the first `fitted` are read off by the linear map that least squares fit to those.

    Each column is brought to mean 0 and spread 1 first, so that what is faint, but there, is read as well as what is loud.
    """
    centre, spread = states[:fitted].mean(0), states[:fitted].std(0)
    design = np.concatenate([(states - centre) / np.maximum(spread, 1e-300), np.ones((len(states), 1))], 1)
    wanted = np.eye(SYMBOLS)[symbols[:fitted]]
    given = design[:fitted]
    square = given.T @ given
    weights = np.linalg.solve(square + RIDGE * np.trace(square) / len(square) * np.eye(len(square)), given.T @ wanted)
    return int(((design[fitted:] @ weights).argmax(1) == symbols[fitted:]).sum())


def _panels(
    lines: dict[bool, list[tuple[str, list[tuple[float, float, float, float]]]]], settings: DilutionSettings
) -> list[Panel]:
    panels = []
    for trained in (False, True):
        kind = f"trained to {settings.trained_to} symbols" if trained else "untrained"
        marks = [(settings.trained_to - 1, "longest in training")] if trained else []
        for title, column, unit in (("A linear probe", 1, "% right"), ("1 - cosine", 0, "of sources that differ in the first")):
            drawn = []
            for name, found in lines[trained]:
                values = [1 - left[0] if column == 0 else left[1] for left in found]
                low, high = ([left[2] for left in found], [left[3] for left in found]) if column else (None, None)
                drawn.append(Line(name, settings.distances, values, low, high, colour=list(MODELS).index(name)))
            if column:
                drawn.append(Line("chance", settings.distances, [100 / SYMBOLS] * len(settings.distances), dashed=True, colour=8))
            log = column == 0
            panels.append(
                Panel(f"{title}, {kind}", "symbols after the first", unit, drawn, True, log, marks, 1e-12 if log else None)
            )
    return panels


def _sayings(rows: Sequence[Sequence[Any]], settings: DilutionSettings) -> list[str]:
    sayings = []
    furthest = max(settings.distances)
    for name, trained, distance, cosine, right, low, _ in rows:
        if distance == furthest:
            chance = "is above chance" if low > 100 / SYMBOLS else "cannot be told from chance"
            kind = "trained" if trained == "yes" else "untrained"
            sayings.append(f"{name}, {kind}: {distance} symbols on, cosine {cosine:.6f}, and the probe's {right:.1f} % {chance}.")
    return sayings


EXPERIMENT = Experiment(
    "dilution",
    "A fixed vector forgets its beginning: what came first is diluted by all that follows (Cho et al. 2014b; Sutskever et al. "
    "2014)",
    DilutionSettings,
    measure,
)
