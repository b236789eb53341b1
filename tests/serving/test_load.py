"""The benchmark of the service, at a tiny size: what it shows has to hold at any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from toy_runs import ToyRuns

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "serving.py"


@pytest.mark.slow
def test_under_load_at_its_end_killed_and_started_again(toys: ToyRuns, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("a b c\nf\nd e f a b c\nb b\n")
    sizes = ["--requests", "80", "--different", "24", "--clients", "8", "--early", "20", "--late", "80", "--fuzzed", "80"]
    command = [sys.executable, str(BENCHMARK), str(toys.path("luong")), str(lines), "--threads", "1", *sizes]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    rows = dict(row.strip("| ").split(" | ") for row in done.stdout.split("\n")[2:] if row)
    assert rows["answers as if asked alone"].endswith("others 0")
    assert "exit status 0" in rows["SIGTERM under load"]
    ended = rows["SIGTERM under load"].split(";")[0].split(", ")
    assert {status.split(":")[0] for status in ended} == {"no answer", "200"}
    assert "no answer" in rows["SIGKILL under load"]
    assert rows["started again on the same port"].startswith("200 after")
    assert rows["80 fuzzed bodies"].endswith("wrong: 0")
