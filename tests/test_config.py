"""Settings: what is read is what was meant, and a mistake is one line that names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eyeline.config import Config, TrainingSettings
from eyeline.config_models import MODEL_SETTINGS, BahdanauSettings, LuongSettings
from eyeline.config_yaml import override, parse_yaml, read_yaml
from eyeline.errors import ConfigError


def _config(*settings: str) -> Config:
    return Config.from_dict(override({}, settings))


def _line(*settings: str) -> str:
    """What the user reads when these `--set` settings are wrong."""
    with pytest.raises(ConfigError) as caught:
        _config(*settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# What is meant


def test_a_model_without_an_architecture_is_of_the_default_one() -> None:
    assert _config("model.dropout=0.1").model == BahdanauSettings(dropout=0.1)
    assert _config("model.architecture=luong", "model.score=dot").model == LuongSettings(score="dot")
    assert _config("model={}") == Config()


def test_an_empty_section_is_the_default() -> None:
    assert Config.from_dict(parse_yaml("data:\ntraining:\nmodel:\nsearch:\ntokenizer:\n", "c.yaml")) == Config()


def test_one_path_is_a_list_of_one_and_columns_may_be_written_with_commas() -> None:
    data = _config("data.train=a.tsv", "data.columns='source, -, target'").data
    assert data.train == ["a.tsv"]
    assert data.columns == ["source", "-", "target"]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90", 90),
        ("1.5", 1.5),
        ("90s", 90),
        ("45m", 2700),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("0.5h", 1800),
        ("2d", 172800),
        ("'45'", 45),
    ],
)
def test_durations(written: str, seconds: float) -> None:
    assert _config(f"training.for={written}").training.for_ == seconds


@pytest.mark.parametrize("written", ["abc", "-5m", "5 minutes", "m", "1h30", "5x", "[1]", "true", "1:30", "'5m,'", "٣m"])
def test_what_is_no_duration(written: str) -> None:
    assert _line(f"training.for={written}").startswith(
        "a duration is written as 90s, 45m, 1h30m or a number of seconds (training.for="
    )


def test_a_duration_is_written_as_people_would() -> None:
    written = [TrainingSettings(for_=seconds).model_dump(mode="json", by_alias=True)["for"] for seconds in (2700, 7200, 90, 0.25)]
    assert written == ["45m", "2h", "90s", "0.25s"]


def test_the_two_sides_may_be_normalised_differently() -> None:
    data = _config("data.normalization={source: jamo, target: none}").data
    assert (data.form("source"), data.form("target")) == ("jamo", "none")
    assert _config("data.normalization={source: nfd}").data.form("target") == "nfc"


def test_a_side_takes_from_the_tokenizer_section_what_it_does_not_say() -> None:
    tokenizer = _config(
        "tokenizer.kind=bpe", "tokenizer.size=500", "tokenizer.source.kind=word", "tokenizer.target.size=90"
    ).tokenizer
    assert tokenizer.side("source") == ("word", 500, None)
    assert tokenizer.side("target") == ("bpe", 90, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("true", True), ("False", False), ("1e-3", 1e-3), ("1e3", 1e3),
        (".5", 0.5), ("-2", -2), ("010", "010"), ("1:30", "1:30"), ("1_000", "1_000"), ("2024-01-01", "2024-01-01"),
        ("0x10", "0x10"),        ("null", None), ("~", None), ("", None), (".inf", ".inf"), ("[a, 1]", ["a", 1]),
    ],
)  # fmt: skip
def test_yaml_as_people_mean_it(text: str, value: object) -> None:
    read = override({}, [f"x={text}"])["x"]
    assert (read, type(read)) == (value, type(value))


def test_override_leaves_the_original_alone() -> None:
    values = {"training": {"steps": 5}}
    assert override(values, ["training.steps=7", "search.beam_size=1"]) == {"training": {"steps": 7}, "search": {"beam_size": 1}}
    assert values == {"training": {"steps": 5}}


# Files


def test_bom_and_crlf_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes("\ufeffdata:\r\n  train: [한글.tsv]\r\nseed: 7\r\n".encode())
    assert Config.from_yaml(path) == Config.from_dict({"data": {"train": ["한글.tsv"]}, "seed": 7})


def test_an_empty_file_is_the_default_config(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(b"# nothing\n")
    assert Config.from_yaml(tmp_path / "c.yaml") == Config()


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("training: {steps: 5, patience: 2}\n")
    training = Config.from_yaml(tmp_path / "c.yaml", ["training.steps=9"]).training
    assert (training.steps, training.patience) == (9, 2)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"seed: 1\n\tx: 2\n", r"found character '\\t' that cannot start any token \(FILE:2\); indent with spaces, not tabs"),
        (b"a: 1\nseed: 1\nb: 2\nseed: 2\n", r"'seed' is given twice \(FILE:4\)"),
        (b"training:\n  steps: 1\n  epochs:\n  steps: 2\n", r"'steps' is given twice \(FILE:4\)"),
        (b"seed: 1\nx: caf\xe9\n", r"not UTF-8 \(FILE:2\); save the file as UTF-8"),
        ("seed: 1\n".encode("utf-16"), r"not UTF-8 \(FILE:1\); save the file as UTF-8"),
        (b"seed: 1\nx: a\x00b\n", r"the control character U\+0000 cannot stand in YAML \(FILE:2\)"),
        (b"seed: [1\n", r"expected ',' or '\]', but got .* \(FILE:2\)"),
        (b"seed: 1\n---\nseed: 2\n", r"expected a single document in the stream but found another document \(FILE:2\)"),
        (b"seed: !!python/object/apply:os.system ['true']\n", r"could not determine a constructor .*python.* \(FILE:1\)"),
        (b"data: &a\n  train: *a\n", r"found unconstructable recursive node \(FILE:1\)"),
        (b"- seed\n", r"a config is a mapping of sections \(FILE\); `eyeline init` writes an example"),
        (b"just text\n", r"a config is a mapping of sections \(FILE\); .*"),
        (b"seed: x\n", r"not a valid value \(seed=x in FILE\); should be a whole number"),
        (b"trainnig: {}\n", r"unknown setting \(trainnig in FILE\); did you mean 'training'\?"),
    ],
)  # fmt: skip
def test_a_faulty_file_is_named_with_its_line(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        Config.from_yaml(path)
    assert re.fullmatch(expected.replace("FILE", re.escape(str(path))), str(caught.value))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^no such config file \(.*none\.yaml\); `eyeline init --out FILE` writes one$"):
        read_yaml(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="not a directory"):
        read_yaml(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read: File name too long"):
        read_yaml(tmp_path / ("x" * 300))


def test_a_fault_that_came_with_set_does_not_blame_the_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("seed: 3\n")
    with pytest.raises(ConfigError, match=r"^not a valid value \(search\.beam_size=x\); should be a whole number$"):
        Config.from_yaml(tmp_path / "c.yaml", ["search.beam_size=x"])


# Mistakes


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("model.embedding_size=abc", "not a valid value (model.embedding_size=abc); should be a whole number"),
        ("model.embedding_size=[1, 2]", "not a valid value (model.embedding_size=[1, 2]); should be a whole number"),
        ("model.embedding_size=", "not a valid value (model.embedding_size=null); should be a whole number"),
        ("model.embedding_size=0", "not a valid value (model.embedding_size=0); should be at least 1"),
        ("model.dropout=1", "not a valid value (model.dropout=1); should be less than 1"),
        ("training.steps=1.5", "not a valid value (training.steps=1.5); should be a whole number"),
        ("training.steps=true", "a number is wanted, not true or false (training.steps=true)"),
        ("training.learning_rate=0", "not a valid value (training.learning_rate=0); should be more than 0"),
        ("training.learning_rate=inf", "not a valid value (training.learning_rate=inf); should be a finite number"),
        ("training.betas=0.9", "not a valid value (training.betas=0.9); should be a list"),
        ("training.betas=[0.9]", "not a valid value (training.betas=[0.9]); should be a longer list"),
        ("training.betas=[0.9, 2]", "not a valid value (training.betas.1=2); should be less than 1"),
        ("training.betas=[0, 0, 0]", "not a valid value (training.betas=[0, 0, 0]); should be a list of at most 2"),
        ("data.lowercase=maybe", "not a valid value (data.lowercase=maybe); should be true or false"),
        ("data.source_language=5", "not a valid value (data.source_language=5); should be text; quotes make a number text"),
        ("data.train={a: 1}", 'not a valid value (data.train={"a": 1}); should be a list'),
        ("data.train=[a.tsv, 5]", "not a valid value (data.train.1=5); should be text; quotes make a number text"),
        ("data.normalization=nfx", "not a valid value (data.normalization=nfx); did you mean 'nfd'?"),
        ("data.normalization=5", "not a valid value (data.normalization=5); valid: jamo, nfc, nfd, none"),
        ("data.normalization={source: nfx}", "not a valid value (data.normalization.source=nfx); did you mean 'nfd'?"),
        ("data.normalization={sorce: nfc}", "unknown setting (data.normalization.sorce); did you mean 'source'?"),
        ("training=5", "a section of settings is wanted (training=5); write 'training:' and its settings below it"),
        ("model=luong", "a section of settings is wanted (model=luong); write 'model:' and its settings below it"),
        ("tokenizer.source=bpe", "a section of settings is wanted (tokenizer.source=bpe); "
                                 "write 'tokenizer.source:' and its settings below it"),
        ("model.architecture=luonng", "unknown architecture (model.architecture=luonng); did you mean 'luong'?"),
        ("model.architecture=[luong]", "unknown architecture (model.architecture=[\"luong\"]); did you mean 'luong'?"),
        ("model.architecture=", f"unknown architecture (model.architecture=null); valid: {', '.join(sorted(MODEL_SETTINGS))}"),
        ("training.stps=5", "unknown setting (training.stps); did you mean 'steps'?"),
        ("steps=5", "unknown setting (steps); did you mean 'training.steps'?"),
        ("training.dropout=0", "unknown setting (training.dropout); did you mean 'model.dropout'?"),
        ("model.input_feeding=true", "unknown setting (model.input_feeding); 'input_feeding' is a setting of luong"),
        ("tokenizer.source.sise=5", "unknown setting (tokenizer.source.sise); did you mean 'size'?"),
        ("search={1: 2}", "unknown setting (search.1); "
                          "valid: batch_tokens, beam_size, coverage_penalty, diverse_groups, diversity, length_normalization, "
                          "length_penalty, max_length, max_length_ratio, min_length, min_length_ratio, no_repeat_ngram, "
                          "patience"),
        ("training={steps: 1, epochs: 2}",
         "one of steps, epochs, target_tokens and for bounds a run, not steps and epochs (training)"),
        ("search={min_length: 5, max_length: 2}", "min_length 5 is more than max_length 2 (search)"),
        ("tokenizer={shared: true, source: {kind: bpe}}",
         "a shared vocabulary has no source or target section of its own (tokenizer)"),
        ("model={architecture: transformer, size: 30}",
         "heads=4 cannot share size=30: make the size a multiple of the heads (model)"),
        ("model={architecture: transformer, size: 12, positions: rotary}",
         "positions=rotary turns pairs of numbers, and size / heads is odd: 3 (model)"),
        ("model={architecture: transformer, attention: linear, positions: alibi}",
         "positions=alibi acts on scores, and attention=linear never makes them: use sinusoidal, learned or none (model)"),
        ("model={architecture: transformer, alignment_layer: 3}", "alignment_layer=3 is none of decoder_layers=3 (model)"),
        ("model={architecture: transformer, alignment_head: 4}",
         "alignment_head=4 is none of heads=4, which count from 0 (model)"),
        ("model={architecture: pointer-generator-transformer, copy_head: 4}",
         "copy_head=4 is none of heads=4, which count from 0 (model)"),
        ("seed", "a setting is written key.sub=value (--set seed)"),
        ("=5", "a setting is written key.sub=value (--set =5)"),
        ("a..b=5", "a setting is written key.sub=value (--set a..b=5)"),
        ("seed=[", "expected the node content, but found '<stream end>' (--set seed=[)"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(setting: str, line: str) -> None:
    assert _line(setting) == line


def test_a_setting_below_a_value_is_refused() -> None:
    assert _line("seed=1", "seed.x=2") == "'seed' is not a section (--set seed.x=2)"


def test_an_unknown_setting_beside_it_lists_only_those_of_the_chosen_architecture() -> None:
    line = _line("model.architecture=luong", "model.zzzz=1")
    assert "input_feeding" in line
    assert "attention_size" not in line


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(_line(f"seed={'x' * 5000}")) < 200


def test_the_first_of_several_mistakes_is_reported() -> None:
    assert _line("data.lowercase=maybe", "seed=x").startswith("not a valid value (data.lowercase=maybe)")


def test_settings_do_not_change_in_place() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().seed = 2  # type: ignore[misc]
