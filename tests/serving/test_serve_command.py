"""`eyeline serve` as a user starts and ends it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from serving_live import Live

from eyeline.cli import main
from eyeline.cli.serve import named
from eyeline.errors import ConfigError

if TYPE_CHECKING:
    from toy_runs import ToyRuns


@contextmanager
def started(folder: Path, *words: str | Path) -> Iterator[tuple[Live, subprocess.Popen[bytes], Path]]:
    """The command, once it answers; its standard error."""
    said = folder / "said"
    with said.open("wb") as stream:
        command = [sys.executable, "-m", "eyeline", "serve", *map(str, words), "--port", "0", "--threads", "1"]
        process = subprocess.Popen(command, stderr=stream, stdout=stream)
    try:
        end = time.monotonic() + 120
        while b"serving " not in (text := said.read_bytes()):
            assert process.poll() is None, text
            assert time.monotonic() < end, text
            time.sleep(0.05)
        yield Live(int(text.partition(b"http://127.0.0.1:")[2].split()[0])), process, said
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_from_its_start_to_its_end(toys: ToyRuns, tmp_path: Path) -> None:
    """It listens on this machine alone; on SIGTERM what was begun is answered, and nothing new is let in."""
    with started(tmp_path, f"mine={toys.path('luong')}", toys.path("points")) as (service, process, said):
        assert service.predict("a b c")[0]["text"]
        got = service.post("/predict", {"inputs": [[[0.1, 0.2], [0.3, 0.4]]], "model": "points"})
        assert (got.status, got.json["model"]) == (200, "points")
        assert listening(service.port) == {"127.0.0.1"}
        answers: list[Any] = []
        long = {"inputs": ["a b"], "beam_size": 1, "min_length": 2000, "max_length": 2000, "attention": False}
        asking = threading.Thread(target=lambda: answers.append(service.post("/predict", long)))
        asking.start()
        time.sleep(0.3)  # it has begun
        assert asking.is_alive()
        process.send_signal(signal.SIGTERM)
        asking.join(60)
        assert process.wait(60) == 0
        assert answers[0].status == 200
        assert len(answers[0].json["predictions"][0]["tokens"]) == 2001  # END with them
        with pytest.raises(ConnectionRefusedError):
            service.get("/health")
        lines = said.read_text().split("\n")
        assert lines[0] == "reading mine, points"
        assert json.loads(lines[2])["route"] == "/predict"


def listening(port: int) -> set[str]:
    """The addresses on which a port is open, of those that this machine has."""
    found = set()
    for address in {"127.0.0.1", *(info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET))}:
        with socket.socket() as probe:
            probe.settimeout(2)
            if probe.connect_ex((str(address), port)) == 0:
                found.add(str(address))
    return found


def test_an_engine_answers_what_it_can_and_our_search_the_rest(toys: ToyRuns, tmp_path: Path) -> None:
    """Of the runs that it has a kind for."""
    with started(tmp_path, toys.path("guided"), toys.path("luong"), "--engine", "auto") as (service, process, _):
        loaded = Path(f"/proc/{process.pid}/maps")
        assert not loaded.exists() or "libctranslate2" in loaded.read_text()
        for run in ("guided", "luong"):
            model = toys.predictor(run)
            for asked in ({"attention": False}, {"attention": True}, {"attention": False, "min_length": 2}):
                (got,), (expected,) = service.predict("a b c", model=run, **asked), model.predict(["a b c"], **asked)
                assert (got["tokens"], got["score"]) == (expected.tokens, pytest.approx(expected.score, abs=1e-4))
                assert (got["alignment"] is not None) == asked["attention"]


def test_an_interrupt_is_told(toys: ToyRuns, tmp_path: Path) -> None:
    with started(tmp_path, toys.path("luong")) as (service, process, said):
        assert service.get("/nothing").status == 404
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert "interrupted: the service has ended" in said.read_text()


def test_a_second_signal_ends_it_at_once(toys: ToyRuns, tmp_path: Path) -> None:
    with started(tmp_path, toys.path("luong"), "--time-limit", "600") as (service, process, _):
        long = json.dumps({"inputs": ["a b"] * 200, "min_length": 5000, "max_length": 5000, "attention": False}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        connection.request("POST", "/predict", long, {"Content-Type": "application/json"})
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.poll() is None, "it finishes what it has begun"
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        connection.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{run}", "--host", "256.0.0.1"], "not an address"),
        (["{run}", "--port", "{taken}"], "cannot listen: address already in use"),
        (["{run}", "{run}"], "two runs are named luong"),
        (["{run}", "other={folder}/nothing"], "no such run directory"),
        (["{run}", "--api-keys", "{folder}/nothing"], "no such file"),
        (["{run}", "--port", "65536"], "less than or equal to 65535"),
        (["{run}", "--device", "cdua"], "did you mean 'cuda'?"),
        (["{run}", "--engine", "torhc"], "did you mean 'torch'?"),
        (["{run}", "--engine", "ctranslate2"], "model.architecture=luong"),
    ],
)
def test_what_the_user_can_mend_is_one_line(
    toys: ToyRuns, tmp_path: Path, capfd: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        values = {"run": str(toys.path("luong")), "taken": str(taken.getsockname()[1]), "folder": str(tmp_path)}
        given = [word.format(**values) for word in words]
        if "--port" not in given:
            given += ["--port", "0"]
        with pytest.raises(SystemExit) as ended:
            main(["serve", *given, "-q"])
    assert ended.value.code == 2
    error = capfd.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert said in error


def test_others_are_let_in_with_a_warning(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", str(tmp_path / "nothing"), "--host", "0.0.0.0", "--port", "0", "-q"])
    assert "whoever can reach this machine can ask; --api-keys FILE" in " ".join(capfd.readouterr().err.split())


def test_runs_have_names(tmp_path: Path) -> None:
    odd = tmp_path / "a=b"
    odd.mkdir()
    assert named(["runs/dates/", "mine=runs/other", str(odd)]) == {"dates": "runs/dates/", "mine": "runs/other", "a=b": str(odd)}
    for wrong in (["a", "x/a"], ["=a"]):
        with pytest.raises(ConfigError, match=r"name"):
            named(wrong)
    assert os.path.basename(next(iter(named(["."])))) == Path.cwd().name
