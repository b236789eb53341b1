"""Every setting of a run, typed and checked when made; YAML in and out. Knows no tensors and no files but the config's own.

An unknown key is an error that names the nearest valid one. A field's docstring is what `eyeline init` writes beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator

from eyeline.errors import ConfigError, nearest

Normalization = Literal["nfc", "nfd", "jamo", "none"]
TokenizerKind = Literal["character", "word", "whitespace-symbols", "bpe", "unigram"]
Metric = Literal["loss", "exact_match", "symbol_error_rate", "wer", "cer", "bleu", "chrf", "ter"]
LOWER_IS_BETTER = frozenset({"loss", "symbol_error_rate", "wer", "cer", "ter"})

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _seconds(value: Any) -> Any:
    """`90`, `"45m"`, `"1h30m"` to seconds."""
    if isinstance(value, str):
        text = value.strip().replace(" ", "")
        if re.fullmatch(r"(\d+(\.\d+)?[smhd])+", text):
            return sum(float(number) * _UNITS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)([smhd])", text))
        if not re.fullmatch(r"\d+(\.\d+)?", text):
            raise ValueError("a duration is written as 90s, 45m, 1h30m or a number of seconds")
    return value


Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0), PlainSerializer(lambda s: f"{s:g}s", return_type=str)]


class Settings(BaseModel):
    """The base of every settings class: no unknown keys, checked on assignment, never changed in place."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, populate_by_name=True, allow_inf_nan=False
    )


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
    normalization: Normalization | dict[Literal["source", "target"], Normalization] = "nfc"
    """nfc, nfd, jamo (Hangul syllables to letters) or none; one for both sides or {source: …, target: …}"""
    lowercase: bool = False
    """lower-case both sides"""
    on_bad_line: Literal["error", "skip"] = "error"
    """a line that is not UTF-8, holds a NUL or lacks a column: error stops and names it, skip counts it"""
    too_long: Literal["error", "truncate", "split", "skip"] = "error"
    """a training pair longer than max_length: error stops and names it, truncate cuts, skip leaves out; split: predict only"""
    max_length: int = Field(1000, ge=1)
    """the longest source or target, in tokens, that training accepts"""

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

    def form(self, side: Literal["source", "target"]) -> Normalization:
        """The normalisation of one side."""
        if isinstance(self.normalization, dict):
            return self.normalization.get(side, "nfc")
        return self.normalization


class SideTokenizerSettings(Settings):
    kind: TokenizerKind | None = None
    """character, word, whitespace-symbols, bpe or unigram; default: that of the tokenizer section"""
    size: int | None = Field(None, ge=8)
    """the most entries of the vocabulary"""
    file: str | None = None
    """a given tokenizer in the format of the `tokenizers` library, instead of one trained at the start"""


class TokenizerSettings(Settings):
    kind: TokenizerKind = "character"
    """character, word, whitespace-symbols, bpe or unigram"""
    size: int = Field(8000, ge=8)
    """the most entries of a vocabulary"""
    shared: bool = False
    """one vocabulary for both sides"""
    min_frequency: int = Field(1, ge=1)
    """symbols seen less often are unknown"""
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


class _Recurrent(Settings):
    """What every recurrent rung has."""

    cell: Literal["rnn", "lstm", "gru"] = "lstm"
    """recurrent cell"""
    embedding_size: int = Field(128, ge=1)
    """width of the embeddings of either side"""
    encoder_size: int = Field(256, ge=1)
    """width of the encoder, per direction"""
    decoder_size: int = Field(256, ge=1)
    """width of the decoder"""
    encoder_layers: int = Field(1, ge=1)
    decoder_layers: int = Field(1, ge=1)
    dropout: float = Field(0.2, ge=0, lt=1)
    """on embeddings, between layers, and on what the output layer reads"""


class Seq2SeqSettings(_Recurrent):
    architecture: Literal["seq2seq"] = "seq2seq"
    bidirectional: bool = False
    """encode in both directions"""
    context: Literal["once", "every-step"] = "once"
    """the source vector starts the decoder (once: Sutskever 2014) or also enters every step (every-step: Cho 2014)"""
    reverse_source: bool = False
    """read the source backwards (Sutskever 2014)"""


