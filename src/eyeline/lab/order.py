"""Self-attention without positions does not know order: to rounding, and on sentences that order alone tells apart."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
from pydantic import Field

from eyeline.config_base import Settings, Whole
from eyeline.data.corpus import Corpus
from eyeline.figures import Line, Panel
from eyeline.lab.bench import Bench, Experiment, Names, Wholes, chosen
from eyeline.lab.findings import Findings, Table
from eyeline.lab.practice import FIRST, Pairs, binomial, corpus_of, exact, model_of, one_source, practise
from eyeline.ladder import Seq2Seq
from eyeline.ladder.transformer import POSITIONS

SYMBOLS = 32
SHIFT = 50  # positions by which everything is moved
# All end in a vowel, so that the topic is always marked by 는 and the object by 를; none is a part of another.
PEOPLE = {
    "나": "I",
    "너": "you",
    "우리": "we",
    "언니": "sister",
    "오빠": "brother",
    "친구": "friend",
    "의사": "doctor",
    "배우": "actor",
    "가수": "singer",
    "기자": "reporter",
    "화가": "painter",
    "교수": "professor",
}
DEEDS = {"좋아한다": "like", "기다린다": "await", "도와준다": "help", "미워한다": "hate", "만난다": "meet", "그린다": "draw"}


class OrderSettings(Settings):
    positions: Names = tuple(POSITIONS)
    """how order is told"""
    lengths: Wholes = (4, 8, 16, 32, 64, 128)
    """symbols that are put in another order"""
    size: Whole = Field(32, ge=8, multiple_of=8)
    """width of the Transformers, in two heads"""
    layers: Whole = Field(2, ge=1)
    """of encoder and decoder"""
    steps: Whole = Field(250, ge=1)
    """updates on the sentences"""


def measure(settings: OrderSettings, bench: Bench) -> Findings:
    schemes = chosen(settings.positions, POSITIONS, "positions")
    rows: list[tuple[Any, ...]] = []
    lines = []
    for scheme in schemes:
        model = _model(scheme, SYMBOLS, settings, bench)
        found = [equivariance(model, length, bench) for length in settings.lengths]
        fine = max(equivariance(model.double(), length, bench) for length in settings.lengths)
        rows.append(
            (
                scheme,
                max(found),
                fine,
                shifted(model, bench),
                *(decoder_order(scheme, layers, settings, bench) for layers in (1, 2)),
            )
        )
        lines.append(Line(scheme, settings.lengths, found, colour=list(POSITIONS).index(scheme)))
    table = Table(
        f"An untrained Transformer, its input put in another order: largest difference, relative. Moved: self-attention when all "
        f"is moved by {SHIFT} positions. Decoder: its last state, the symbols before the last in another order, 1 and 2 layers",
        ("positions", "encoder, single", "double", "moved", "decoder, 1", "decoder, 2"),
        rows,
    )
    panel = Panel("Is the encoder blind to order?", "symbols", "relative difference", lines, True, True, floor=1e-9)
    learnt, curves, told = _sentences(schemes, settings, bench)
    return Findings("Order in self-attention", [table, learnt], [panel, curves], [*_sayings(rows), *told])


def _model(scheme: str, symbols: int, settings: OrderSettings, bench: Bench, layers: int | None = None) -> Seq2Seq:
    depth = settings.layers if layers is None else layers
    sizes: dict[str, Any] = {"size": settings.size, "heads": 2, "feedforward_size": 2 * settings.size, "positions": scheme}
    sizes |= {"encoder_layers": depth, "decoder_layers": depth, "max_positions": 256}
    return model_of("transformer", symbols, bench.seed, bench.device, sizes).eval()


def equivariance(model: Seq2Seq, length: int, bench: Bench) -> float:
    """|encode(P x) - P encode(x)| / |encode(x)|, largest entries, for one random order P of `length` symbols before END."""
    ids = torch.randint(FIRST, FIRST + SYMBOLS, (1, length), generator=bench.generator(length))
    turned = torch.randperm(length, generator=bench.generator(length, 1))
    with torch.no_grad():
        plain, other = (
            model.encoder(one_source(some.tolist(), SYMBOLS, bench.device)).states[0] for some in (ids, ids[:, turned])
        )
    expected = torch.cat([plain[:-1][turned.to(plain.device)], plain[-1:]])
    return float((other - expected).abs().max() / plain.abs().max())


def shifted(model: Seq2Seq, bench: Bench) -> float:
    """How far the first layer's self-attention weights move at most when the same symbols stand `SHIFT` positions further on."""
    ids = torch.randint(FIRST, FIRST + SYMBOLS, (1, 16), generator=bench.generator(3)).to(bench.device)
    layer, attention = model.encoder.layers[0], model.encoder.layers[0].attention
    found = []
    with torch.no_grad():
        for start in (0, SHIFT):
            places = torch.arange(start, start + ids.shape[1], device=ids.device)
            queries, keys, _ = attention.split(layer.first.enter(model.encoder.embedding(ids, start)), places)
            bias = attention.order.bias(places, places, queries.dtype)
            nothing = torch.zeros((), dtype=torch.bool, device=ids.device)
            found.append(attention.distribution(queries, keys, nothing, bias))
    return float((found[0] - found[1]).abs().max())


