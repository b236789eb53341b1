"""What reading a source and saying a symbol cost against length: time, memory, what is handed on, how much waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from pydantic import Field
from torch.nn.attention import SDPBackend, sdpa_kernel

from eyeline.config_base import Settings, Whole
from eyeline.contracts import BEGIN, Source
from eyeline.figures import Line, Panel
from eyeline.lab.bench import Bench, Experiment, Names, Wholes, chosen
from eyeline.lab.findings import Findings, Table
from eyeline.lab.practice import FIRST, model_of, one_source
from eyeline.lab.timing import Clock, Exponent, bytes_of, crossing, exponent, peak_bytes
from eyeline.ladder import Seq2Seq

SYMBOLS = 64
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "seq2seq": ("seq2seq", {}),
    "bahdanau": ("bahdanau", {}),
    "luong": ("luong", {}),
    "pointer-network": ("pointer-network", {}),
    "pointer-generator": ("pointer-generator", {}),
    "transformer": ("transformer", {}),
    "transformer, not fused": ("transformer", {}),
    "transformer, window": ("transformer", {"attention": "window", "window": 32}),
    "transformer, linear": ("transformer", {"attention": "linear"}),
    "pointer-generator-transformer": ("pointer-generator-transformer", {}),
    "state-space": ("state-space", {}),
}
WAITING: dict[str, Callable[[int], int]] = {  # by construction: steps of an encoder of one layer that wait for the one before
    "seq2seq": lambda n: n,
    "bahdanau": lambda n: n,
    "luong": lambda n: n,
    "pointer-network": lambda n: n,
    "pointer-generator": lambda n: n,
    "state-space": lambda n: 2 * math.ceil(math.log2(max(2, n))),  # scanned in pairs; on a CPU, one by one
}
WINDOW = 24  # steps of which the shortest is the time of one
UNFUSED = "transformer, not fused"


class CostSettings(Settings):
    models: Names = tuple(MODELS)
    """what is measured"""
    lengths: Wholes = (64, 256, 1024, 2048, 4096)
    """of sources that are read, and of targets at which a symbol is said"""
    size: Whole = Field(64, ge=8, multiple_of=8)
    """width of states, in two heads; one layer on each side"""
    repeats: Whole = Field(5, ge=2)
    """encodings that are timed at each length"""
    source: Whole = Field(32, ge=2)
    """source length while the target grows"""


def measure(settings: CostSettings, bench: Bench) -> Findings:
    names = chosen(settings.models, MODELS, "models")
    clock = Clock(bench.device)
    reading: dict[str, list[list[float]]] = {}
    saying: dict[str, list[float]] = {}
    looking: dict[str, list[float]] = {}
    rows, sizes = [], []
    for name in bench.each(names, "models"):
        model = _model(name, settings, bench)
        with torch.no_grad(), _kernel(name):
            reading[name] = [_encode_times(model, length, settings, bench, clock) for length in settings.lengths]
            held = [_peak(model, length, bench) for length in settings.lengths]
            saying[name], state = _token_times(model, settings, bench, clock)
            looking[name] = [_first_tokens(model, length, bench, clock) for length in settings.lengths]
        longest = max(settings.lengths)
        waits = WAITING.get(name, _all_at_once)(longest)
        rows.append((name, reading[name][-1], held, saying[name], looking[name], waits))
        sizes.append((name, state))
    tables = [_table(rows, settings, clock), _exponents(reading, rows, saying, looking, settings)]
    crossings = _crossings(reading, saying, settings)
    tables.append(
        Table("Where one becomes cheaper than another on this machine", ("what", "first", "second", "from length"), crossings)
    )
    return Findings(
        f"What length costs ({clock.name})",
        tables,
        _panels(reading, rows, saying, looking, sizes, settings),
        _sayings(crossings),
        {"state_bytes": dict(sizes), "clock": clock.name},
    )


def _model(name: str, settings: CostSettings, bench: Bench) -> Seq2Seq:
    architecture, own = MODELS[name]
    size = settings.size
    sizes = {"embedding_size": size, "encoder_size": size, "decoder_size": size, "attention_size": size, "size": size, "heads": 2}
    sizes |= {"feedforward_size": 4 * size, "encoder_layers": 1, "decoder_layers": 1, **own}
    return model_of(architecture, SYMBOLS, bench.seed, bench.device, sizes).eval()


def _all_at_once(length: int) -> int:
    return 1


def _kernel(name: str) -> AbstractContextManager[Any]:
    """Attention whose whole matrix of weights is made and kept, for the one that is not fused."""
    return sdpa_kernel(SDPBackend.MATH) if name == UNFUSED else nullcontext()


def _source(length: int, bench: Bench) -> Source:
    ids = torch.randint(FIRST, FIRST + SYMBOLS, (1, length - 1), generator=bench.generator(length))
    return one_source(ids.tolist(), SYMBOLS, bench.device)


def _encode_times(model: Seq2Seq, length: int, settings: CostSettings, bench: Bench, clock: Clock) -> list[float]:
    source = _source(length, bench)
    model.encode(source)  # the first is slower
    return [clock.seconds(lambda: model.encode(source)) for _ in range(settings.repeats)]


def _peak(model: Seq2Seq, length: int, bench: Bench) -> int:
    source = _source(length, bench)
    return peak_bytes(lambda: model.encode(source), bench.device)


def _steps(model: Seq2Seq, source: Source, count: int, clock: Clock, sized: Sequence[int] = ()) -> tuple[list[float], list[int]]:
    """Seconds of each of `count` steps, the output layer included, and the bytes of the state after each of `sized` steps."""
    memory = model.encode(source)
    state = model.decoder.start(memory)
    token = torch.full((1,), BEGIN, device=source.ids.device)
    times, sizes = [], []
    for number in range(1, count + 1):

        def say(token: torch.Tensor = token, state: Any = state) -> Any:
            step, after = model.decoder.step(token, state, memory)
            model.head(step, source)
            return after

        seconds, state = clock.timed(say)
        times.append(seconds)
        if number in sized:
            sizes.append(bytes_of(state))
        token = torch.full((1,), FIRST + number % max(1, source.ids.shape[1] - 1), device=source.ids.device)
    return times, sizes


def _token_times(model: Seq2Seq, settings: CostSettings, bench: Bench, clock: Clock) -> tuple[list[float], list[int]]:
    """Seconds of a step at each target length, the shortest of a few behind it; and the bytes of the state there."""
    source = _source(settings.source, bench)
    times, sizes = _steps(model, source, max(settings.lengths) + WINDOW, clock, settings.lengths)
    return [min(times[length : length + WINDOW]) for length in settings.lengths], sizes


def _first_tokens(model: Seq2Seq, length: int, bench: Bench, clock: Clock) -> float:
    times, _ = _steps(model, _source(length, bench), WINDOW, clock)
    return min(times)


# ---- tables and panels ----------------------------------------------------------------------------------------------


def _table(rows: Sequence[Any], settings: CostSettings, clock: Clock) -> Table:
    last = max(settings.lengths)
    return Table(
        f"At length {last:,}, one source, width {settings.size} ({clock.name}): a symbol late in a target (source of "
        f"{settings.source}), and a symbol of a long source. Waiting: steps of the encoder that wait for the one before",
        ("model", "encode, ms", "peak, MB", "late symbol, ms", "long source, ms", "waiting"),
        [
            (name, 1e3 * min(read), held[-1] / 1e6, 1e3 * said[-1], 1e3 * seen[-1], waits)
            for name, read, held, said, seen, waits in rows
        ],
    )


def _exponents(
    reading: dict[str, list[list[float]]],
    rows: Sequence[Any],
    saying: dict[str, list[float]],
    looking: dict[str, list[float]],
    settings: CostSettings,
) -> Table:
    """b of cost ~ length^b over the upper half of the lengths, with 95 % intervals."""
    first = len(settings.lengths) // 2 if len(settings.lengths) > 3 else 0
    lengths = settings.lengths[first:]

    def shown(found: Exponent) -> str:
        return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"

    table = []
    for name, _, held, *_ in rows:
        times = [(length, seconds) for length, some in zip(lengths, reading[name][first:], strict=True) for seconds in some]
        others = [list(zip(lengths, values[first:], strict=True)) for values in (held, saying[name], looking[name])]
        table.append((name, *(shown(exponent(points)) for points in (times, *others))))
    columns = ("model", "encode", "peak memory", "symbol by target", "symbol by source")
    return Table(
        f"Exponents b of cost ~ length^b, lengths {lengths[0]:,} to {lengths[-1]:,}, with 95 % intervals", columns, table
    )


PAIRS = (
    ("luong", "transformer"),
    ("transformer", "transformer, not fused"),
    ("transformer", "transformer, window"),
    ("transformer", "transformer, linear"),
    ("transformer", "state-space"),
)


def _crossings(
    reading: dict[str, list[list[float]]], saying: dict[str, list[float]], settings: CostSettings
) -> list[tuple[str, str, str, str]]:
    rows = []
    for what, curves in (
        ("encode", {name: [min(some) for some in times] for name, times in reading.items()}),
        ("a symbol", saying),
    ):
        for first, second in PAIRS:
            if first not in curves or second not in curves:
                continue
            place, cheaper = crossing(settings.lengths, curves[first], curves[second])
            if place is None:
                text = f"none from {min(settings.lengths)} to {max(settings.lengths)}: {(first, second)[cheaper]} is cheaper"
            else:
                text = f"{place:.0f}: then {(first, second)[cheaper]}"
            rows.append((what, first, second, text))
    return rows


def _panels(
    reading: dict[str, list[list[float]]],
    rows: Sequence[Any],
    saying: dict[str, list[float]],
    looking: dict[str, list[float]],
    sizes: Sequence[tuple[str, list[int]]],
    settings: CostSettings,
) -> list[Panel]:
    held = {name: [value / 1e6 for value in values] for name, _, values, *_ in rows}
    states = {name: [float(value) for value in values] for name, values in sizes}
    best = {name: [1e3 * min(some) for some in times] for name, times in reading.items()}
    drawn = (
        ("Reading a source", "source length", "ms", best),
        ("Memory while reading", "source length", "peak, MB", held),
        ("Saying a symbol", "symbols said so far", "ms", {name: [1e3 * t for t in times] for name, times in saying.items()}),
        ("Saying a symbol", "source length", "ms", {name: [1e3 * t for t in times] for name, times in looking.items()}),
        ("What a step hands on", "symbols said so far", "bytes", states),
    )
    return [
        Panel(
            title,
            x,
            y,
            [Line(name, settings.lengths, values, colour=list(MODELS).index(name)) for name, values in curves.items()],
            True,
            True,
        )
        for title, x, y, curves in drawn
    ]


def _sayings(crossings: Sequence[tuple[str, str, str, str]]) -> list[str]:
    return [f"{what}, {first} and {second}: crossing {text}." for what, first, second, text in crossings]


EXPERIMENT = Experiment(
    "cost",
    "Self-attention costs the square of the length in time and memory, recurrence and state spaces cost the length; a key-value "
    "cache makes each symbol dearer than the last, a constant state does not (Vaswani et al. 2017, table 1; Gu & Dao 2023)",
    CostSettings,
    measure,
)
