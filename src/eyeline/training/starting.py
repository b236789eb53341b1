"""Embeddings that start from word vectors and not from chance. Knows a model's tables, vocabularies, and what a run was told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from eyeline.config import Config
from eyeline.contracts import RESERVED
from eyeline.errors import ConfigError
from eyeline.exchange.word_vectors import read_vectors, vectors_width
from eyeline.text.normalization import normalize
from eyeline.text.tokenizers import Tokenizer

Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = ("source", "target")
SPLIT = "vectors"  # of the journal's events that say what was covered


@dataclass(frozen=True)
class Covered:
    """How much of a vocabulary starts from a file."""

    side: Side
    file: str
    entries: int  # of the vocabulary, without the reserved ids and features
    covered: int

    def __str__(self) -> str:
        share = 100 * self.covered / max(1, self.entries)
        return f"{self.covered:,} of {self.entries:,} entries ({share:.1f} %) start from {self.file}"


def start_from_vectors(config: Config, model: Any, source: Tokenizer, target: Tokenizer) -> list[Covered]:
    """Copies word vectors, as they are given, into the rows of the embeddings that `training.source_vectors` and `target_vectors`
    ask for. Other rows stay as they were drawn, and so do those of the reserved ids and of features, which no text can be.

    An entry is looked up as `Tokenizer.token` shows it, and where the file has no such token, in NFC. Where both sides share one
    table, the target's file gives the rows that the source's does not.

    Args:
        model: has `source_table` and `target_table`.

    Raises:
        ConfigError: a side without an embedding, or vectors of another width.
        DataError: a file is at fault.
    """
    tables: dict[Side, nn.Embedding | None] = {"source": model.source_table, "target": model.target_table}
    paths: dict[Side, str | None] = {
        "source": config.training.source_vectors,
        "target": config.training.target_vectors,
    }
    shared = tables["source"] is tables["target"]
    if shared and paths["source"] == paths["target"]:
        paths["target"] = None
    given = [(side, path) for side in SIDES if (path := paths[side]) is not None]
    checked = [(side, path, _checked(config, side, path, tables[side])) for side, path in given]
    done: list[Covered] = []
    taken: frozenset[int] = frozenset()  # rows of a shared table that start from the source's file
    for side, path, table in checked:
        tokenizer = source if side == "source" else target
        filled = _fill(table, tokenizer, path, taken)
        taken = filled if shared else frozenset()
        done.append(Covered(side, path, len(_entries(tokenizer)), len(filled)))
    return done


def covered_before(run: Path) -> list[Covered]:
    """What a run that goes on began from, as its metrics.jsonl holds it."""
    journal = run / "metrics.jsonl"
    if not journal.exists():
        return []
    lines = journal.read_text(encoding="utf-8", errors="replace").split("\n")
    events = [json.loads(line) for line in lines if f'"split": "{SPLIT}"' in line and line.endswith("}")]
    return [Covered(event["side"], event["file"], event["entries"], event["covered"]) for event in events]


def _entries(tokenizer: Tokenizer) -> dict[int, str]:
    """The ids that text can be, and how each is shown."""
    return {number: tokenizer.token(number) for number in range(len(RESERVED), tokenizer.size) if tokenizer.piece(number)}


def _checked(config: Config, side: Side, path: str, table: nn.Embedding | None) -> nn.Embedding:
    """The table itself, when there is one and the file's vectors fit it."""
    where, architecture = f"training.{side}_vectors={path}", config.model.architecture
    if table is None:
        raise ConfigError(f"{architecture} has no embedding of {side} symbols here", where, "leave it out")
    width = vectors_width(path)
    if width != table.embedding_dim:
        setting = "embedding_size" if "embedding_size" in type(config.model).model_fields else "size"
        what = f"vectors of {width} numbers cannot start an embedding of {table.embedding_dim}"
        raise ConfigError(what, where, f"model.{setting}={width} would fit")
    return table


def _fill(table: nn.Embedding, tokenizer: Tokenizer, path: str, taken: frozenset[int]) -> frozenset[int]:
    """Copies rows, but for those that are `taken`, and returns which."""
    entries = _entries(tokenizer)
    composed = {number: normalize(token, "nfc") for number, token in entries.items()}
    found = read_vectors(path, {*entries.values(), *composed.values()})
    rows = {number: found.get(token, found.get(composed[number])) for number, token in entries.items() if number not in taken}
    with torch.no_grad():
        for number, vector in rows.items():
            if vector is not None:
                table.weight[number] = torch.from_numpy(vector)
    return frozenset(number for number, vector in rows.items() if vector is not None)
