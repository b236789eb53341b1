"""Commands run in this process, as fast as a function, or in one of their own, as a user runs them. Knows bytes and statuses."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from cli_process import Command, Done, python

from eyeline.cli import main

KEPT = ("PATH", "PYTHONPATH", "OMP_NUM_THREADS")


@pytest.fixture
def eyeline(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`eyeline("predict", run, stdin=b"…")` in this process."""

    def run(*arguments: str | Path, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii"))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return Done(int(ended.value.code or 0), out, err.decode("utf-8"))

    return run


@pytest.fixture(scope="session")
def process() -> Command:
    """`process("predict", run, stdin=b"…", env={…})` as a user runs it; `env` replaces all of the environment but KEPT."""

    def run(*arguments: str | Path, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Done:
        given = None if env is None else {**{name: os.environ[name] for name in KEPT if name in os.environ}, **env}
        done = subprocess.run(python(*arguments), input=stdin, capture_output=True, env=given, timeout=120)
        return Done(done.returncode, done.stdout, done.stderr.decode("utf-8"))

    return run