class BahdanauSettings(_Recurrent):
    architecture: Literal["bahdanau"] = "bahdanau"
    bidirectional: bool = True
    """encode in both directions"""
    attention_size: int = Field(256, ge=1)
    """width of the additive score"""


class LuongSettings(_Recurrent):
    architecture: Literal["luong"] = "luong"
    bidirectional: bool = True
    """encode in both directions"""
    score: Literal["dot", "general", "concat"] = "general"
    """how the query meets the keys"""
    input_feeding: bool = True
    """feed the attentional vector to the next step; without it all target positions are trained at once"""


ModelSettings = Annotated[Seq2SeqSettings | BahdanauSettings | LuongSettings, Field(discriminator="architecture")]
MODEL_SETTINGS: dict[str, type[Seq2SeqSettings] | type[BahdanauSettings] | type[LuongSettings]] = {
    "seq2seq": Seq2SeqSettings,
    "bahdanau": BahdanauSettings,
    "luong": LuongSettings,
}


class TrainingSettings(Settings):
    steps: int | None = Field(None, ge=1)
    """total number of updates; or epochs, or for"""
    epochs: int | None = Field(None, ge=1)
    """passes over the data"""
    for_: Duration | None = Field(None, alias="for")
    """wall-clock time, such as 45m"""
    batch_tokens: int = Field(4096, ge=1)
    """padded tokens a batch: rows times the longer of its longest source and target"""
    accumulate: int = Field(1, ge=1)
    """batches to one update; the gradient is the mean over all their target tokens"""
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: Literal["constant", "inverse-sqrt", "linear", "plateau"] = "constant"
    """constant; inverse-sqrt after the warm-up; linear to zero at the last step; plateau: times decay when the metric rests"""
    warmup_steps: int = Field(0, ge=0)
    """steps of linear rise to learning_rate"""
    decay: float = Field(0.5, gt=0, lt=1)
    """plateau: the factor"""
    decay_patience: int = Field(2, ge=0)
    """plateau: validations without improvement that are borne before the rate falls"""
    min_learning_rate: float = Field(1e-6, ge=0)
    """plateau: the floor"""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """mass spread evenly over the vocabulary; real tokens only"""
    clip_norm: float = Field(1.0, ge=0)
    """largest gradient norm; 0 leaves gradients alone"""
    validate_every: int = Field(500, ge=1)
    """steps between validations"""
    checkpoint_every: int = Field(500, ge=1)
    """steps between checkpoints"""
    keep_checkpoints: int = Field(2, ge=1)
    """the newest that are kept, by number"""
    metric: Metric = "loss"
    """what decides which weights are the best, and early stopping"""
    patience: int = Field(0, ge=0)
    """stop after so many validations in a row without improvement; 0 never stops early"""
    precision: Literal["fp32"] = "fp32"
    average: Literal["none"] = "none"

    @model_validator(mode="after")
    def _one_bound(self) -> TrainingSettings:
        given = [
            name for name, value in (("steps", self.steps), ("epochs", self.epochs), ("for", self.for_)) if value is not None
        ]
        if len(given) > 1:
            raise ValueError(f"one of steps, epochs and for bounds a run, not {' and '.join(given)}")
        if self.schedule == "linear" and self.for_ is not None:
            raise ValueError("schedule: linear needs a number of steps or epochs, not a duration")
        return self


class SearchSettings(Settings):
    beam_size: int = Field(5, ge=1)
    """hypotheses kept; 1 is greedy"""
    length_penalty: float = Field(1.0, ge=0)
    """hypotheses are ranked by score / length^penalty, END counted"""
    min_length: int = Field(0, ge=0)
    """tokens before END may come"""
    max_length: int | None = Field(None, ge=1)
    """most tokens of an output; default: twice the source's and 30 more"""
    batch_tokens: int = Field(4096, ge=1)
    """padded source tokens decoded at a time, hypotheses counted"""


