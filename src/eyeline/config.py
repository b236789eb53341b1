"""Every setting of a run, typed and checked when made. Knows no tensors, no text and no files but the config's own.

An unknown key is an error that names the nearest valid one. A field's docstring is what `eyeline init` writes beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from eyeline.config_base import Fraction, Real, Settings, Whole
from eyeline.config_data import CorpusSettings, FilterSettings
from eyeline.config_models import (
    MODEL_SETTINGS,
    AttentiveSettings,
    BahdanauSettings,
    ModelSettings,
    PointerNetworkSettings,
    Seq2SeqSettings,
)
from eyeline.config_search import SearchSettings
from eyeline.config_training import LOWER_IS_BETTER, Metric, TrainingSettings
from eyeline.config_yaml import config_error, dump_yaml, override, read_yaml
from eyeline.errors import ConfigError

__all__ = [
    "LOWER_IS_BETTER",
    "Config",
    "CorpusSettings",
    "DataSettings",
    "Metric",
    "Normalization",
    "SearchSettings",
    "SideTokenizerSettings",
    "TokenizerKind",
    "TokenizerSettings",
    "TrainingSettings",
]

Normalization = Literal["nfc", "nfd", "jamo", "none"]
TokenizerKind = Literal["character", "word", "whitespace-symbols", "bpe", "unigram"]


class DataSettings(Settings):
    train: list[str] = []
    """training pairs: FILE.tsv, FILE.jsonl, SOURCE.txt and TARGET.txt, or a prefix with two languages such as train.{de,en}"""
    valid: list[str] = []
    """validation pairs, in any of the same forms"""
    test: list[str] = []
    """test pairs, in any of the same forms"""
    source_language: str | None = None
    """language code of the source, such as ko; picks the key in JSONL's {"translation": …} and names the service's pair"""
    target_language: str | None = None
    """language code of the target"""
    columns: list[str] = ["source", "target"]
    """what the columns of a TSV hold, in order: source, target, features, alignment, or - for a column to leave out"""
    links: Literal["words", "characters"] = "words"
    """what the pairs' own alignment links count: words between blanks, or characters, as in the generated dates and numerals"""
    normalization: Normalization | dict[Literal["source", "target"], Normalization] = "nfc"
    """nfc, nfd, jamo (Hangul syllables to letters) or none; one for both sides or {source: …, target: …}"""
    lowercase: bool = False
    """lower-case both sides"""
    on_bad_line: Literal["error", "skip"] = "error"
    """a line that is not UTF-8, holds a NUL or lacks a column: error stops and names it, skip counts it"""
    too_long: Literal["error", "truncate", "split", "skip"] = "error"
    """a training pair longer than max_length: error stops and names it, truncate cuts, skip leaves out; split: predict only"""
    max_length: Whole = Field(1000, ge=1)
    """the longest source or target, in tokens, that training accepts"""
    corpora: list[CorpusSettings] = []
    """more training pairs beside train, each corpus with a tag and a weight: [{pairs: FILE.tsv, tag: back, weight: 0.5}, …]"""
    temperature: Real = Field(1.0, ge=1)
    """how far small corpora are lifted: pairs of each ∝ weight · size^(1/temperature), as many as at 1 in all"""
    filter: FilterSettings = FilterSettings()
    """which training pairs are left out, by their text"""
    bpe_dropout: Fraction = 0.0
    """share of merges that are left out when bpe cuts a training pair (Provilkov et al. 2020), drawn anew in each epoch"""

    @model_validator(mode="before")
    @classmethod
    def _one_path_is_a_list(cls, values: Any) -> Any:
        if isinstance(values, dict):
            values = dict(values)
            for key in ("train", "valid", "test"):
                if isinstance(values.get(key), str):
                    values[key] = [values[key]]
            if isinstance(values.get("columns"), str):
                values["columns"] = [name.strip() for name in values["columns"].split(",")]
        return values

    @property
    def all_corpora(self) -> list[CorpusSettings]:
        """What is trained on: `train`, where it names anything, and the others."""
        return [*([CorpusSettings(pairs=self.train)] if self.train else []), *self.corpora]

    def form(self, side: Literal["source", "target"]) -> Normalization:
        """The normalisation of one side."""
        if isinstance(self.normalization, dict):
            return self.normalization.get(side, "nfc")
        return self.normalization


