"""`predict --cluster ray` with two processes on this machine: one is killed, then the command itself, and nothing is lost, and
nothing is there twice."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from toy_runs import ToyRuns, reversal

pytestmark = pytest.mark.slow
pytest.importorskip("ray")
SHARDS, ROWS = 6, 300
PORTS = (
    "--port",
    "--dashboard-agent-listen-port",
    "--dashboard-agent-grpc-port",
    "--runtime-env-agent-port",
    "--metrics-export-port",
    "--ray-client-server-port",
)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[dict[str, str], Path]]:
    """The environment of its clients, and its folder. Ray gives its own parts 15 seconds to start, which a busy machine may not
    keep: then it is tried again, and in the end left out."""
    ray = [sys.executable, "-c", "from ray.scripts.scripts import main; main()"]
    env = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # short: sockets have names of at most 107 bytes
        try:
            for _ in range(3):
                ports = free_ports(len(PORTS))
                given = [f"{name}={port}" for name, port in zip(PORTS, ports, strict=True)]
                start = ["start", "--head", "--num-cpus=2", "--include-dashboard=false", "--disable-usage-stats", *given]
                start += ["--node-ip-address=127.0.0.1", f"--temp-dir={folder}"]
                if subprocess.run([*ray, *start], env=env, capture_output=True).returncode == 0:
                    yield {**env, "RAY_ADDRESS": f"127.0.0.1:{ports[0]}"}, Path(folder)
                    break
                end_all(Path(folder))
            else:
                pytest.skip("Ray does not start here")
        finally:
            end_all(Path(folder))


def processes() -> Iterator[tuple[int, int, str]]:
    """(process, its parent, its command line) of all that run."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                yield int(entry.name), parent, (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (OSError, ValueError):
                continue


def end_all(folder: Path) -> None:
    """Ends what the cluster of this folder has left running."""
    for _ in range(100):
        ours = {process for process, _, command in processes() if str(folder) in command and process != os.getpid()}
        ours |= {process for process, parent, _ in processes() if parent in ours}
        if not ours:
            return
        for process in ours:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.1)


def workers(folder: Path) -> list[int]:
    """The processes of this cluster that hold a model."""
    found = list(processes())
    above = {process for process, _, command in found if "raylet" in command and str(folder) in command}
    return [process for process, parent, command in found if parent in above and command.startswith("ray::Worker")]


def wait_for(what: Any, seconds: float = 300.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)
    return found


def test_a_killed_worker_and_a_killed_command(toys: ToyRuns, cluster: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    env, folder = cluster
    given, out = tmp_path / "in", tmp_path / "out"
    given.mkdir()
    sources = [source for source, _ in reversal(SHARDS * ROWS, 11)]
    for number in range(SHARDS):
        part = sources[number * ROWS : (number + 1) * ROWS]
        parquet.write_table(arrow.table({"key": list(range(ROWS)), "text": part}), given / f"{number}.parquet")
    words = ["predict", str(toys.path("luong")), f"{given}/*.parquet", "--cluster", "ray", "--workers", "2", "-o", str(out)]
    command = [sys.executable, "-m", "eyeline", *words, "--columns", "text", "--beam-size", "2", "--device", "cpu", "-v"]

    def made() -> list[Path]:
        return sorted(out.glob("*.parquet"))

    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as first:
        wait_for(made)
        two = wait_for(lambda: len(found := workers(folder)) == 2 and found)
        os.kill(two[0], signal.SIGKILL)
        before = len(made())
        wait_for(lambda: len(made()) >= min(before + 3, SHARDS - 1))
        first.send_signal(signal.SIGKILL)
        first.wait()
    kept = {path: path.stat().st_mtime_ns for path in made()}
    done = subprocess.run(command, env=env, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    said = done.stderr.decode()
    assert f"written: {SHARDS} shards, {SHARDS * ROWS:,} rows ({out})" in said
    assert [path.name for path in made()] == [f"{number}.parquet" for number in range(SHARDS)]
    assert sorted(os.listdir(out)) == [path.name for path in made()]
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in made()}.items()  # what was whole is left alone
    outputs = [text for path in made() for text in parquet.read_table(path).column("prediction").to_pylist()]
    expected = toys.predictor("luong").predict(sources, beam_size=2, attention=False)
    assert outputs == [one.text for one in expected]
    assert [key for path in made() for key in parquet.read_table(path).column("key").to_pylist()] == list(range(ROWS)) * SHARDS
