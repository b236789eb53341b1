"""`eyeline prepare`: corpora of any size to a directory of ids, in memory that does not grow with them. Knows text and shards.

What it writes is told in `stored.py`, which reads it. It appears whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from eyeline.config import Config
from eyeline.data.coding import Coder, coder
from eyeline.data.store import Kinds, Shard, ShardWriter, id_bytes
from eyeline.errors import DataError, RunError, require
from eyeline.files import directory_beside, remove_leftovers
from eyeline.runs import CONFIG, SOURCE_TOKENIZER, TARGET_TOKENIZER
from eyeline.text.filters import Seen
from eyeline.text.pairs import ReadReport
from eyeline.text.records import Pair
from eyeline.text.report import DataReport, SideCount, SideReport
from eyeline.text.spool import CHUNK, Spool
from eyeline.text.tally import Tally
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.portions import Portion, fitting, portion
from eyeline.training.reading import Name, resolved, tokenizers, training_pairs
from eyeline.training.stored import MANIFEST, VERSION, fingerprint

REPORT = "report.txt"
SIDES: tuple[Name, Name] = ("source", "target")
Watch = Callable[[Iterator[Pair], str, int | None], Iterator[Pair]]  # pairs as they come, what for, and how many there are


def _unwatched(pairs: Iterator[Pair], work: str, count: int | None) -> Iterator[Pair]:
    return pairs


def store(config: Config, out: str | Path, watch: Watch = _unwatched) -> DataReport:
    """Reads the training pairs of `config` and writes the directory `out`.

    Memory does not grow with their number, but for eight bytes a pair where duplicates are dropped; the disk holds their text
    for a while.

    Args:
        watch: is given pairs while they are read, and again while they become ids, and hands them on.

    Raises:
        UserError: something in the settings, the pairs or the directory is to be mended; then nothing is left of it.
    """
    require("pyarrow", "exchange")
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError("there is something here already", str(out), "name another --out")
    remove_leftovers(out.resolve().parent, out.resolve().name)
    with directory_beside(out) as private:
        return _Storing(config, private, watch).all()


class _Storing:
    """One preparation. Pairs are read once and put aside, for tokenizers to be learnt from and ids to be made of."""

    def __init__(self, config: Config, directory: Path, watch: Watch) -> None:
        self.config, self.directory, self.watch = config, directory, watch
        self.read, self.left_out = ReadReport(), Tally()
        self.counts = SideCount(), SideCount()

    def all(self) -> DataReport:
        corpora, seen = self.config.data.all_corpora, Seen()
        spools = []
        for number, corpus in enumerate(corpora):
            pairs = self.watch(training_pairs(self.config, corpus, self.read, seen), "pairs read", None)
            spools.append(Spool(self.directory / f"pairs-{number}", pairs))
            if not spools[-1].count:
                raise DataError("no pair is left: in each of them a side is blank or was filtered out", " ".join(corpus.pairs))
        self.config = config = resolved(self.config, spools[0])
        source, target = tokenizers(config, _All(spools), sum(spool.count for spool in spools))
        code = coder(config, source, target)
        kinds = _kinds(config, source, target)
        made = [self._shards(spool, code, kinds, f"{number:03d}") for number, spool in enumerate(spools)]
        for corpus, shards in zip(corpora, made, strict=True):
            if not shards:
                what = f"no pair is left: each was skipped, or has more than {config.most_tokens[1]} tokens"
                raise DataError(what, " ".join(corpus.pairs))
        for spool in spools:
            spool.path.unlink()
        source.save(self.directory / SOURCE_TOKENIZER)
        if not config.tokenizer.shared:
            target.save(self.directory / TARGET_TOKENIZER)
        (self.directory / CONFIG).write_bytes(config.to_yaml().encode())
        sides = [
            SideReport(name, side, config.data.form(name), count, None, code.instead.get(name, ""))
            for name, side, count in zip(SIDES, (source, target), self.counts, strict=True)
        ]
        report = DataReport.of(sides, [self.read], [self.left_out])
        (self.directory / REPORT).write_bytes(f"{report.render()}\n".encode())
        manifest = {**self._manifest(made, code, report.skipped), "tokenizers": [fingerprint(source), fingerprint(target)]}
        (self.directory / MANIFEST).write_bytes(f"{json.dumps(manifest, ensure_ascii=False)}\n".encode())
        return report

    def _shards(self, spool: Spool, code: Coder, kinds: Kinds, name: str) -> list[Shard]:
        writer = ShardWriter(self.directory, name, kinds)
        coming = self.watch(iter(spool), "pairs as ids", spool.count)
        while pairs := list(islice(coming, CHUNK)):
            made = portion(self.config, code, pairs, self.left_out, links=kinds.links)
            self._add(fitting(self.config, made, self.left_out), writer)
        writer.flush()
        return writer.shards

    def _add(self, made: Portion, writer: ShardWriter) -> None:
        for count, side in zip(self.counts, (made.sources, made.targets), strict=True):
            count.extend(side)
        nothing = [None] * len(made.pairs)
        columns = made.copies or nothing, made.values or nothing, made.links or [[] for _ in nothing]
        for source, target, copies, values, links in zip(made.sources, made.targets, *columns, strict=True):
            writer.add(source, target, copies, values, links)

    def _manifest(self, made: Sequence[Sequence[Shard]], code: Coder, skipped: Tally) -> dict[str, Any]:
        corpora = [
            {"pairs": sum(shard.pairs for shard in shards), "shards": [asdict(shard) for shard in shards]} for shards in made
        ]
        return {
            "version": VERSION,
            "corpora": corpora,
            "vocabulary": code.own_from,
            "longest": max(count.longest for count in self.counts),
            "left_out": {reason: [skipped.counts[reason], places] for reason, places in skipped.places.items()},
            "sides": {
                name: {"lines": count.lines, "tokens": count.tokens, "longest": count.longest, "seen": sorted(count.seen.items())}
                for name, count in zip(SIDES, self.counts, strict=True)
            },
        }


class _All(Iterable[Pair]):
    """All spools as one, to be gone through as often as wanted."""

    def __init__(self, spools: Sequence[Spool]) -> None:
        self.spools = spools

    def __iter__(self) -> Iterator[Pair]:
        for spool in self.spools:
            yield from spool


def _kinds(config: Config, source: Tokenizer, target: Tokenizer) -> Kinds:
    copies = config.model.outputs == "copies"
    own = config.most_tokens[0] if copies or config.points else 0  # ids beyond the vocabulary: words, or positions, of the source
    links = config.training.guided_alignment > 0
    return Kinds(id_bytes(source.size), id_bytes(target.size + own), copies, config.numbers, links)
