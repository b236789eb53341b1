"""Trained runs of a second or two, made when first asked for and shared by a session. Knows what users see of eyeline."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import eyeline
from eyeline.predictor import Predictor
from eyeline.training.reporting import Reporter

RUNGS = ("seq2seq", "bahdanau", "luong")
ATTENTIVE = ("bahdanau", "luong")
TINY: dict[str, Any] = {"cell": "gru", "embedding_size": 16, "encoder_size": 32, "decoder_size": 32, "dropout": 0.0}
NEVER = 1_000_000  # steps

SENTENCES = (
    ("the cat sleeps", "le chat dort"),
    ("the dog sleeps", "le chien dort"),
    ("the small cat eats", "le petit chat mange"),
    ("a dog eats the apple", "un chien mange la pomme"),
    ("a small apple", "une petite pomme"),
)
INFLECTED = (
    ("walk", "walked", "V;PST"),
    ("walk", "walks", "V;PRS;3"),
    ("talk", "talked", "V;PST"),
    ("talk", "talks", "V;PRS;3"),
    ("bark", "barked", "V;PST"),
    ("bark", "barks", "V;PRS;3"),
)
ODD = (("é ß", "ß é"), ("한국어", "어국한"), ("😀 a", "a 😀"), ("ế b", "b ế"), ("ab", "ba"))


def reversal(count: int, seed: int) -> list[tuple[str, str]]:
    """Symbols out of a–f with blanks between them, 1 to 7 of them, and the same ones backwards."""
    draw = random.Random(seed)
    sources = [[draw.choice("abcdef") for _ in range(draw.randint(1, 7))] for _ in range(count)]
    return [(" ".join(symbols), " ".join(reversed(symbols))) for symbols in sources]


def write_pairs(path: Path, pairs: Iterable[Sequence[str]]) -> str:
    path.write_bytes("".join("\t".join(pair) + "\n" for pair in pairs).encode())
    return str(path)


class ToyRuns:
    """Run directories by name: one a rung on reversed symbols, and `bpe`, `features` and `odd`, which have learnt little."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._predictors: dict[str, Predictor] = {}

    def path(self, name: str) -> Path:
        """The run directory, trained if it is not there yet."""
        out = self.folder / name
        if not out.exists():
            make = {"bpe": self._bpe, "features": self._features, "odd": self._odd}
            config = make[name]() if name in make else self._reversal(name)
            quiet = Reporter(-1, Console(file=io.StringIO()))
            eyeline.train(eyeline.Config.from_dict(config), out, reporter=quiet)
        return out

    def predictor(self, name: str) -> Predictor:
        if name not in self._predictors:
            self._predictors[name] = eyeline.load(self.path(name))
        return self._predictors[name]

    def pairs(self, name: str, pairs: Iterable[Sequence[str]]) -> str:
        """A TSV of pairs, written once a session."""
        path = self.folder / f"{name}.tsv"
        return str(path) if path.exists() else write_pairs(path, pairs)

    def _reversal(self, rung: str) -> dict[str, Any]:
        config = self._config(rung, "reversal", reversal(300, 1), reversal(40, 2), {"kind": "whitespace-symbols"})
        config["training"] |= {"epochs": 20, "metric": "exact_match"}
        if rung == "bahdanau":  # a score is the plain log-probability all the same
            config["training"]["label_smoothing"] = 0.05
        return config

    def _bpe(self) -> dict[str, Any]:
        config = self._config("luong", "sentences", SENTENCES, SENTENCES, {"kind": "bpe", "size": 40})
        config["training"] |= {"steps": 3}
        return config

    def _features(self) -> dict[str, Any]:
        config = self._config("bahdanau", "inflected", INFLECTED, INFLECTED, {"kind": "character"})
        config["data"] |= {"columns": ["source", "target", "features"]}
        config["training"] |= {"steps": 60}
        return config

    def _odd(self) -> dict[str, Any]:
        config = self._config("bahdanau", "odd", ODD, ODD, {"kind": "character"})
        config["training"] |= {"steps": 60}
        return config

    def _config(
        self,
        rung: str,
        name: str,
        train: Iterable[Sequence[str]],
        valid: Iterable[Sequence[str]],
        tokenizer: dict[str, Any],
    ) -> dict[str, Any]:
        data = {"train": self.pairs(f"{name}.train", train), "valid": self.pairs(f"{name}.valid", valid)}
        model = {**TINY, "architecture": rung, **({"attention_size": 32} if rung == "bahdanau" else {})}
        training = {"batch_tokens": 256, "learning_rate": 0.01, "validate_every": NEVER, "checkpoint_every": NEVER}
        return {"data": data, "tokenizer": tokenizer, "model": model, "training": training}
