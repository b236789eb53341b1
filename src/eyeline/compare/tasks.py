"""Comparisons on generated pairs, by name: training to one source length, tests beyond it. Knows generators and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyeline.config_models import MODEL_SETTINGS
from eyeline.config_rungs import ladder
from eyeline.data.generated import COLUMNS, GeneratedPair, write_tsv
from eyeline.data.generated.long_numerals import long_numerals
from eyeline.data.generated.reversal import reversal

Parts = dict[str, Iterable[GeneratedPair]]
SEEDS = {"test": 1, "valid": 2, "train": 3}  # in the order of drawing: what is held out is drawn first
LANGUAGES = ("en", "de", "es")  # long names of numbers, one script, and in German ones before tens
PAIRS = 100_000  # of training: so many that few come twice within the budget
VALID, TEST_OF_A_LENGTH = 300, 100
SIZES = {  # half of the ladder's: enough for these tasks, and a fixed vector of 128 that long sources do not fit into
    "embedding_size": 64,
    "encoder_size": 64,
    "decoder_size": 128,
    "attention_size": 64,
    "size": 64,
    "feedforward_size": 256,
    "dropout": 0.1,  # pairs that hardly come twice cannot be learnt by heart
}


@dataclass(frozen=True)
class Task:
    """A generated comparison."""

    make: Callable[[int, Sequence[int]], Parts]  # the longest source of training, and the test lengths, to the pairs
    train_max_length: int
    test_lengths: tuple[int, ...]
    settings: dict[str, Any]


def _reversal(longest: int, test_lengths: Sequence[int]) -> Parts:
    return {
        "test": _in_buckets(
            test_lengths, lambda count, a, b, number: reversal(count, SEEDS["test"] + 100 * number, b, min_length=a)
        ),
        "valid": reversal(VALID, SEEDS["valid"], longest),
        "train": reversal(PAIRS, SEEDS["train"], longest),
    }


def _numerals(longest: int, test_lengths: Sequence[int]) -> Parts:
    """No number of the test or of the validation is one of training, in any language."""

    def bucket(count: int, a: int, b: int, number: int) -> list[GeneratedPair]:
        return long_numerals(count, SEEDS["test"] + 100 * number, languages=LANGUAGES, shortest=a, longest=b)

    test = _in_buckets(test_lengths, bucket)
    taken = {int(pair.target) for pair in test}
    valid = long_numerals(VALID, SEEDS["valid"], languages=LANGUAGES, longest=longest, taken=taken)
    taken |= {int(pair.target) for pair in valid}
    return {
        "test": test,
        "valid": valid,
        "train": long_numerals(PAIRS, SEEDS["train"], languages=LANGUAGES, longest=longest, taken=taken),
    }


def _in_buckets(lengths: Sequence[int], make: Callable[[int, int, int, int], Iterable[GeneratedPair]]) -> list[GeneratedPair]:
    """As many test pairs of each bucket of source lengths."""
    pairs = list[GeneratedPair]()
    for number, (below, longest) in enumerate(zip([0, *lengths], lengths, strict=False)):
        pairs += make(TEST_OF_A_LENGTH, below + 1, longest, number)
    return pairs


_TRAINING = {
    "batch_tokens": 1024,
    "learning_rate": 2e-3,
    "schedule": "linear",
    "warmup_steps": 200,
    "validate_every": 250,
    "checkpoint_every": 250,
    "metric": "exact_match",
}

TASKS = {
    "reversal": Task(
        _reversal,
        25,
        (5, 10, 15, 20, 25, 30, 40, 50, 60),
        {
            "data": {"columns": list(COLUMNS)},
            "tokenizer": {"kind": "whitespace-symbols"},
            "training": _TRAINING,
            "search": {"beam_size": 1},
            "budget": {"target_tokens": 3_000_000},
            "seeds": [1, 2],
        },
    ),
    "numerals": Task(
        _numerals,
        60,
        (20, 40, 60, 80, 100, 120),
        {
            "data": {"columns": list(COLUMNS), "links": "characters"},
            "tokenizer": {"kind": "character"},
            "training": _TRAINING,
            "search": {"beam_size": 1},
            "budget": {"target_tokens": 1_000_000},
            "seeds": [1, 2],
        },
    ),
}


def task_settings(name: str, out: Path, train_max_length: int | None, test_lengths: Sequence[int] | None) -> dict[str, Any]:
    """The settings of a generated comparison, whose pairs are written to `out`/data unless they are there.

    Raises:
        ConfigError: lengths that cannot be.
        MissingExtra: numerals need unicode-rbnf.
    """
    task = TASKS[name]
    longest = train_max_length or task.train_max_length
    lengths = list(test_lengths or task.test_lengths)
    files = {part: out / "data" / f"{name}.{part}.tsv" for part in SEEDS}
    if not all(path.exists() for path in files.values()):
        for part, pairs in task.make(longest, lengths).items():
            write_tsv(pairs, files[part])
    data = {part: [str(path)] for part, path in files.items()}
    return {
        **task.settings,
        "data": {**task.settings["data"], **data},
        "rungs": [_sized(rung) for rung in ladder(points=False)],
        "train_max_length": longest,
        "test_lengths": lengths,
    }


def _sized(rung: dict[str, Any]) -> dict[str, Any]:
    """A rung of the ladder in the sizes of these tasks; an encoder that reads one way is as wide as two that read both."""
    known = MODEL_SETTINGS[rung["architecture"]].model_fields
    sizes = {name: size for name, size in SIZES.items() if name in known}
    one_way = {} if known.get("bidirectional") is None or known["bidirectional"].default else {"encoder_size": 128}
    return {**rung, **sizes, **one_way}
