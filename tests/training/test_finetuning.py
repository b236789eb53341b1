"""Runs that start from another run: weights, vocabularies, symbols that are missing or of no use; weights that stay frozen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from small_runs import MODELS, OTHERS, events, newest, rung_settings, same_run, settings, train, train_and_stop, write_pairs
from torch import nn

import eyeline
from eyeline.errors import ConfigError, RunError
from eyeline.runs import open_run
from eyeline.training.optimizers import freeze

RUNGS = [*MODELS, *OTHERS]


def pairs_of(letters: str, lines: int = 20) -> list[tuple[str, str]]:
    """Three letters in turn out of `letters`, and the same reversed."""
    triples = [[letters[(n + k) % len(letters)] for k in range(3)] for n in range(lines)]
    return [(" ".join(triple), " ".join(reversed(triple))) for triple in triples]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the letters a to f."""
    folder = tmp_path_factory.mktemp("base")
    train(settings(folder, training={"steps": 10}), folder / "run")
    return folder / "run"


def tuned(tmp_path: Path, base: Path, letters: str = "abcdef", **sections: Any) -> Any:
    data = {"train": [write_pairs(tmp_path / "new.tsv", pairs_of(letters, 30))]}
    training = {"steps": 5, "from": str(base), **sections.pop("training", {})}
    return settings(tmp_path, data=data, training=training, **sections)


@pytest.mark.parametrize("rung", RUNGS)
def test_every_rung_starts_with_the_weights_of_the_other(tmp_path: Path, rung: str) -> None:
    """With a rate of almost nothing the first weights are still there; they are not those that chance would give."""
    train(rung_settings(tmp_path, rung, training={"steps": 10}), tmp_path / "base")
    still = {"steps": 1, "learning_rate": 1e-30, "from": str(tmp_path / "base")}
    train(rung_settings(tmp_path, rung, training=still, seed=7), tmp_path / "run")
    theirs, ours = (load_file(tmp_path / name / "model.safetensors") for name in ("base", "run"))
    assert theirs.keys() == ours.keys()
    for name, value in theirs.items():
        assert torch.equal(value, ours[name]), name


def test_its_vocabularies_are_kept_and_what_they_lack_is_listed(tmp_path: Path, base: Path) -> None:
    """`x` and `y` are unknown to it; `a`, `b`, `c` of its own are in no pair."""
    said = train(tuned(tmp_path, base, "defxyx"), tmp_path / "run")
    assert "source: 3 symbols are known; missing: 2 (x y); extra: 3 (" in said
    assert "warning: from" in said
    found = {event.get("side", "run"): event for event in events(tmp_path / "run", "from")}
    assert (found["run"]["run"], found["run"]["weights_step"]) == (str(base), 10)
    assert found["target"]["missing"] == ["x", "y"]
    assert sorted(found["target"]["extra"]) == ["a", "b", "c"]
    for name in ("source", "target"):
        kept = (base / f"{name}.tokenizer.json").read_bytes()
        assert (tmp_path / "run" / f"{name}.tokenizer.json").read_bytes() == kept


def test_all_known_is_a_note_and_no_warning(tmp_path: Path, base: Path) -> None:
    said = train(tuned(tmp_path, base), tmp_path / "run")
    assert "missing: none; extra: none" in said
    assert "warning: from" not in said


