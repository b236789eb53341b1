"""What a user reads when something is wrong: one line, where it is, and what to do."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.errors import ConfigError, DataError, EyelineError, Interrupted, MissingExtra, RunError, UserError, nearest, require


def test_the_line_has_what_where_and_hint() -> None:
    assert str(UserError("no such thing")) == "no such thing"
    assert str(UserError("no such thing", "seed=x")) == "no such thing (seed=x)"
    assert str(UserError("no such thing", hint="try another")) == "no such thing; try another"
    assert str(DataError("a column is missing", Path("a.tsv"), 7, "write a TAB")) == "a column is missing (a.tsv:7); write a TAB"
    assert str(DataError("empty", "a.tsv")) == "empty (a.tsv)"


@given(st.text(), st.text(), st.text())
def test_it_is_one_line_whatever_the_data_holds(what: str, where: str, hint: str) -> None:
    assert str(UserError(what, where, hint)).isprintable()


def test_what_cannot_be_seen_is_escaped_and_what_can_is_kept() -> None:
    assert str(UserError("a\nb\r\nc")) == "a b c"
    assert str(UserError("한글 é C:\\new \x1b[31m \u2028 \udcff \x00")) == r"한글 é C:\new \x1b[31m \u2028 \udcff \x00"


def test_users_faults_are_value_errors_and_interruption_is_none() -> None:
    for kind in (DataError, ConfigError, RunError, MissingExtra):
        assert issubclass(kind, UserError)
    assert issubclass(UserError, ValueError)
    assert issubclass(UserError, EyelineError)
    assert issubclass(Interrupted, EyelineError)
    assert not issubclass(Interrupted, UserError)


def test_an_error_crosses_to_another_process_whole() -> None:
    error = pickle.loads(pickle.dumps(DataError("empty", "a.tsv", 3, "fill it")))
    assert (str(error), error.path, error.line, error.hint) == ("empty (a.tsv:3); fill it", "a.tsv", 3, "fill it")


def test_nearest() -> None:
    names = ["luong", "bahdanau", "seq2seq"]
    assert nearest("loung", names) == "did you mean 'luong'?"
    assert nearest("LUONG", names) == "did you mean 'luong'?"
    assert nearest("luong", ["Luong"]) == "did you mean 'Luong'?"
    assert nearest("zzz", names) == "valid: bahdanau, luong, seq2seq"
    assert nearest("", names) == "valid: bahdanau, luong, seq2seq"


def test_a_missing_library_names_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.colors"):  # which another test may have brought in
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra) as caught:
        require("matplotlib.colors", "plots")
    assert str(caught.value) == "this needs matplotlib, which is not installed; pip install 'eyeline[plots]'"


def test_a_broken_library_is_not_called_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken_library.py").write_text("import a_library_it_needs\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        MissingExtra, match=r"^broken_library cannot be imported: No module named 'a_library_it_needs'; pip install"
    ):
        require("broken_library", "plots")


def test_a_library_that_is_there_is_handed_over() -> None:
    assert require("json.decoder", "plots") is sys.modules["json.decoder"]
