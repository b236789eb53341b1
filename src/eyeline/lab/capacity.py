"""How long a source a fixed vector of H numbers can hold, learnt in a given budget, beside what would fit into its bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from eyeline.config_base import Settings, Whole
from eyeline.figures import Line, Panel
from eyeline.lab.bench import Bench, Experiment, Wholes
from eyeline.lab.findings import Findings, Table
from eyeline.lab.practice import binomial, corpus_of, exact, model_of, practise, same, sequences

BITS = 32  # of a number
HALF = 0.5  # of the copies right: what a length is said to be held at


class CapacitySettings(Settings):
    sizes: Wholes = (32, 64, 128, 256, 512)
    """H, numbers in the fixed vector"""
    attention_sizes: Wholes = (32, 64)
    """the same with attention"""
    symbols: Whole = Field(8, ge=2)
    """V, kinds of symbols: log2 V bits each"""
    longest: Whole = Field(16, ge=2)
    """symbols of the longest source of training, and of the tests"""
    steps: Whole = Field(900, ge=1)
    """updates of each"""
    tested: Whole = Field(60, ge=10)
    """sources at each length"""


def measure(settings: CapacitySettings, bench: Bench) -> Findings:
    train = corpus_of(sequences(20_000, settings.symbols, (1, settings.longest), bench.seed, same), settings.symbols)
    lengths = list(range(1, settings.longest + 1)) if settings.longest <= 12 else list(range(2, settings.longest + 1, 2))
    held = {
        length: corpus_of(
            sequences(settings.tested, settings.symbols, (length, length), bench.seed + length, same), settings.symbols
        )
        for length in lengths
    }
    lines, rows = [], []
    kinds = [("seq2seq", size) for size in settings.sizes] + [("luong", size) for size in settings.attention_sizes]
    for number, (architecture, size) in enumerate(kinds):
        sizes = {"cell": "gru", "embedding_size": 32, "encoder_size": size, "decoder_size": size, "bidirectional": False}
        model = model_of(architecture, settings.symbols, bench.seed, bench.device, sizes)
        attends = architecture != "seq2seq"
        name = f"H = {size}{', attention' if attends else ''}"
        losses = practise(model, train, bench, steps=settings.steps, batch_tokens=512, name=name)
        right = [int(exact(model, held[length], bench.device).sum()) for length in lengths]
        bounds = [binomial(count, settings.tested) for count in right]
        shares = [100 * count / settings.tested for count in right]
        lines.append(
            Line(name, lengths, shares, [100 * low for low, _ in bounds], [100 * high for _, high in bounds], colour=number)
        )
        rows.append(_row(architecture, size, lengths, shares, sum(losses[-20:]) / len(losses[-20:]), settings))
    table = Table(
        f"Copying 1 to {settings.longest} of {settings.symbols} symbols ({math.log2(settings.symbols):.3g} bits each), "
        f"{settings.steps} updates. Held: the longest length of which half the copies are right. H: numbers of {BITS} bits",
        ("model", "H", "loss (nats)", "held", "bits held", "bits of H", "symbols that would fit"),
        rows,
    )
    panels = [
        Panel("Copies that are right", "length", "%", lines, marks=[(settings.longest, "longest in training")]),
        _bits(rows, settings),
    ]
    return Findings("What a fixed vector holds", [table], panels, _sayings(rows, settings))


def longest_held(lengths: Sequence[int], shares: Sequence[float]) -> int:
    """The last length before the first of which less than half is right; 0 where that is the first."""
    held = 0
    for length, share in zip(lengths, shares, strict=True):
        if share < 100 * HALF:
            break
        held = length
    return held


def _row(
    architecture: str, size: int, lengths: Sequence[int], shares: Sequence[float], loss: float, settings: CapacitySettings
) -> tuple[Any, ...]:
    held, bits = longest_held(lengths, shares), math.log2(settings.symbols)
    kind = "fixed vector" if architecture == "seq2seq" else "attention"
    return kind, size, loss, held, held * bits, size * BITS, int(size * BITS / bits)


def _bits(rows: Sequence[tuple[Any, ...]], settings: CapacitySettings) -> Panel:
    lines = []
    for number, kind in enumerate(("fixed vector", "attention")):
        own = [row for row in rows if row[0] == kind]
        lines.append(Line(f"{kind}: T·log2 V", [row[1] for row in own], [row[4] for row in own], colour=number))
    fixed = [row for row in rows if row[0] == "fixed vector"]
    lines.append(Line(f"H · {BITS} bits", [row[1] for row in fixed], [row[5] for row in fixed], dashed=True, colour=6))
    asked = settings.longest * math.log2(settings.symbols)
    lines.append(Line("all that was asked", [row[1] for row in fixed], [asked] * len(fixed), dashed=True, colour=8))
    return Panel("Bits held, and bits there are", "H", "bits", [line for line in lines if line.x], True, True)


def _sayings(rows: Sequence[tuple[Any, ...]], settings: CapacitySettings) -> list[str]:
    return [
        f"{kind}, H = {size}: half the copies are right up to {held} symbols, {bits:.0f} bits of {room:,}."
        + (f" All that was asked ({settings.longest})." if held == settings.longest else "")
        for kind, size, _, held, bits, room, _ in rows
    ]


EXPERIMENT = Experiment(
    "capacity",
    "A fixed vector is a bottleneck: it has not the capacity to hold a long source (Cho et al. 2014b; Bahdanau et al. 2015)",
    CapacitySettings,
    measure,
)
