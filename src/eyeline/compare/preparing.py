"""What is the same for all members: files of pairs, tokenizers, and whether a folder's comparison is the one asked for.

Knows settings, pairs and files; trains tokenizers, and no model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eyeline.compare.plan import DATA, TOKENIZERS
from eyeline.config_compare import Comparison
from eyeline.config_yaml import read_yaml
from eyeline.errors import ConfigError, DataError, RunError
from eyeline.files import write_json, write_text
from eyeline.text import vectors
from eyeline.text.lines import Line, read_lines
from eyeline.text.pairs import resolve
from eyeline.text.records import Pair
from eyeline.training.preparation import prepare
from eyeline.training.reporting import Reporter

SETTINGS, COMMON = "comparison.yaml", "common.json"


@dataclass(frozen=True)
class Common:
    """What the preparation found, as it stands in common.json."""

    numbers: int  # in each element of a real-valued source
    pairs: dict[str, int]  # of train and valid, as they are trained on
    left_out: dict[str, int]  # of train and valid, because of their length
    source_tokens: dict[str, float]  # of the training pairs: median, p95, max
    vocabulary: dict[str, int]  # entries of source and target
    kind: dict[str, str]  # of the tokenizers
    data: dict[str, Any]  # what of the data section is now another: files of shorter pairs
    files: dict[str, str]  # checksums of the files of pairs


def prepared(comparison: Comparison, out: Path, reporter: Reporter) -> Common:
    """Prepares `out`, or takes what stands there when it is of the same comparison.

    Raises:
        RunError: another comparison stands there.
        ConfigError, DataError: settings or pairs that cannot be.
    """
    files = checksums(comparison)
    if (out / COMMON).exists():
        check_same(comparison, out)
        found = Common(**json.loads((out / COMMON).read_text(encoding="utf-8")))
        for path, checksum in files.items():
            if found.files.get(path, checksum) != checksum:
                raise RunError("the pairs are not those that this comparison was begun with", path, "name another --out")
        write_text(out / SETTINGS, comparison.to_yaml())  # more rungs or seeds
        return found
    if any(path.name not in (DATA, TOKENIZERS) for path in out.iterdir()):
        raise RunError("something else stands here, and no comparison", str(out), "name another --out")
    return _begun(comparison, out, files, reporter)


def _begun(comparison: Comparison, out: Path, files: dict[str, str], reporter: Reporter) -> Common:
    """Reads the pairs, trains the tokenizers, and leaves out what is too long."""
    ready = prepare(comparison.config(comparison.chosen()[0], comparison.seeds[0]), None)
    reporter.note(ready.report.render())
    for side, tokenizer in (("source", ready.source), ("target", ready.target)):
        tokenizer.save(out / TOKENIZERS / f"{side}.json")
    assert ready.valid is not None, "checked() requires validation pairs"
    parts = {"train": ready.train, "valid": ready.valid}
    lengths = {part: portion.corpus().source_lengths for part, portion in parts.items()}
    data, left_out, most = _absolute(comparison), dict.fromkeys(parts, 0), comparison.train_max_length
    if most is not None:
        for part, portion in parts.items():
            short = [pair for pair, length in zip(portion.pairs, lengths[part].tolist(), strict=True) if length <= most]
            if not short:
                shortest = f"the shortest has {lengths[part].min()} tokens"
                raise ConfigError(f"no pair of data.{part} is so short", f"train_max_length={most}", shortest)
            left_out[part] = len(lengths[part]) - len(short)
            lengths[part] = lengths[part][lengths[part] <= most]
            data[part] = [str((out / DATA / f"{part}.jsonl").resolve())]
            _write(short, Path(data[part][0]), ready.config.numbers > 0)
            reporter.note(f"{part}: {left_out[part]:,} pairs of more than {most} source tokens are left out")
    spread = lengths["train"]
    common = Common(
        ready.config.numbers,
        {part: len(found) for part, found in lengths.items()},
        left_out,
        {"median": float(np.median(spread)), "p95": float(np.quantile(spread, 0.95)), "max": float(spread.max())},
        {"source": ready.source.size, "target": ready.target.size},
        {"source": ready.source.kind, "target": ready.target.kind, **ready.coder.instead},
        data,
        files,
    )
    write_text(out / SETTINGS, comparison.to_yaml())
    write_json(out / COMMON, asdict(common))  # last: a folder that has it has the rest
    return common


def check_same(comparison: Comparison, out: Path) -> None:
    """More rungs and more seeds may come to a comparison; all else stays, or members could not be compared.

    Raises:
        RunError: with the first setting that differs.
    """
    stored = Comparison.from_dict(read_yaml(out / SETTINGS), str(out / SETTINGS))
    before, now = _plain(stored), _plain(comparison)
    for name in before.keys() | now.keys():
        if before.get(name) != now.get(name):
            where = f"{name}={json.dumps(now.get(name), ensure_ascii=False)[:100]}"
            raise RunError(f"another comparison stands in {out}", where, "name another --out, or leave its settings as they are")
    theirs = {rung.name: rung for rung in stored.chosen()}
    for rung in comparison.chosen():
        if theirs.get(rung.name, rung) != rung:
            raise RunError(f"another rung of this name stands in {out}", f"rungs: {rung.name}", "give it another name")


def _plain(comparison: Comparison) -> dict[str, Any]:
    """What must stay, flat."""
    flat: dict[str, Any] = {}
    for section, value in comparison.model_dump(mode="json", by_alias=True, exclude={"rungs", "seeds"}).items():
        if isinstance(value, dict):
            flat |= {f"{section}.{name}": inner for name, inner in value.items()}
        else:
            flat[section] = value
    return flat


def _absolute(comparison: Comparison) -> dict[str, Any]:
    """Paths of pairs that mean the same in every folder."""
    return {part: [str(Path(path).absolute()) for path in getattr(comparison.data, part)] for part in ("train", "valid", "test")}


def checksums(comparison: Comparison) -> dict[str, str]:
    """Of every file of pairs; saved data sets, which are folders, have none.

    Raises:
        DataError: a file is absent, which would else be told when hours of training are over.
    """
    data = comparison.data
    found = {}
    for paths in (data.train, data.valid, data.test, *(corpus.pairs for corpus in data.corpora)):
        for files in resolve(paths, data.source_language, data.target_language) if paths else ():
            for path in map(Path, files.paths):
                if not path.exists():
                    raise DataError("no such file", path)
                if path.is_file():
                    with path.open("rb") as stream:
                        found[str(path.absolute())] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def _write(pairs: Sequence[Pair], path: Path, numbers: bool) -> None:
    """Pairs as JSON lines, which hold every text, features and links too."""
    lines = []
    for pair in pairs:
        record: dict[str, Any] = {"source": vectors.elements(pair.source) if numbers else pair.source, "target": pair.target}
        if pair.features:
            record["features"] = list(pair.features)
        if pair.alignment is not None:
            record["alignment"] = pair.alignment
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    write_text(path, "".join(lines))


def points(comparison: Comparison) -> bool:
    """Whether the task's outputs are positions: the first training pair has numbers for its source, or positions for its target.

    Raises:
        DataError: there are no pairs.
    """
    if not comparison.data.train:
        return False
    path = resolve(comparison.data.train, comparison.data.source_language, comparison.data.target_language)[0].paths[0]
    if not path.lower().removesuffix(".gz").endswith(".jsonl"):
        return False
    first = next(iter(read_lines(path)), None)
    if not isinstance(first, Line):
        raise DataError("the first line is no pair", path, 1)
    try:
        record = json.loads(first.text)
    except ValueError:
        return False
    return isinstance(record, dict) and any(isinstance(record.get(side), list) for side in ("source", "src", "target", "tgt"))