def decoder_order(scheme: str, layers: int, settings: OrderSettings, bench: Bench) -> float:
    """How far a decoder's last state moves, relative, when the symbols before the last one are put in another order."""
    model = _model(scheme, SYMBOLS, settings, bench, layers).double()
    tokens = torch.randint(FIRST, FIRST + SYMBOLS, (1, 16), generator=bench.generator(5)).to(bench.device)
    turned = tokens.clone()
    turned[:, :-1] = tokens[:, torch.randperm(15, generator=bench.generator(6)).to(tokens.device)]
    with torch.no_grad():
        memory = model.encode(one_source([[FIRST]], SYMBOLS, bench.device))
        plain, other = (model.decoder(some, memory).features[0, -1] for some in (tokens, turned))
    return float((plain - other).abs().max() / plain.abs().max())


def _sayings(rows: Sequence[Sequence[Any]]) -> list[str]:
    sayings = []
    for scheme, single, double, moved, one, two in rows:
        if scheme == "none":
            sayings.append(
                f"Without positions the encoder is equivariant to rounding: {single:.1e} in single, "
                f"{double:.1e} in double precision."
            )
            sayings.append(
                f"A decoder without positions is blind to the order of what it has said with one layer ({one:.1e}), "
                f"not with two ({two:.1e})."
            )
        else:
            same = "stays" if moved < 1e-4 else "changes"
            sayings.append(
                f"{scheme}: order changes the encoder by {single:.2f}; attention {same} when all is moved ({moved:.1e})."
            )
    return sayings


# ---- sentences that order decides -----------------------------------------------------------------------------------


def sentences() -> list[tuple[str, str, str]]:
    """Topic, object and deed of every sentence: 나는 너를 좋아한다, and with it 너는 나를 좋아한다."""
    return [(who, whom, deed) for who in PEOPLE for whom in PEOPLE if who != whom for deed in DEEDS]


def korean(who: str, whom: str, deed: str) -> str:
    return f"{who}는 {whom}를 {deed}"


def english(who: str, whom: str, deed: str) -> list[str]:
    return [PEOPLE[who], DEEDS[deed], PEOPLE[whom]]


def coded(lines: Sequence[tuple[str, str, str]], characters: bool) -> tuple[Pairs, int]:
    """The sentences as ids, sources by character or by word, and how many symbols there are."""
    sources = [list(korean(*line)) if characters else korean(*line).split() for line in lines]
    targets = [english(*line) for line in lines]
    symbols = {symbol: FIRST + number for number, symbol in enumerate(sorted({s for line in (*sources, *targets) for s in line}))}
    return [
        ([symbols[s] for s in source], [symbols[s] for s in target]) for source, target in zip(sources, targets, strict=True)
    ], len(symbols)


def _sentences(schemes: Sequence[str], settings: OrderSettings, bench: Bench) -> tuple[Table, Panel, list[str]]:
    """Learnt by every scheme from characters, and from words by none, on sentences of which a fifth is held out."""
    lines = sentences()
    random.Random(bench.seed).shuffle(lines)
    cut = len(lines) // 5
    rows, curves = [], []
    for scheme, characters in [*((scheme, True) for scheme in schemes), ("none", False)]:
        pairs, symbols = coded(lines, characters)
        train, held = corpus_of(pairs[cut:], symbols), corpus_of(pairs[:cut], symbols)
        model = _model(scheme, symbols, settings, bench)
        kind = "characters" if characters else "words"
        seen: list[tuple[int, float]] = []

        def look(step: int, model: Seq2Seq = model, held: Corpus = held, seen: list[tuple[int, float]] = seen) -> None:
            seen.append((step, 100 * float(exact(model, held, bench.device).mean())))

        practise(
            model, train, bench, steps=settings.steps, batch_tokens=1024, rate=5e-3, name=f"{scheme}, {kind}", look=look,
            every=max(1, settings.steps // 5),
        )  # fmt: skip
        right, mirrored = _answers(model, pairs[:cut], symbols, bench)
        low, high = binomial(right, cut)
        rows.append((scheme, kind, 100 * right / cut, 100 * low, 100 * high, 100 * mirrored / cut))
        colour = list(POSITIONS).index(scheme) if characters else 6
        curves.append(
            Line(f"{scheme}, {kind}", [s for s, _ in seen], [share for _, share in seen], colour=colour, dashed=not characters)
        )
    table = Table(
        f"나는 너를 좋아한다 → I like you, 너는 나를 좋아한다 → you like I: {cut} held-out "
        f"sentences, {settings.steps} updates on {len(lines) - cut}",
        ("positions", "source", "right %", "low", "high", "the other way round %"),
        rows,
    )
    panel = Panel("Who likes whom? Held-out sentences", "step", "% right", curves)
    blind = [row for row in rows if row[0] == "none"]
    told = [
        f"Without positions, from {row[1]}: {row[2]:.1f} % right [{row[3]:.1f}, {row[4]:.1f}], {row[5]:.1f} % turned round."
        for row in blind
    ]
    return table, panel, told


def _answers(model: Seq2Seq, pairs: Pairs, symbols: int, bench: Bench) -> tuple[int, int]:
    """How many are right, and how many right but for who did it to whom."""
    turned = [(source, target[::-1]) for source, target in pairs]
    counts = [int(exact(model, corpus_of(some, symbols), bench.device).sum()) for some in (pairs, turned)]
    return counts[0], counts[1]


EXPERIMENT = Experiment(
    "order",
    "Self-attention without positions is equivariant to permutation, so that it cannot tell 나는 너를 좋아한다 from "
    "너는 나를 좋아한다 (Vaswani et al. 2017, section 3.5)",
    OrderSettings,
    measure,
)