class SideTokenizerSettings(Settings):
    kind: TokenizerKind | None = None
    """character, word, whitespace-symbols, bpe or unigram; default: that of the tokenizer section"""
    size: Whole | None = Field(None, ge=8)
    """the most entries of the vocabulary"""
    file: str | None = None
    """a given tokenizer in the format of the `tokenizers` library, instead of one trained at the start"""


class TokenizerSettings(Settings):
    kind: TokenizerKind = "character"
    """character, word, whitespace-symbols, bpe or unigram; default of pointer-network: whitespace-symbols"""
    size: Whole = Field(8000, ge=8)
    """the most entries of a vocabulary"""
    shared: bool = False
    """one vocabulary for both sides"""
    min_frequency: Whole = Field(1, ge=1)
    """symbols seen less often are unknown"""
    sample: Whole = Field(1_000_000, ge=1)
    """bpe and unigram are learnt from so many lines at most, drawn from all by the seed"""
    source: SideTokenizerSettings | None = None
    """what differs on the source side"""
    target: SideTokenizerSettings | None = None
    """what differs on the target side"""

    @model_validator(mode="after")
    def _shared_means_shared(self) -> TokenizerSettings:
        if self.shared and (self.source or self.target):
            raise ValueError("a shared vocabulary has no source or target section of its own")
        return self

    def side(self, side: Literal["source", "target"]) -> tuple[TokenizerKind, int, str | None]:
        """(kind, size, file) of one side."""
        own = self.source if side == "source" else self.target
        if own is None:
            return self.kind, self.size, None
        return own.kind or self.kind, own.size or self.size, own.file


def _points(architecture: object) -> bool:
    known = MODEL_SETTINGS.get(architecture) if isinstance(architecture, str) else None
    return known is not None and known.outputs == "positions"


