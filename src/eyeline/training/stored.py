"""Prepared data in the place of training pairs: what a directory that `storing.py` wrote holds, and which runs it can serve.

It has shards (`data/store.py`), tokenizers, config.yaml with the settings that made them, report.txt, and manifest.json, which
says what is there.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from eyeline.config import Config, DataSettings
from eyeline.data.corpus import Corpus, Noise
from eyeline.data.plan import Part
from eyeline.data.store import Shard, mapped_corpus
from eyeline.errors import ConfigError, RunError
from eyeline.runs import CONFIG, SOURCE_TOKENIZER, TARGET_TOKENIZER
from eyeline.text.records import Pair
from eyeline.text.report import SideCount
from eyeline.text.tally import Tally
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.reading import Name

MANIFEST = "manifest.json"
VERSION = 1
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
            version, vocabularies = manifest["version"], manifest["tokenizers"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"damaged: {' '.join(str(error).split())}", str(path / MANIFEST), "prepare anew") from None
        if version != VERSION:
            raise RunError("prepared by a later eyeline", str(path))
        config = Config.from_yaml(path / CONFIG)
        source = Tokenizer.load(path / SOURCE_TOKENIZER)
        target = source if config.tokenizer.shared else Tokenizer.load(path / TARGET_TOKENIZER)
        if vocabularies != [fingerprint(source), fingerprint(target)]:
            raise RunError(
                "the vocabularies are not those that the ids were made with", str(path), "bring them back, or prepare anew"
            )
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
        values["data"]["filter"] = self._filter(config)
        if config.model.outputs != self.config.model.outputs:
            what = f"the prepared data has outputs that are {self.config.model.outputs}, for {self.config.model.architecture}"
            raise ConfigError(what, f"model.architecture={config.model.architecture}", "prepare with this architecture")
        if self.config.numbers and config.numbers in (0, self.config.numbers):
            values["model"]["element_size"] = self.config.numbers
        if config.data.corpora:
            self._check_corpora(config)
        settled = Config.from_dict(values)
        longest, (most, bound) = self.manifest["longest"], settled.most_tokens
        if longest > most:
            raise ConfigError(
                f"a prepared pair has {longest:,} tokens", bound, "raise it, or prepare with a lower data.max_length"
            )
        return settled

    def _filter(self, config: Config) -> dict[str, Any]:
        """What was filtered; a run may ask for nothing else."""
        mine = self.config.data.filter
        for name, asked in config.data.filter:
            if asked != type(mine).model_fields[name].get_default() and asked != getattr(mine, name):
                what = f"the prepared data was made with data.filter.{name}={getattr(mine, name)}"
                raise ConfigError(what, f"data.filter.{name}={asked}", "leave it out, or prepare anew")
        return mine.model_dump(mode="json")

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


def is_stored(data: DataSettings) -> bool:
    """Whether training pairs are named as a directory of prepared data.

    Raises:
        ConfigError: it is named among others.
    """
    prepared = [path for corpus in data.all_corpora for path in corpus.pairs if (Path(path) / MANIFEST).is_file()]
    if prepared and prepared != data.train:
        what = "prepared data cannot be trained on beside other pairs"
        raise ConfigError(what, f"data.train={' '.join(data.train)}", "prepare all of them together, as data.corpora")
    return bool(prepared)


def fingerprint(tokenizer: Tokenizer) -> int:
    return zlib.crc32("\0".join([tokenizer.content, *tokenizer.features]).encode())
