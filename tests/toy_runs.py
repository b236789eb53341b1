"""Trained runs of a second or two, made when first asked for and shared by a session. Knows what users see of eyeline."""

from __future__ import annotations

import io
import json
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
QUICK: dict[str, Any] = {"batch_tokens": 256, "learning_rate": 0.01, "validate_every": NEVER, "checkpoint_every": NEVER}

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


def linked_copies(count: int, seed: int) -> list[tuple[str, str, str]]:
    """Symbols out of a–f, the same again, and the links between them."""
    draw = random.Random(seed)
    lines = [[draw.choice("abcdef") for _ in range(draw.randint(1, 7))] for _ in range(count)]
    return [(" ".join(line), " ".join(line), " ".join(f"{i}-{i}" for i in range(len(line)))) for line in lines]


CALLED = (
    ("my name is {0}", "hello {0}"),
    ("{0} lives in {1}", "in {1} there is {0}"),
    ("{0} , {1} and {2}", "{2} {0}"),
)


def named(count: int, seed: int) -> list[tuple[str, str]]:
    """Sentences about made-up names, hardly any of which comes twice: what is asked for can only be copied."""
    draw = random.Random(seed)

    def name() -> str:
        return "".join(draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(3)).capitalize()

    pairs = []
    for _ in range(count):
        (source, target), names = draw.choice(CALLED), [name() for _ in range(3)]
        pairs.append((source.format(*names), target.format(*names)))
    return pairs


def to_be_sorted(count: int, seed: int, longest: int = 4) -> list[dict[str, Any]]:
    """Points, and their positions from the left to the right."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        points = [[round(draw.random(), 3), round(draw.random(), 3)] for _ in range(draw.randint(2, longest))]
        pairs.append({"source": points, "target": sorted(range(len(points)), key=points.__getitem__)})
    return pairs


def letters_to_be_sorted(count: int, seed: int) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    sources = [draw.sample("abcdefgh", draw.randint(2, 5)) for _ in range(count)]
    return [(" ".join(s), " ".join(map(str, sorted(range(len(s)), key=s.__getitem__)))) for s in sources]


def write_pairs(path: Path, pairs: Iterable[Sequence[str]]) -> str:
    path.write_bytes("".join("\t".join(pair) + "\n" for pair in pairs).encode())
    return str(path)


class ToyRuns:
    """Run directories by name: one a rung on reversed symbols; `bpe`, `features` and `odd`, which have learnt little; `points`
    and `letters`, which sort by pointing; `strangers`, which says unknown words; `luong-again`, another seed's; `names` and
    `names-transformer`, which copy; `guided`, a Transformer whose first layer's second head was drawn to gold links."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._predictors: dict[str, Predictor] = {}

    def path(self, name: str) -> Path:
        """The run directory, trained if it is not there yet."""
        out = self.folder / name
        if not out.exists():
            make = {
                "bpe": self._bpe,
                "features": self._features,
                "odd": self._odd,
                "points": self._points,
                "letters": self._letters,
                "names": self._names,
                "names-transformer": self._names_transformer,
                "guided": self._guided,
                "strangers": self._strangers,
                "luong-again": self._again,
            }
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

    def _again(self) -> dict[str, Any]:
        return {**self._reversal("luong"), "seed": 2}

    def _strangers(self) -> dict[str, Any]:
        """Names that no vocabulary holds, said again at the end: a target of unknown words."""
        pairs = [(source, f"{source.split()[0]} {source.split()[-1]}") for source, _ in named(400, 1)]
        config = self._config("luong", "strangers", pairs, pairs[:30], {"kind": "word", "min_frequency": 20})
        config["training"] |= {"steps": 80}
        return config

    def _points(self) -> dict[str, Any]:
        data = {}
        for part, pairs in (("train", to_be_sorted(500, 1)), ("valid", to_be_sorted(30, 2))):
            path = self.folder / f"points.{part}.jsonl"
            path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
            data[part] = str(path)
        return {"data": data, "model": self._pointer(), "training": {**QUICK, "steps": 60}}

    def _letters(self) -> dict[str, Any]:
        pairs = self.pairs("letters", letters_to_be_sorted(500, 1))
        return {"data": {"train": pairs}, "model": self._pointer(), "training": {**QUICK, "steps": 60}}

    def _pointer(self) -> dict[str, Any]:
        return {**TINY, "architecture": "pointer-network", "attention_size": 32, "distinct": True}

    def _names(self) -> dict[str, Any]:
        tokenizer = {"kind": "word", "min_frequency": 20}
        config = self._config("pointer-generator", "names", named(800, 1), named(30, 2), tokenizer)
        config["model"] |= {"cell": "lstm", "attention_size": 32}
        config["training"] |= {"steps": 120, "metric": "exact_match"}
        return config

    def _names_transformer(self) -> dict[str, Any]:
        config = self._names()
        config["tokenizer"] |= {"kind": "whitespace-symbols"}
        config["model"] = {
            "architecture": "pointer-generator-transformer",
            "size": 32,
            "heads": 2,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "feedforward_size": 64,
            "dropout": 0.0,
        }
        config["training"] |= {"steps": 250, "learning_rate": 0.005, "warmup_steps": 30, "schedule": "linear"}
        return config

    def _guided(self) -> dict[str, Any]:
        pairs = linked_copies(400, 1)
        config = self._config("transformer", "linked", pairs, pairs[:30], {"kind": "whitespace-symbols"})
        config["data"] |= {"columns": ["source", "target", "alignment"]}
        config["model"] = {
            "architecture": "transformer",
            "size": 16,
            "heads": 2,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "feedforward_size": 32,
            "dropout": 0.0,
            "alignment_layer": 0,
            "alignment_head": 1,
        }
        config["training"] |= {"steps": 120, "batch_tokens": 512, "warmup_steps": 10, "guided_alignment": 2.0}
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
        return {"data": data, "tokenizer": tokenizer, "model": model, "training": dict(QUICK)}
