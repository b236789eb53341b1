"""SIGKILL at random moments of runs of every rung, each of which goes on and must end as the run that was never disturbed.

    python tests/training/killing.py                 # 200 moments, shared out over all rungs
    python tests/training/killing.py --moments 20 --rungs luong transformer --seed 7

A run saves at every update, so that most moments fall into a save. After each kill: every checkpoint that has its name is whole,
the best weights and the settings can be read, no line of the journal but the last is cut. In the end weights, moments, random
states, counters, best weights and logged events are those of the undisturbed run, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from safetensors.torch import load_file
from small_runs import MODELS, OTHERS, Listener, rung_settings, same_run, train

from eyeline.config import Config
from eyeline.runs import open_run
from eyeline.training.checkpoints import list_checkpoints

RUNGS = (*MODELS, *OTHERS)
PARTS = {"a": {"average": "ema", "keep_checkpoints": 1}, "b": {"average": "last-2", "keep_checkpoints": 2}}  # in turns
SPAWN = multiprocessing.get_context("forkserver")  # imports torch once for all the runs
SPAWN.set_forkserver_preload(["eyeline.training", "torch.utils.tensorboard", "torch._dynamo"])  # the last by the first update


@dataclass
class Tally:
    """What was going on when the kills came, as the files tell."""

    moments: int = 0
    seen: Counter[str] = field(default_factory=Counter)


def work(config: Config, out: Path) -> None:
    """What the process to be killed does."""
    train(config, out, resume=True, reporter=Listener(verbosity=-1))


def configured(folder: Path, rung: str, part: str, steps: int) -> Config:
    often = {"steps": steps, "checkpoint_every": 1, "validate_every": 3, "accumulate": 2, **PARTS[part]}
    return rung_settings(folder, rung, training=often)


def kill_often(config: Config, out: Path, moments: int, draw: random.Random, tally: Tally, longest: float) -> None:
    """Starts the run again and again and kills it, `moments` times in all, then lets it end."""
    for _ in range(moments):
        process = SPAWN.Process(target=work, args=(config, out))
        process.start()
        _wait_a_moment(process, out, draw, longest)
        assert process.pid is not None
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL), f"the run failed by itself: {process.exitcode}"
        tally.moments += 1
        tally.seen.update([*_whole(out), "killed" if process.exitcode else "had ended"])
    work(config, out)
    assert not [path for path in out.rglob(".*")], "what killed processes left is gone"


def _wait_a_moment(process: BaseProcess, out: Path, draw: random.Random, longest: float) -> None:
    """Half of the moments are anywhere in the life of a process; the other half just after something was saved."""
    if draw.random() < 0.5:
        process.join(draw.uniform(0, longest))
        return
    before, limit = _newest(out), time.monotonic() + 60
    while process.is_alive() and _newest(out) == before and time.monotonic() < limit:
        time.sleep(0.001)
    process.join(draw.uniform(0, 0.05))


def _newest(out: Path) -> int:
    return max((step for step, _ in list_checkpoints(out / "checkpoints")), default=-1)


def _whole(out: Path) -> Iterator[str]:
    """Reads all that is there; what was only begun is told."""
    if not (out / "config.yaml").exists():
        yield "before the settings were written"
        return
    open_run(out)
    for path in (*out.glob("*.safetensors"), *out.glob("snapshots/*.safetensors")):
        load_file(path)
    kept = list_checkpoints(out / "checkpoints")
    for _, path in kept:
        load_file(path / "model.safetensors")
        load_file(path / "optimizer.safetensors")
        json.loads((path / "state.json").read_bytes())
    lines = (out / "metrics.jsonl").read_bytes().split(b"\n") if (out / "metrics.jsonl").exists() else [b""]
    for line in lines[:-1]:
        json.loads(line)
    yield "with half a line in the journal" if lines[-1] else "with whole lines in the journal"
    yield "before the first checkpoint" if not kept else "with checkpoints"
    if any(out.rglob("*.partial")):
        yield "in the middle of a save"


def kill_all(folder: Path, rungs: list[str], moments: int, seed: int, steps: int = 12) -> Tally:
    """The whole test; raises AssertionError where a run does not end as it should."""
    draw, tally = random.Random(seed), Tally()
    shares = [moments // len(rungs) + (place < moments % len(rungs)) for place in range(len(rungs))]
    for number, (rung, share) in enumerate(zip(rungs, shares, strict=True)):
        if not share:
            continue
        part = "ab"[number % 2]
        config = configured(folder, rung, part, steps)
        began = time.monotonic()
        work(config, folder / f"{rung}-whole")
        longest = time.monotonic() - began
        kill_often(config, folder / f"{rung}-killed", share, draw, tally, longest)
        same_run(folder / f"{rung}-whole", folder / f"{rung}-killed")
        print(f"{rung}: {share} moments, the same run in the end", file=sys.stderr, flush=True)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=200, help="kills in all")
    parser.add_argument("--rungs", nargs="+", choices=RUNGS, default=list(RUNGS), help="which rungs; default: all")
    parser.add_argument("--seed", type=int, default=1, help="decides when")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        tally = kill_all(Path(folder), given.rungs, given.moments, given.seed)
        for what, count in sorted(tally.seen.items()):
            print(f"{count:5} {what}")
        print(f"{tally.moments} moments, {len(given.rungs)} rungs: every run ended as if it had not been disturbed")


if __name__ == "__main__":
    main()
