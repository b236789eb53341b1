"""`eyeline compare` from settings to report, and what it does when it is stopped, started again, or a member fails."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console
from small_comparison import settings

from eyeline.compare import Machine, compare, summary
from eyeline.config_compare import Comparison
from eyeline.config_yaml import dump_yaml
from eyeline.errors import RunError
from eyeline.training import Reporter
from eyeline.training.claiming import Claim

MACHINE = Machine("cpu", 1, 2)


class Compared(NamedTuple):
    report: dict[str, Any]
    out: Path
    settings: dict[str, Any]
    said: str


def run(values: Mapping[str, Any], out: Path) -> tuple[dict[str, Any], str]:
    """Compares, and returns the report and what was said meanwhile."""
    said = io.StringIO()
    reporter = Reporter(0, Console(file=said, width=1000))
    return compare(Comparison.from_dict(dict(values)), out, MACHINE, reporter=reporter), said.getvalue()


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Two rungs with two seeds, and a third rung that cannot be trained."""
    folder = tmp_path_factory.mktemp("compared")
    values = settings(folder)
    broken = {"name": "broken", "architecture": "luong", "training": {"source_vectors": str(folder / "nowhere.vec")}}
    values["rungs"].append(broken)
    out = folder / "out"
    found, said = run({**values, "train_max_length": 5, "test_lengths": [3, 6, 9]}, out)
    return Compared(found, out, values, said)


def test_the_report_has_the_contracts_keys(compared: Compared) -> None:
    found = json.loads((compared.out / "report.json").read_text(encoding="utf-8"))
    assert found == json.loads(json.dumps(compared.report))
    assert {"budget", "data", "rungs", "differences"} <= found.keys()
    assert found["budget"] == {"steps": 12}
    for entry in found["rungs"]:
        assert {
            "name", "architecture", "parameters", "train_tokens_per_s", "peak_memory_mb", "train_time_s", "metrics", "by_length",
            "predict_sentences_per_s",
        } <= entry.keys()  # fmt: skip
        assert all(entry[name] > 0 for name in ("parameters", "train_tokens_per_s", "peak_memory_mb", "predict_sentences_per_s"))
        assert entry["metrics"]["exact_match"].keys() >= {"score", "low", "high", "signature", "seeds"}
        assert [bucket["max"] for bucket in entry["by_length"]] == [3, 6, 9]
    assert {entry["name"] for entry in found["rungs"]} == {"fixed vector", "luong"}
    assert all(entry.keys() >= {"a", "b", "metric", "delta", "low", "high", "p", "p_holm"} for entry in found["differences"])


def test_all_members_had_the_same_vocabularies_and_budget(compared: Compared) -> None:
    members = compared.out / "members"
    for side in ("source", "target"):
        contents = {path.read_bytes() for path in members.glob(f"*/run/{side}.tokenizer.json")}
        assert len(contents) == 1
    assert {entry["steps"] for entry in compared.report["rungs"]} == {12}


def test_training_is_short_and_the_test_is_whole(compared: Compared) -> None:
    data = compared.report["data"]
    assert data["train_source_tokens"]["max"] == 5
    assert data["left_out_by_length"]["train"] > 0
    assert data["pairs"]["test"] == 40
    assert data["test_source_tokens"]["max"] == 9
    assert [bucket["trained"] for bucket in compared.report["rungs"][0]["by_length"]] == [True, False, False]


def test_alignment_is_measured_where_a_rung_looks(compared: Compared) -> None:
    entries = {entry["name"]: entry for entry in compared.report["rungs"]}
    assert entries["fixed vector"]["alignment"] is None
    assert 0 <= entries["luong"]["alignment"]["aer"] <= 100
    for picture in compared.report["pictures"]:
        assert picture["rungs"]["fixed vector"] is None
        weights = picture["rungs"]["luong"]["weights"]
        assert all(abs(sum(row) - 1) < 0.02 for row in weights)