@pytest.mark.parametrize("rung", ["seq2seq", "bahdanau", "luong", "pointer-generator", "transformer", "state-space"])
def test_new_vocabularies_take_over_what_both_have(tmp_path: Path, rung: str) -> None:
    """Rows of d, e, f are the old ones under their new ids; those of x and y are as drawn; all other weights are the old ones."""
    train(rung_settings(tmp_path, rung, training={"steps": 10}), tmp_path / "base")
    data = {"train": [write_pairs(tmp_path / "new.tsv", pairs_of("xdefy"))]}
    still = {"steps": 1, "learning_rate": 1e-30, "from": str(tmp_path / "base"), "from_vocabulary": "new"}
    said = train(rung_settings(tmp_path, rung, data=data, training=still), tmp_path / "run")
    assert "target: 3 symbols are known; missing: 2 (x y); extra: 3 (" in said
    old, new = open_run(tmp_path / "base"), open_run(tmp_path / "run")
    models = old.load(), new.load()
    for side in ("source", "target"):
        before, now = (getattr(model, f"{side}_table").weight for model in models)
        ids = [{each.token(n): n for n in range(each.size)} for each in (getattr(old, side), getattr(new, side))]
        for symbol in ("<unk>", "<s>", "</s>", "d", "e", "f"):
            assert torch.equal(before[ids[0][symbol]], now[ids[1][symbol]]), (side, symbol)
        assert "x" not in ids[0]
        assert not any(torch.equal(now[ids[1]["x"]], row) for row in before)
    heads = [dict(model.head.named_parameters()) for model in models]
    for name, before in heads[0].items():
        if len(before) == old.target.size:
            ids = [{each.target.token(n): n for n in range(each.target.size)} for each in (old, new)]
            assert torch.equal(before[ids[0]["e"]], heads[1][name][ids[1]["e"]])
    sized = old.source.size, old.target.size
    for (name, before), now in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        assert before.shape[0] in sized or torch.equal(before, now), name


def test_it_does_not_need_the_other_run_once_it_has_begun(tmp_path: Path, base: Path) -> None:
    """Resumed as any run; the other one may be gone. Events of the beginning stand once."""
    import shutil

    shutil.copytree(base, tmp_path / "other")
    config = tuned(tmp_path, tmp_path / "other", training={"steps": 20})
    train(config, tmp_path / "whole")
    train_and_stop(config, tmp_path / "parts", 7)
    shutil.rmtree(tmp_path / "other")
    train(config, tmp_path / "parts", resume=True)
    same_run(tmp_path / "whole", tmp_path / "parts")
    assert len(events(tmp_path / "parts", "from")) == 3


def test_killed_before_the_first_checkpoint_it_begins_again(tmp_path: Path, base: Path) -> None:
    from small_runs import Listener

    def stop(step: int) -> None:
        if step == 2:
            raise ZeroDivisionError

    config = tuned(tmp_path, base)
    with pytest.raises(ZeroDivisionError):
        train(config, tmp_path / "run", reporter=Listener(stop))
    train(config, tmp_path / "run", resume=True)
    train(config, tmp_path / "whole")
    same_run(tmp_path / "whole", tmp_path / "run")
    assert len(events(tmp_path / "run", "from")) == 3


def test_the_card_states_where_it_began(tmp_path: Path, base: Path) -> None:
    """The run, which weights they were, and what became of the symbols; also for a run that was stopped in between."""
    import hashlib

    config = tuned(tmp_path, base, "defxyx")
    train_and_stop(config, tmp_path / "run", 3)
    train(config, tmp_path / "run", resume=True)
    digest = hashlib.sha256((base / "model.safetensors").read_bytes()).hexdigest()[:16]
    said = f"| starts from | {base} at step 10, weights {digest} (SHA-256); its vocabularies are kept"
    shared = "3 symbols known, 2 missing, 3 extra"
    card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert f"{said}; source: {shared}; target: {shared} |" in card
    assert "starts from" not in (base / "README.md").read_text(encoding="utf-8")


def test_features_that_it_does_not_know_are_missing_symbols(tmp_path: Path, base: Path) -> None:
    """It was trained without any, so that no id could say that they are there."""
    featured = write_pairs(tmp_path / "new.tsv", [(*pair, "V;PST") for pair in pairs_of("abcdef", 30)])
    data = {"train": featured, "valid": [], "columns": ["source", "target", "features"]}
    train(settings(tmp_path, data=data, training={"steps": 5, "from": str(base)}), tmp_path / "run")
    source = next(event for event in events(tmp_path / "run", "from") if event.get("side") == "source")
    assert sorted(source["missing"]) == ["PST", "V"]


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({"model": {"decoder_size": 13}}, r"model\.decoder_size=13\); there it is 12"),
        ({"model": {"cell": "gru"}}, r"model\.cell=gru"),
        ({"tokenizer": {"kind": "word"}}, r"tokenizer\.kind=word.*from_vocabulary=new"),
        ({"tokenizer": {"shared": True}}, r"tokenizer\.shared=True"),
        ({"data": {"lowercase": True}}, r"data\.lowercase=True.*from_vocabulary=new"),
    ],
    ids=str,
)
def test_another_model_is_refused_by_its_setting(tmp_path: Path, base: Path, sections: dict[str, Any], named: str) -> None:
    config = settings(tmp_path, **{**sections, "training": {"from": str(base)}})
    with pytest.raises(ConfigError, match=named):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_dropout_may_differ(tmp_path: Path, base: Path) -> None:
    train(tuned(tmp_path, base, model={"dropout": 0.5}), tmp_path / "run")


