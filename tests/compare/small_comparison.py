"""A comparison of seconds: two small rungs on a handful of pairs. Knows what users see of it, and reports made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyeline.data.generated import write_tsv
from eyeline.data.generated.reversal import reversal

WIDTHS = {"embedding_size": 8, "encoder_size": 16, "decoder_size": 16, "dropout": 0}
HOSTILE = "<script>alert('x')</script>&\"' \u202e<b>"


def pairs(folder: Path, symbols: int = 5) -> dict[str, Any]:
    """Files of pairs to be said backwards, with their links; tests are longer than training. Their `data` section."""
    for part, count, longest in (("train", 300, 6), ("valid", 20, 6), ("test", 40, 9)):
        write_tsv(reversal(count, len(part), longest, symbols=symbols), folder / f"{part}.tsv")
    files = {part: str(folder / f"{part}.tsv") for part in ("train", "valid", "test")}
    return {**files, "columns": ["source", "target", "alignment"]}


def settings(folder: Path, steps: int = 12) -> dict[str, Any]:
    """Two rungs, two seeds."""
    return {
        "data": pairs(folder),
        "tokenizer": {"kind": "whitespace-symbols"},
        "training": {
            "batch_tokens": 128,
            "learning_rate": 0.01,
            "validate_every": 6,
            "checkpoint_every": 3,
            "metric": "exact_match",
        },
        "search": {"beam_size": 1},
        "rungs": [
            {"name": "fixed vector", "architecture": "seq2seq", **WIDTHS},
            {"architecture": "luong", **WIDTHS},
        ],
        "budget": {"steps": steps},
        "seeds": [1, 2],
    }


def rung(name: str, score: float, *, half: float = 2.0, fall: tuple[float, float, float] = (0.0, -3.0, 3.0)) -> dict[str, Any]:
    """A rung of a report made by hand."""
    low, high = score - half, score + half
    bucket = {"n": 50, "metric": "exact_match", "low": low, "high": high, "score": score}
    matrix = {"source_tokens": [HOSTILE, "b"], "target_tokens": ["안", "END"], "weights": [[0.9, 0.1], [0.2, 0.8]]}
    return {
        "name": name,
        "architecture": "luong",
        "parameters": 1000,
        "train_tokens_per_s": 10.0,
        "peak_memory_mb": 20.0,
        "train_time_s": 30.0,
        "predict_sentences_per_s": 40.0,
        "speed_threads": 1,
        "metrics": {
            "exact_match": {"score": score, "low": low, "high": high, "signature": "s", "seeds": {"1": score, "2": score}}
        },
        "by_length": [{**bucket, "min": 1, "max": 5, "trained": True}, {**bucket, "min": 6, "max": 9, "trained": False}],
        "seeds": [1, 2],
        "steps": 10,
        "train_target_tokens": 100,
        "loss": 0.5,
        "fall": {"from": 5, "to": 9, "delta": fall[0], "low": fall[1], "high": fall[2]},
        "alignment": {
            "aer": 10.0,
            "low": 9.0,
            "high": 11.0,
            "precision": 90.0,
            "recall": 90.0,
            "f1": 90.0,
            "unit": "tokens",
            "seeds": {"1": 10.0},
        },
        "repetition_rate": 0.0,
        "unfinished_rate": 0.0,
        "length_ratio": 1.0,
        "curves": [
            {
                "seed": 1,
                "metric": "exact_match",
                "points": [{"step": s, "target_tokens": 10 * s, "time_s": s / 10, "score": score * s / 10} for s in (5, 10)],
                "still_better": False,
            }
        ],
        "model": {},
        "learning_rate": 0.001,
        "picture": matrix,
    }


def difference(a: str, b: str, delta: float, p: float, seeds: tuple[float, ...] = ()) -> dict[str, Any]:
    """Of two rungs by the metric that ranks; the interval excludes zero where p is below 5 %."""
    half = abs(delta) / 2 if p < 0.05 else abs(delta) + 1
    each = dict(enumerate(map(float, seeds or (delta, delta)), 1))
    between = {"low": delta - half, "high": delta + half, "p": p, "p_holm": p, "seeds": {str(k): v for k, v in each.items()}}
    return {"a": a, "b": b, "metric": "exact_match", "delta": delta, **between}


def report(rungs: list[dict[str, Any]], differences: list[dict[str, Any]]) -> dict[str, Any]:
    """A report made by hand, with text in it that would do harm were it not escaped."""
    pictures = {one["name"]: one.pop("picture", None) for one in rungs}
    return {
        "version": 1,
        "eyeline": "0",
        "budget": {"steps": 10},
        "seeds": [1, 2],
        "metric": "exact_match",
        "lower_is_better": False,
        "data": {
            "train": [HOSTILE],
            "valid": ["v"],
            "test": ["t"],
            "pairs": {"train": 9, "valid": 9, "test": 50},
            "left_out_by_length": {"train": 0, "valid": 0},
            "train_source_tokens": {"median": 3.0, "p95": 5.0, "max": 5.0},
            "test_source_tokens": {"median": 3.0, "max": 9},
            "train_max_length": 5,
            "vocabulary": {"source": 9, "target": 9},
            "tokenizer": {"source": "character", "target": "character"},
            "unknown_source_rate": 0.0,
        },
        "search": {"beam_size": 1, "length_penalty": 1.0},
        "machine": {"device": "cpu", "threads": 1, "jobs": 1, "processor": "p", "torch": "2"},
        "rungs": rungs,
        "failed": [{"rung": HOSTILE, "seed": 2, "error": HOSTILE}],
        "differences": differences,
        "examples": [{"source": HOSTILE, "reference": "مرحبا", "outputs": dict.fromkeys(pictures, HOSTILE)}],
        "pictures": [{"source": HOSTILE, "reference": "안", "rungs": pictures}],
        "conclusion": {"language": "en", "sentences": [HOSTILE]},
    }