def test_curves_are_against_tokens_and_time(compared: Compared) -> None:
    for entry in compared.report["rungs"]:
        assert [curve["seed"] for curve in entry["curves"]] == [1, 2]
        for curve in entry["curves"]:
            assert [point["step"] for point in curve["points"]] == [6, 12]
            assert all(point["target_tokens"] > 0 and point["time_s"] > 0 for point in curve["points"])


def test_a_member_that_fails_is_told_and_the_others_go_on(compared: Compared) -> None:
    failed = compared.report["failed"]
    assert [(one["rung"], one["seed"]) for one in failed] == [("broken", 1), ("broken", 2)]
    assert "nowhere.vec" in failed[0]["error"]
    told = [line for line in compared.said.split("\n") if "broken, seed 1 failed" in line]
    assert len(told) == 1
    assert any("broken" in sentence for sentence in compared.report["conclusion"]["sentences"])


def test_the_page_is_written_and_names_every_rung(compared: Compared) -> None:
    page = (compared.out / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in ("fixed vector", "luong", "broken"))
    assert page.count("<details>") >= 6


def test_the_summary_ranks(compared: Compared) -> None:
    lines = summary(compared.report).split("\n")
    assert lines[0].split()[:2] == ["rung", "exact_match"]
    assert compared.report["conclusion"]["sentences"][0] in lines


def test_another_comparison_is_kept_out(compared: Compared) -> None:
    for changes, message in (
        ({"budget": {"steps": 13}}, "budget.steps=13"),
        ({"search": {"beam_size": 3}}, "search.beam_size=3"),
        ({"rungs": [{"name": "luong", "architecture": "luong"}]}, "another rung of this name"),
    ):
        values = {**compared.settings, "train_max_length": 5, "test_lengths": [3, 6, 9], **changes}
        with pytest.raises(RunError, match=message):
            run(values, compared.out)
    (compared.out.parent / "taken").mkdir()
    (compared.out.parent / "taken" / "thesis.txt").touch()
    with pytest.raises(RunError, match="something else stands here"):
        run(compared.settings, compared.out.parent / "taken")


def test_killed_it_goes_on_where_it_was_and_leaves_nobody_behind(tmp_path: Path) -> None:
    values = {**settings(tmp_path, steps=300), "seeds": [1]}
    values["rungs"] = values["rungs"][1:]
    values["training"] = {**values["training"], "validate_every": 150, "checkpoint_every": 10}
    (tmp_path / "c.yaml").write_text(dump_yaml(values), encoding="utf-8")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "eyeline", "compare", str(tmp_path / "c.yaml"), "--out", str(out), "--threads=1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    member = out / "members" / "luong-seed1"
    try:
        _wait(lambda: any((member / "run" / "checkpoints").glob("step-*")), process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    _wait(lambda: "stopped by SIGTERM" in (log := (member / "log.txt").read_text()) or "done after" in log, None)
    found, _ = run(values, out)
    assert found["rungs"][0]["steps"] == 300
    assert "going on from step" in (member / "log.txt").read_text() or "is finished at step" in (member / "log.txt").read_text()
    before = (member / "outputs.json").stat().st_mtime_ns
    _, said = run(values, out)
    assert "1 of 1 members are done already" in said
    assert (member / "outputs.json").stat().st_mtime_ns == before


def _wait(there: Any, process: subprocess.Popen[bytes] | None) -> None:
    until = time.monotonic() + 300
    while not there():
        assert time.monotonic() < until
        assert process is None or process.poll() is None
        time.sleep(0.05)


def test_two_comparisons_do_not_share_a_folder(tmp_path: Path) -> None:
    with Claim(tmp_path / "out", "comparison") as first:
        first.make(create=True)
        with pytest.raises(RunError, match=r"another comparison is at work here .*/out\); wait for it"):
            run(settings(tmp_path), tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())
