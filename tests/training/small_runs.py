"""Corpora and settings so small that a run takes a second, and ways to stop runs and to compare them. Knows what users see."""

from __future__ import annotations

import io
import json
import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from safetensors.torch import load_file

import eyeline
from eyeline.config import Config
from eyeline.errors import Interrupted
from eyeline.training.reporting import Reporter

MODELS: dict[str, dict[str, Any]] = {
    "seq2seq": {"architecture": "seq2seq", "cell": "gru"},
    "bahdanau": {"architecture": "bahdanau", "attention_size": 8},
    "luong": {"architecture": "luong", "cell": "rnn", "encoder_layers": 2},
}
TINY = {"embedding_size": 8, "encoder_size": 8, "decoder_size": 12, "dropout": 0.2}
SMALL = {"size": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.2}
OTHERS: dict[str, dict[str, Any]] = {  # the rest of the ladder, each complete
    "pointer-network": {**TINY, "architecture": "pointer-network", "attention_size": 8, "distinct": True},
    "pointer-network-real": {**TINY, "architecture": "pointer-network", "attention_size": 8},
    "pointer-generator": {**TINY, "architecture": "pointer-generator", "attention_size": 8},
    "transformer": {**SMALL, "architecture": "transformer", "feedforward_size": 16},
    "pointer-generator-transformer": {**SMALL, "architecture": "pointer-generator-transformer", "feedforward_size": 16},
    "state-space": {**SMALL, "architecture": "state-space", "state_size": 4},
}


def reversal(lines: int = 40, seed: int = 3, longest: int = 8) -> list[tuple[str, str]]:
    """Corpus C of the bug reports: 3 to 8 letters out of a–f separated by blanks, and the same letters reversed."""
    draw = random.Random(seed)
    sources = [[draw.choice("abcdef") for _ in range(draw.randint(3, longest))] for _ in range(lines)]
    return [(" ".join(letters), " ".join(reversed(letters))) for letters in sources]


def ordering(lines: int = 40, seed: int = 3, real: bool = False) -> list[tuple[str, str]]:
    """Letters, or numbers, and the positions of them in rising order: what pointing is for."""
    draw = random.Random(seed)
    sources = [draw.sample("abcdefgh", draw.randint(3, 7)) for _ in range(lines)]
    orders = [sorted(range(len(letters)), key=letters.__getitem__) for letters in sources]
    written = [json.dumps([ord(letter) / 100 for letter in letters]) if real else " ".join(letters) for letters in sources]
    return [(source, " ".join(map(str, order))) for source, order in zip(written, orders, strict=True)]


def write_pairs(path: Path, pairs: Sequence[tuple[str, ...]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join("\t".join(pair) + "\n" for pair in pairs).encode())
    return str(path)


def settings(folder: Path, rung: str = "bahdanau", **sections: Any) -> Config:
    """Corpus C, about ten batches an epoch, and a tiny model; `sections` override keys of each section.

    A section that is not a mapping (`seed`) replaces the value.
    """
    train, valid = folder / "train.tsv", folder / "valid.tsv"
    if not train.exists():
        write_pairs(train, reversal())
        write_pairs(valid, reversal(7, seed=4))
    values: dict[str, Any] = {
        "data": {"train": [str(train)], "valid": [str(valid)]},
        "tokenizer": {"kind": "whitespace-symbols"},
        "model": {**TINY, **MODELS[rung]},
        "training": {"steps": 20, "batch_tokens": 36, "learning_rate": 0.01, "validate_every": 10, "checkpoint_every": 5},
        "search": {"max_length": 10},
    }
    for name, section in sections.items():
        values[name] = {**values[name], **section} if isinstance(section, dict) else section
    values["model"] = {name: value for name, value in values["model"].items() if value is not None}
    return Config.from_dict(values)


def rung_settings(folder: Path, name: str, **sections: Any) -> Config:
    """As `settings`, for any rung of the ladder: a name of MODELS or of OTHERS."""
    if name in MODELS:
        return settings(folder / "text", name, **sections)
    if name.startswith("pointer-network"):
        real = name.endswith("real")
        for part, lines, seed in (("train", 40, 3), ("valid", 7, 4)):
            write_pairs(folder / name / f"{part}.tsv", ordering(lines, seed, real))
    model = {**dict.fromkeys((*TINY, *MODELS["bahdanau"]), None), **OTHERS[name], **sections.pop("model", {})}
    return settings(folder / (name if name.startswith("pointer-network") else "text"), "bahdanau", model=model, **sections)


class Listener(Reporter):
    """A reporter whose text can be read, and which calls `after_step` once each update is made."""

    def __init__(self, after_step: Callable[[int], None] | None = None, verbosity: int = 0) -> None:
        super().__init__(verbosity, Console(file=io.StringIO(), width=200, highlight=False))
        self.after_step, self.steps = after_step, 0

    @property
    def text(self) -> str:
        return self.console.file.getvalue()  # type: ignore[attr-defined]

    def wants_pace(self) -> bool:
        self.steps += 1
        if self.after_step is not None:
            self.after_step(self.steps)
        return super().wants_pace()


def train(config: Config, out: Path, **options: Any) -> str:
    """Trains, and returns what a user was told."""
    listener = options.pop("reporter", None) or Listener()
    eyeline.train(config, out, reporter=listener, **options)
    return listener.text


def train_and_stop(config: Config, out: Path, after: int, **options: Any) -> str:
    """Trains, and is told to stop (SIGTERM) after so many updates of this session. Returns the farewell."""

    def stop(step: int) -> None:
        if step == after:
            signal.raise_signal(signal.SIGTERM)

    try:
        eyeline.train(config, out, reporter=Listener(stop), **options)
    except Interrupted as error:
        return str(error)
    raise AssertionError("the run was not stopped")


def newest(run: Path) -> Path:
    return max((run / "checkpoints").glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))


def checkpoint_names(run: Path) -> list[str]:
    """All that lies in the checkpoints' folder, hidden entries too."""
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def events(run: Path, split: str | None = None) -> list[dict[str, Any]]:
    """The logged events, without what depends on the clock."""
    lines = (run / "metrics.jsonl").read_bytes().decode().split("\n")
    assert lines.pop() == "", "the last line is whole"
    found = [json.loads(line) for line in lines]
    plain = [{key: value for key, value in event.items() if key not in ("time_s", "tokens_per_s")} for event in found]
    return [event for event in plain if split in (None, event["split"])]


def same_tensors(one: Path, other: Path) -> None:
    """Two safetensors files hold the same numbers, bit for bit."""
    a, b = load_file(one), load_file(other)
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        assert torch.equal(tensor, b[name]), name


def same_run(one: Path, other: Path) -> None:
    """Two runs ended alike: newest checkpoint (weights, moments, random states, position, counters), best weights, events."""
    a, b = newest(one), newest(other)
    assert a.name == b.name
    for name in ("model.safetensors", "optimizer.safetensors"):
        same_tensors(a / name, b / name)
    states = [json.loads((path / "state.json").read_bytes()) for path in (a, b)]
    for state in states:
        del state["position"]["seconds"], state["position"]["warm_seconds"], state["meter"]["seconds"]
    assert states[0] == states[1]
    same_tensors(one / "model.safetensors", other / "model.safetensors")
    assert events(one) == events(other)