def test_another_architecture_is_refused(tmp_path: Path, base: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.architecture=luong"):
        train(settings(tmp_path, "luong", training={"from": str(base)}), tmp_path / "run")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such run directory"):
        train(settings(tmp_path, training={"from": str(tmp_path / "nowhere")}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_beginning_from_two_places_is_refused(tmp_path: Path, base: Path) -> None:
    with pytest.raises(ConfigError, match="from and source_vectors"):
        settings(tmp_path, training={"from": str(base), "source_vectors": "x.vec"})


def test_the_command_takes_settings_from_the_run(tmp_path: Path, base: Path) -> None:
    from eyeline.cli import _status

    path = write_pairs(tmp_path / "new.tsv", pairs_of("abc"))
    given = ["--from", str(base), "--out", str(tmp_path / "run"), "--steps", "3", "--device", "cpu", "-q"]
    assert _status(["train", *given]) == 2, "its pairs are not taken"
    assert _status(["train", *given, "--train", path]) == 0
    config = open_run(tmp_path / "run").config
    assert config.training.from_ == str(base)
    assert (config.data.train, config.data.valid) == ([path], [])
    assert _status(["train", *given, "--train", path, "--resume"]) == 0, "it is over"
    assert (config.training.steps, config.training.learning_rate) == (3, 0.01)
    assert config.model == open_run(base).config.model
    assert eyeline.load(tmp_path / "run").predict(["a b"])


# ---- frozen weights -----------------------------------------------------------------------------------------------------


def test_frozen_weights_stay_and_the_others_move(tmp_path: Path, base: Path) -> None:
    said = train(tuned(tmp_path, base, training={"freeze": ["encoder.*", "*.table.weight"], "steps": 10}), tmp_path / "run")
    before, after = load_file(base / "model.safetensors"), load_file(newest(tmp_path / "run") / "model.safetensors")
    frozen = {name for name in before if name.startswith("encoder.") or name.endswith("table.weight")}
    assert f"{len(frozen)} weights are frozen: encoder." in said
    for name, value in before.items():
        assert torch.equal(value, after[name]) == (name in frozen), name


def test_a_frozen_run_resumes_exactly_and_stays_frozen(tmp_path: Path) -> None:
    config = settings(tmp_path, training={"freeze": "encoder.*"})
    assert config.training.freeze == ["encoder.*"]
    train(config, tmp_path / "whole")
    train_and_stop(config, tmp_path / "parts", 7)
    with pytest.raises(ConfigError, match=r"training\.freeze=\[\]"):
        train(settings(tmp_path), tmp_path / "parts", resume=True)
    train(config, tmp_path / "parts", resume=True)
    same_run(tmp_path / "whole", tmp_path / "parts")


def test_a_weight_with_two_names_is_frozen_by_either() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.below, self.above, self.other = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
            self.above.weight = self.below.weight

    model = Tied()
    assert freeze(model, ["above.weight"]) == ["above.weight"]
    assert [name for name, p in model.named_parameters() if not p.requires_grad] == ["below.weight"]


def test_a_pattern_that_matches_nothing_is_refused_with_what_is_near(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no weight has such a name \(training\.freeze=encodr\.e.*\); did you mean"):
        train(settings(tmp_path, training={"freeze": ["encodr.embedding.table.weight"]}), tmp_path / "run")
    with pytest.raises(ConfigError, match="nothing is left to train"):
        train(settings(tmp_path, training={"freeze": ["*"]}), tmp_path / "other")


def test_what_began_is_in_the_journal_in_full(tmp_path: Path, base: Path) -> None:
    """All symbols, where the message names twenty."""
    letters = "".join(chr(0x4E00 + n) for n in range(30))
    said = train(tuned(tmp_path, base, letters), tmp_path / "run")
    assert "and 10 more" in said
    (_, source, _) = events(tmp_path / "run", "from")
    assert sorted(source["missing"]) == list(letters)
    json.dumps(source)
