"""What tells whether two predictions were made by the same means. Knows bytes, options and the files of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from eyeline.runs import CONFIG, SOURCE_TOKENIZER, TARGET_TOKENIZER, WEIGHTS

SIZE = 16  # bytes of a digest
PARTS = (
    CONFIG,
    WEIGHTS,
    SOURCE_TOKENIZER,
    TARGET_TOKENIZER,
    SOURCE_TOKENIZER.replace("tokenizer", "features"),
    TARGET_TOKENIZER.replace("tokenizer", "features"),
)  # of a run, that outputs depend on; a shared vocabulary and a run without features have fewer


@dataclass(frozen=True)
class Means:
    """All that the bytes of an output depend on but its input, as JSON has it. The number of threads and the kind of processor
    are not among them: by them a score may differ in its last digits."""

    files: Mapping[str, str]  # what a file is for -> the digest of its bytes
    options: Mapping[str, Any]

    @classmethod
    def of(cls, files: Mapping[str, str], options: Mapping[str, Any]) -> Self:
        return cls(files, json.loads(json.dumps(options)))

    def difference(self, before: Means) -> str:
        """How these differ from those of `before`; empty where they do not."""
        for name in sorted({*self.files, *before.files}):
            if self.files.get(name) != before.files.get(name):
                return f"{name}: the files are not those that this was begun with"
        for name in sorted({*self.options, *before.options}):
            now, then = self.options.get(name), before.options.get(name)
            if now != then:
                return f"this was begun with {name}={_shown(then)}, not {_shown(now)}"
        return ""


def files_digest(paths: Iterable[Path]) -> str:
    """One of the names and bytes of all files."""
    whole = hashlib.blake2b(digest_size=SIZE)
    for path in paths:
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=SIZE))
        whole.update(path.name.encode("utf-8", "surrogateescape") + b"\n" + content.digest())
    return whole.hexdigest()


def run_digest(run: Path) -> str:
    """One of what a run's outputs depend on: settings, weights and vocabularies."""
    return files_digest(path for name in PARTS if (path := run / name).is_file())


def _shown(value: Any) -> str:
    return "its default" if value is None else str(value)