class Config(Settings):
    """Every setting of a run, as resolved; `config.yaml` of a run directory is this and enough to repeat the run."""

    data: DataSettings = DataSettings()
    """what is read, and how it is cleaned"""
    tokenizer: TokenizerSettings = TokenizerSettings()
    """how text becomes symbols"""
    model: ModelSettings = BahdanauSettings()
    """the architecture and its own settings"""
    training: TrainingSettings = TrainingSettings()
    """how the weights are found; one of steps, epochs and for bounds it"""
    search: SearchSettings = SearchSettings()
    """how predictions are found"""
    seed: Whole = Field(1, ge=0, lt=2**63)
    """decides everything random: initial weights, order of the data, dropout, sampling"""

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_sections(cls, values: Any) -> Any:
        """A section with nothing in it is its default, and a model without an architecture is of the default one."""
        if not isinstance(values, dict):
            return values
        values = {name: section for name, section in values.items() if section is not None}
        if isinstance(values.get("model"), dict):
            values["model"] = {"architecture": BahdanauSettings().architecture, **values["model"]}
            if _points(values["model"]["architecture"]) and isinstance(values.setdefault("tokenizer", {}), dict):
                values["tokenizer"] = {"kind": "whitespace-symbols", **values["tokenizer"]}
        return values

    @model_validator(mode="after")
    def _attention_where_it_is_needed(self) -> Config:
        needing = {
            "training.coverage_loss": self.training.coverage_loss,
            "training.guided_alignment": self.training.guided_alignment,
            "search.coverage_penalty": self.search.coverage_penalty,
        }
        for name, value in needing.items():
            if value and isinstance(self.model, Seq2SeqSettings):
                raise ValueError(f"{name}={value:g} needs attention, and model.architecture={self.model.architecture} has none")
        return self

    @model_validator(mode="after")
    def _recipes_find_what_they_need(self) -> Config:
        training = self.training
        noise = self.model.dropout or training.source_word_dropout or training.target_word_dropout
        if training.r_drop and not noise:
            raise ValueError(
                f"training.r_drop={training.r_drop:g} compares passes with different dropout, and model.dropout=0 has none"
            )
        if training.average.startswith("best") and not self.data.valid:
            raise ValueError(f"training.average={training.average} needs validations to choose by, and data.valid is empty")
        return self

    @model_validator(mode="after")
    def _compiled_where_positions_are_parallel(self) -> Config:
        if self.training.compile and not isinstance(self.model, AttentiveSettings):
            what = f"model.architecture={self.model.architecture} goes from position to position"
            raise ValueError(f"training.compile=true would compile anew for each length: {what}")
        return self

    @model_validator(mode="after")
    def _pieces_can_be_cut_anew(self) -> Config:
        if not self.data.bpe_dropout:
            return self
        where = f"data.bpe_dropout={self.data.bpe_dropout:g}"
        if "bpe" not in (self.tokenizer.side("source")[0], self.tokenizer.side("target")[0]):
            raise ValueError(f"{where} leaves out merges of bpe, and tokenizer.kind={self.tokenizer.kind} has none")
        if self.model.outputs != "vocabulary":
            raise ValueError(f"{where} makes no sense with model.architecture={self.model.architecture}, which counts tokens")
        if self.training.guided_alignment:
            raise ValueError(f"{where} moves the tokens that training.guided_alignment links")
        return self

    @model_validator(mode="after")
    def _positions_are_of_the_source_as_it_is(self) -> Config:
        if self.model.outputs != "positions":
            return self
        data, tokenizer, real = self.data, self.tokenizer, self.numbers > 0
        pointless = {
            "tokenizer.shared": tokenizer.shared,
            "tokenizer.target": tokenizer.target is not None,
            "data.columns: features": "features" in data.columns,
            "data.corpora: tag": any(corpus.tag is not None for corpus in data.corpora),
            "data.too_long: truncate": data.too_long == "truncate",
            "tokenizer.source": real and tokenizer.source is not None,
            "data.lowercase": real and data.lowercase,
            f"data.normalization: {data.form('source')}": real and data.form("source") in ("nfd", "jamo"),
        }
        for name, given in pointless.items():
            if given:
                what = "sources of numbers" if real else "outputs that are positions of the source"
                raise ValueError(f"{name} makes no sense with {what}, which model.architecture={self.model.architecture} has")
        return self

    @model_validator(mode="after")
    def _outputs_have_positions(self) -> Config:
        longest, most = self.model.longest, max(self.search.max_length or 0, self.search.min_length)
        if longest is not None and most >= longest:
            raise ValueError(f"outputs of {most} tokens and END are more than model.max_positions={longest}")
        return self

    @property
    def points(self) -> bool:
        """Whether outputs are positions of the source."""
        return self.model.outputs == "positions"

    @property
    def most_tokens(self) -> tuple[int, str]:
        """The most tokens that a source or target may have, END apart, and the setting that says so."""
        longest, most = self.model.longest, self.data.max_length
        if longest is not None and longest <= most:
            return longest - 1, f"model.max_positions={longest} (END counts)"
        return most, f"data.max_length={most}"

    @property
    def numbers(self) -> int:
        """How many numbers each element of a source has; 0 where sources are symbols."""
        return self.model.element_size if isinstance(self.model, PointerNetworkSettings) else 0

    def to_yaml(self) -> str:
        """YAML that `from_yaml` reads back to an equal Config."""
        return dump_yaml(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names that YAML uses."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: str = "") -> Config:
        """Checks plain values. Raises ConfigError with the setting's dotted name and value; `where` says whose they are."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise config_error(error, values, cls, where) from None

    @classmethod
    def from_yaml(cls, path: str | Path, overrides: Sequence[str] = ()) -> Config:
        """Reads a config file and applies `key.sub=value` overrides. Raises ConfigError."""
        values = read_yaml(path)
        try:
            return cls.from_dict(override(values, overrides))
        except ConfigError:
            cls.from_dict(values, str(path))  # when the fault is the file's own, say so; else it came with --set
            raise
