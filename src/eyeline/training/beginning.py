"""Where a run's first weights come from: chance, another run, word vectors; and what its journal and its card tell of that."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import safe_open

from eyeline.config import Config
from eyeline.ladder import Seq2Seq
from eyeline.runs import METADATA, Run
from eyeline.training.finetuning import FROM, base_run, inherit, symbols
from eyeline.training.preparation import Prepared
from eyeline.training.reporting import Reporter
from eyeline.training.starting import SPLIT, start_from_vectors

Event = tuple[str, dict[str, Any]]  # (split, values) for the journal, all of step 0
DIGITS = 16  # of a SHA-256, which a person can compare


def begin(run: Run, model: Seq2Seq, prepared: Prepared, reporter: Reporter) -> list[Event]:
    """Has the weights of a fresh model start from where the settings say; returns the events that tell of it.

    Raises:
        RunError: the run that they should start from is none, or is damaged.
        ConfigError: that run, or the vectors, are of another model.
        DataError: a file of vectors is at fault.
    """
    begun: list[Event] = []
    base = base_run(run.config)
    if base is not None:
        inherit(model, base, run.source, run.target)
        begun.append((FROM, _origin(base)))
        for found in symbols(run.config, base, prepared):
            unknown = found.missing and run.config.training.from_vocabulary == "keep"
            (reporter.warn if unknown else reporter.note)(f"from {base.path}: {found}")
            begun.append((FROM, asdict(found)))
    for covered in start_from_vectors(run.config, model, run.source, run.target):
        (reporter.note if covered.covered else reporter.warn)(f"{covered.side} vectors: {covered}")
        begun.append((SPLIT, asdict(covered)))
    return begun


def told_before(run: Path) -> list[Event]:
    """The events of an earlier beginning of the same run, as its metrics.jsonl holds them."""
    journal = run / "metrics.jsonl"
    if not journal.exists():
        return []
    found: list[Event] = []
    for line in journal.read_text(encoding="utf-8", errors="replace").split("\n"):
        if line.endswith("}") and any(f'"split": "{split}"' in line for split in (FROM, SPLIT)):
            event = json.loads(line)
            found.append((event["split"], {name: event[name] for name in event if name not in ("step", "split", "time_s")}))
    return found


def origin(run: Path, config: Config) -> str:
    """What the card says of the run that this one started from; empty where there is none."""
    if config.training.from_ is None:
        return ""
    told = [values for split, values in told_before(run) if split == FROM]
    at = [f" at step {values['weights_step']:,}" for values in told if values.get("weights_step") is not None]
    weights = [f", weights {values['weights_sha256']} (SHA-256)" for values in told if "weights_sha256" in values]
    shared = [
        f"; {side}: {values['known']:,} symbols known, {len(values['missing']):,} missing, {len(values['extra']):,} extra"
        for values in told
        if (side := values.get("side"))
    ]
    vocabularies = "; its vocabularies are kept" if config.training.from_vocabulary == "keep" else "; new vocabularies"
    return "".join([config.training.from_, *at, *weights, vocabularies, *shared])


def _origin(base: Run) -> dict[str, Any]:
    """Which weights they were, should the run be gone or trained further."""
    with base.weights.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    with safe_open(str(base.weights), "pt") as file:
        metadata = json.loads((file.metadata() or {}).get(METADATA, "{}"))
    return {"run": str(base.path), "weights_step": metadata.get("step"), "weights_sha256": digest[:DIGITS]}
