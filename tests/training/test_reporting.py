"""What a person sees: plain lines where there is no terminal, warnings alone when quiet, forecasts that can be believed."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console
from small_runs import Listener, settings, train

from eyeline.training.reporting import Pace, Reporter, duration, peak_memory_mb


def pace(step: int = 30, left: float | None = 125.0, validation: float | None = 61.0) -> Pace:
    return Pace(step, 100, 1.23456, 20_345.6, 3e-4, left, validation)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (200, "3m20s"),
        (3599.7, "1h00m"),
        (7500, "2h05m"),
        (-3, "0s"),
        (90061, "25h01m"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_line_says_where_how_fast_and_how_long() -> None:
    line = pace().line()
    assert re.fullmatch(r"step 30/100  loss 1\.2346  20,346 tok/s  lr 0\.0003  validation in 1m01s  left 2m05s  mem \d+ MB", line)
    assert "left" not in pace(left=None).line()
    assert "validation" not in pace(validation=None).line()
    assert Pace(7, None, 1.0, 1.0, 1.0, None, None).line().startswith("step 7  loss")


def test_a_system_that_does_not_tell_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Windows, which has no `resource`."""
    assert peak_memory_mb() is not None
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory_mb() is None
    assert "mem" not in pace().line()


def test_plain_lines_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    reporter = Reporter(0, Console(file=out, width=40))
    reporter.start()
    for _ in range(3):
        reporter.pace(pace())
    reporter.note("markup [red]stays[/red] as it is, and a long line is not broken " + "x" * 60)
    reporter.stop()
    lines = out.getvalue().split("\n")
    assert len(lines) == 5
    assert lines[3].startswith("markup [red]stays[/red]")
    assert lines[3].endswith("x" * 60)
    assert "\x1b" not in out.getvalue()
    assert "\r" not in out.getvalue()


def test_a_live_line_on_a_terminal() -> None:
    out = io.StringIO()
    reporter = Reporter(0, Console(file=out, width=120, force_terminal=True))
    reporter.start()
    reporter.pace(pace())
    reporter.note("a note above it")
    reporter.stop()
    reporter.stop()
    assert "a note above it" in out.getvalue()
    assert "\x1b[" in out.getvalue()


def test_quiet_is_warnings_alone(tmp_path: Path) -> None:
    assert train(settings(tmp_path), tmp_path / "run", reporter=Listener(verbosity=-1)) == ""
    listener = Listener(verbosity=-1)
    train(settings(tmp_path, data={"valid": []}), tmp_path / "other", reporter=listener)
    assert listener.text == "warning: no validation pairs: the last weights are kept, and nothing can stop the run early\n"


def test_text_that_no_console_knows_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error of a machine with an ASCII locale."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace")
    reporter = Reporter(0, Console(file=stream, width=120))
    reporter.note("✓ 한 → 😀")
    reporter.warn("ế")
    stream.flush()
    assert raw.getvalue().startswith(b"\\u2713 \\ud55c")


class Clock:
    """Time that goes a second with every update."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def test_the_time_left_is_what_the_pace_so_far_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second an update: after 20 of 30 there are ten left, and five to the next validation; the same after a stop."""
    from eyeline.training import loop
    from eyeline.training.updates import Updater

    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)
    real = Updater._backward

    def backward(updater: Updater, *given: object) -> object:
        clock.now += 1
        return real(updater, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Updater, "_backward", backward)

    class Always(Listener):
        def wants_pace(self) -> bool:
            super().wants_pace()
            return True

    training = {"steps": 20, "validate_every": 25, "checkpoint_every": 100}
    train(settings(tmp_path, training=training), tmp_path / "run")
    said = train(settings(tmp_path, training={**training, "steps": 30}), tmp_path / "run", resume=True, reporter=Always())
    assert re.search(r"step 21/30 .* validation in 4s  left 9s", said)
    assert re.search(r"step 30/30 .* left 0s", said)
    tokens = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) tok/s", said)]
    assert all(10 <= number <= 36 for number in tokens), "tokens of one batch in its one second"


def test_the_end_of_a_duration_is_what_is_left_of_it(tmp_path: Path) -> None:
    class Always(Listener):
        def wants_pace(self) -> bool:
            super().wants_pace()
            return True

    reporter = Always()
    config = settings(tmp_path, training={"steps": None, "for": "0.3s", "validate_every": 10**6, "checkpoint_every": 10**6})
    said = train(config, tmp_path / "run", reporter=reporter)
    assert re.search(r"^step 1  loss", said, re.MULTILINE)
    assert "left 0s" in said