class Config(Settings):
    """Every setting of a run, as resolved; `config.yaml` of a run directory is this and enough to repeat the run."""

    data: DataSettings = DataSettings()
    tokenizer: TokenizerSettings = TokenizerSettings()
    model: ModelSettings = BahdanauSettings()
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()
    seed: int = Field(1, ge=0)

    def to_yaml(self) -> str:
        """YAML that `from_yaml` reads back to an equal Config."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True, width=120)

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names that YAML uses."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: str = "") -> Config:
        """Checks plain values. Raises ConfigError with the setting's dotted name and value."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise _translated(error, where) from None

    @classmethod
    def from_yaml(cls, path: str | Path, overrides: Sequence[str] = ()) -> Config:
        """Reads a config file and applies `key.sub=value` overrides."""
        return cls.from_dict(override(read_yaml(path), overrides), str(path))


class _Loader(yaml.SafeLoader):
    """YAML as people mean it: `no` is the Norwegian code and not false, `1e-3` is a number, a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(problem=f"'{key}' is given twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    letter: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp")
    ]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.\d*([eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.\d+([eE][-+]?\d+)?)$"),
    list("-+0123456789."),
)


def parse_yaml(text: str, where: str) -> Any:
    """YAML to plain values. Raises ConfigError with `where:LINE`."""
    try:
        return yaml.load(text, _Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise ConfigError(problem, f"{where}:{mark.line + 1}" if mark else where) from None


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping that a YAML file holds; a BOM and CRLF do not matter."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("no such config file", str(path)) from None
    except IsADirectoryError:
        raise ConfigError("a config file is wanted, not a directory", str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 at byte {error.start}", str(path)) from None
    values = parse_yaml(text, str(path))
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError("a config is a mapping of sections", str(path), "see `eyeline init`")
    return dict(values)


def override(values: dict[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """A copy of `values` with each `key.sub=value` applied; values are read as YAML."""
    result = _copy(values)
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ConfigError("a setting is written key.sub=value", f"--set {setting}")
        *parents, last = name.strip().split(".")
        place = result
        for parent in parents:
            inner = place.get(parent)
            place[parent] = inner = {} if inner is None else inner
            if not isinstance(inner, dict):
                raise ConfigError(f"'{parent}' is not a section", f"--set {setting}")
            place = inner
        place[last] = parse_yaml(text, f"--set {setting}") if text.strip() else None
    return result


def _copy(value: Any) -> Any:
    return {key: _copy(item) for key, item in value.items()} if isinstance(value, dict) else value


def _translated(error: ValidationError, where: str) -> ConfigError:
    """The first fault that pydantic found, in one line that names the setting, its value and what to do."""
    fault = error.errors()[0]
    location = [part for part in fault["loc"] if not (isinstance(part, str) and part in MODEL_SETTINGS)]
    name = ".".join(str(part) for part in location if part not in ("list[str]", "str"))
    place = f" in {where}" if where else ""
    if fault["type"] == "extra_forbidden":
        return ConfigError(f"unknown setting{place}", name, nearest(str(location[-1]), _names_beside(fault["loc"])))
    if fault["type"] in ("union_tag_invalid", "union_tag_not_found"):
        given = fault["input"].get("architecture") if isinstance(fault["input"], dict) else fault["input"]
        return ConfigError(f"unknown architecture{place}", f"model.architecture={given}", nearest(str(given), MODEL_SETTINGS))
    if fault["type"] == "literal_error":
        valid = re.findall(r"'([^']*)'", fault.get("ctx", {}).get("expected", ""))
        return ConfigError(f"not a valid value{place}", f"{name}={fault['input']}", nearest(str(fault["input"]), valid))
    message = fault["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if fault["type"] == "value_error" and isinstance(fault["input"], dict):
        return ConfigError(f"{message}{place}", name)
    return ConfigError(
        f"not a valid value{place}", f"{name}={fault['input']}", f"should be {message}" if "should" not in message else message
    )


def _names_beside(location: Sequence[int | str]) -> list[str]:
    """The valid keys at the place of an unknown one."""
    settings: Any = Config
    for part in location[:-1]:
        if part in MODEL_SETTINGS:
            settings = MODEL_SETTINGS[str(part)]
            continue
        fields = {f.alias or name: f for name, f in settings.model_fields.items()}
        annotation = fields[str(part)].annotation if part in fields else None
        settings = next(
            (a for a in (annotation, *get_args(annotation)) if isinstance(a, type) and issubclass(a, Settings)), settings
        )
    return [f.alias or name for name, f in settings.model_fields.items()]
