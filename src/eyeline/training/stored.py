"""Prepared data: written by `eyeline prepare` from corpora of any size, and taken by training in place of them.

A directory of shards (`data/store.py`), tokenizers, config.yaml with the settings that made them, report.txt, and manifest.json,
which says what is there. It appears whole or not at all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, overload

from eyeline.config import Config
from eyeline.data.coding import Coder, coder
from eyeline.data.corpus import Corpus, Noise
from eyeline.data.plan import Part
from eyeline.data.store import Kinds, Shard, ShardWriter, id_bytes, mapped_corpus
from eyeline.errors import ConfigError, DataError, RunError, require
from eyeline.files import directory_beside
from eyeline.runs import CONFIG, SOURCE_TOKENIZER, TARGET_TOKENIZER
from eyeline.text.filters import Seen
from eyeline.text.pairs import ReadReport
from eyeline.text.records import Pair
from eyeline.text.report import DataReport, SideCount, SideReport
from eyeline.text.spool import Spool
from eyeline.text.tally import Tally
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.portions import Portion, fitting, portion
from eyeline.training.reading import Name, resolved, tokenizers, training_pairs

MANIFEST, REPORT = "manifest.json", "report.txt"
VERSION = 1
SIDES: tuple[Name, Name] = ("source", "target")
OF_THE_TEXT = ("normalization", "lowercase", "source_language", "target_language", "links")  # settings of data that made the ids


class StoredPairs(Sequence[Pair]):
    """The places of pairs whose text is not kept: each stands in the directory, at its number from 1."""

    def __init__(self, directory: Path, count: int) -> None:
        self.directory, self._count = directory, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Pair: ...

    @overload
    def __getitem__(self, place: slice) -> list[Pair]: ...

    def __getitem__(self, place: int | slice) -> Pair | list[Pair]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(self._count))]
        return Pair("", "", (), None, str(self.directory), range(self._count)[place] + 1)


@dataclass(frozen=True)
class StoredPortion:
    """Training pairs that lie on the disk."""

    pairs: StoredPairs
    ids: Corpus

    def corpus(self) -> Corpus:
        return self.ids


@dataclass(frozen=True)
class Stored:
    """A directory of prepared data."""

    path: Path
    config: Config
    source: Tokenizer
    target: Tokenizer
    manifest: dict[str, Any]

    @classmethod
    def open(cls, path: str | Path) -> Stored:
        """Raises RunError for what is damaged."""
        path = Path(path)
        try:
            manifest = json.loads((path / MANIFEST).read_bytes())
            if manifest["version"] != VERSION:
                raise RunError("prepared by a later eyeline", str(path))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"damaged: {' '.join(str(error).split())}", str(path / MANIFEST), "prepare anew") from None
        config = Config.from_yaml(path / CONFIG)
        source = Tokenizer.load(path / SOURCE_TOKENIZER)
        target = source if config.tokenizer.shared else Tokenizer.load(path / TARGET_TOKENIZER)
        return cls(path, config, source, target, manifest)

    @property
    def counts(self) -> list[int]:
        """How many pairs each corpus has."""
        return [corpus["pairs"] for corpus in self.manifest["corpora"]]

    def settings(self, config: Config) -> Config:
        """A run's settings with those that made the ids; the run may set them, but not otherwise.

        Raises:
            ConfigError: a setting is another one, or the ids are not what the architecture wants.
        """
        values = config.to_dict()
        mine = self.config.to_dict()
        names = {"data": OF_THE_TEXT, "tokenizer": tuple(mine["tokenizer"])}
        for section, parts in names.items():
            given = getattr(config, section)
            for name in parts:
                if name in given.model_fields_set and getattr(given, name) != getattr(getattr(self.config, section), name):
                    what = f"the prepared data was made with {section}.{name}={mine[section][name]}"
                    raise ConfigError(what, f"{section}.{name}={values[section][name]}", "leave it out, or prepare anew")
                values[section][name] = mine[section][name]
        if config.model.outputs != self.config.model.outputs:
            what = f"the prepared data has outputs that are {self.config.model.outputs}, for {self.config.model.architecture}"
            raise ConfigError(what, f"model.architecture={config.model.architecture}", "prepare with this architecture")
        if self.config.numbers and config.numbers in (0, self.config.numbers):
            values["model"]["element_size"] = self.config.numbers
        if config.data.corpora:
            self._check_corpora(config)
        else:
            values["data"]["corpora"] = []
        settled = Config.from_dict(values)
        longest, (most, bound) = self.manifest["longest"], settled.most_tokens
        if longest > most:
            raise ConfigError(
                f"a prepared pair has {longest:,} tokens", bound, "raise it, or prepare with a lower data.max_length"
            )
        return settled

    def weighed(self, config: Config) -> Config:
        """Settings whose corpora are those of the store, for the shares of a mixture; weights as the run sets them."""
        corpora = config.data.corpora or self.config.data.all_corpora
        return config.model_copy(update={"data": config.data.model_copy(update={"train": [], "corpora": corpora})})

    def _check_corpora(self, config: Config) -> None:
        mine = [corpus.model_copy(update={"weight": 1.0}) for corpus in self.config.data.all_corpora]
        if [corpus.model_copy(update={"weight": 1.0}) for corpus in config.data.corpora] != mine:
            raise ConfigError("other corpora than were prepared", "data.corpora", "only weights may differ; or leave it out")

    def portion(self, parts: tuple[Part, ...], noise: Noise | None) -> StoredPortion:
        """All training pairs, mixed."""
        shards = [Shard(**shard) for corpus in self.manifest["corpora"] for shard in corpus["shards"]]
        ids = mapped_corpus(self.path, shards, self.manifest["vocabulary"])
        return StoredPortion(StoredPairs(self.path, len(ids)), replace(ids, parts=parts, noise=noise))

    def count(self, side: Name) -> SideCount:
        lines, tokens, longest, seen = (self.manifest["sides"][side][name] for name in ("lines", "tokens", "longest", "seen"))
        return SideCount(lines, tokens, longest, Counter({int(number): count for number, count in seen}))

    def left_out(self) -> Tally:
        tally = Tally()
        for reason, (count, places) in self.manifest["left_out"].items():
            tally.counts[reason] = count
            tally.places[reason] = [(path, line) for path, line in places]
        return tally


def is_stored(paths: Sequence[str]) -> bool:
    """Whether training pairs are named as a directory of prepared data."""
    return len(paths) == 1 and (Path(paths[0]) / MANIFEST).is_file()


def store(config: Config, out: str | Path) -> DataReport:
    """Reads the training pairs of `config` and writes the directory `out`, in memory that does not grow with their number.

    Raises:
        UserError: something in the settings, the pairs or the directory is to be mended.
    """
    require("pyarrow", "exchange")
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError("there is something here already", str(out), "name another --out")
    with directory_beside(out) as private:
        return _Storing(config, private).all()


class _Storing:
    """One preparation. Pairs are read once and put aside, for tokenizers to be learnt from and ids to be made of."""

    def __init__(self, config: Config, directory: Path) -> None:
        self.config, self.directory = config, directory
        self.read, self.left_out = ReadReport(), Tally()
        self.counts = SideCount(), SideCount()

    def all(self) -> DataReport:
        corpora, seen = self.config.data.all_corpora, Seen()
        spools = []
        for number, corpus in enumerate(corpora):
            pairs = training_pairs(self.config, corpus, self.read, seen)
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
                raise DataError(f"no pair is left: each has more than {config.most_tokens[1]} tokens", " ".join(corpus.pairs))
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
        manifest = self._manifest(made, code, report.skipped)
        (self.directory / MANIFEST).write_bytes(f"{json.dumps(manifest, ensure_ascii=False)}\n".encode())
        return report

    def _shards(self, spool: Spool, code: Coder, kinds: Kinds, name: str) -> list[Shard]:
        writer = ShardWriter(self.directory, name, kinds)
        for pairs in spool.chunks():
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


class _All:
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
