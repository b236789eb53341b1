"""SIGKILL at random moments of runs of every rung, each of which goes on and must end as the run that was never disturbed.

    python tests/training/killing.py --kills 200     # 200 kills, shared out over all rungs
    python tests/training/killing.py --kills 20 --rungs luong transformer --seed 7

A run saves at every update, so that many kills fall into a save. Only a kill that ended a living process counts; a run that came
to its end first is compared, and another is begun. After each kill every checkpoint that has its name is whole, the best weights
and the settings can be read, and no line of the journal but the last is cut. In the end every file of weights, moments and random
states is that of the undisturbed run, byte for byte, and so are position, schedule, counters and logged events.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from small_runs import MODELS, OTHERS, Listener, rung_settings, same_run, train

from eyeline.config import Config
from eyeline.runs import open_run
from eyeline.training.checkpoints import list_checkpoints

RUNGS = (*MODELS, *OTHERS)
OFTEN = {"checkpoint_every": 1, "validate_every": 3, "accumulate": 2, "warmup_steps": 2}
WAYS: tuple[dict[str, Any], ...] = (  # of the rungs in turns
    {"average": "ema", "keep_checkpoints": 1, "workers": 1, "schedule": "linear"},
    {"average": "last-2", "keep_checkpoints": 2, "workers": 4, "schedule": "plateau", "decay_patience": 0},
    {"optimizer": "schedule-free", "keep_checkpoints": 3, "workers": 0},
)
SPAWN = multiprocessing.get_context("forkserver")  # imports torch once for all the runs
SPAWN.set_forkserver_preload(["eyeline.training", "torch.utils.tensorboard", "torch._dynamo"])  # the last by the first update


@dataclass
class Tally:
    """How many processes were killed, and what was going on when they were, as the files tell."""

    kills: int = 0
    ended: int = 0  # came to their end before they could be killed
    seen: Counter[str] = field(default_factory=Counter)

    def summary(self) -> str:
        lines = [f"{count:6,} {what}" for what, count in sorted(self.seen.items())]
        return "\n".join([f"{self.kills:6,} processes killed, {self.ended} that ended first", *lines])


def work(config: Config, out: Path) -> None:
    """What the process to be killed does."""
    torch.set_num_threads(1)
    train(config, out, resume=True, reporter=Listener(verbosity=-1))


def start(config: Config, out: Path) -> BaseProcess:
    process = SPAWN.Process(target=work, args=(config, out))
    process.start()
    return process


def kill_often(config: Config, whole: Path, kills: int, draw: random.Random, longest: float, tally: Tally) -> None:
    """Starts runs of `config` and kills them, `kills` times in all; each goes on to its end, which must be that of `whole`.

    Raises:
        AssertionError: one does not, or what a kill left is not sound.
    """
    out, made = whole.with_name(f"{whole.name}-killed"), 0
    while made < kills:
        process = start(config, out)
        _wait_a_moment(process, out, draw, longest)
        process.kill()  # nothing happens to one that is over
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL), f"the run failed by itself: {process.exitcode}"
        if process.exitcode == 0:
            tally.ended += 1
            same_to_the_byte(whole, out)
            shutil.rmtree(out)
        else:
            made += 1
            tally.kills += 1
            tally.seen.update(_left_by_a_kill(out))
    work(config, out)
    same_to_the_byte(whole, out)
    shutil.rmtree(out)


def _wait_a_moment(process: BaseProcess, out: Path, draw: random.Random, longest: float) -> None:
    """Half of the moments are anywhere in the life of a process; the other half just after something was saved."""
    if draw.random() < 0.5:
        process.join(draw.uniform(0, longest))
        return
    before, limit = _newest(out), time.monotonic() + 300
    while process.is_alive() and _newest(out) == before and time.monotonic() < limit:
        time.sleep(0.001)
    process.join(draw.uniform(0, longest / 20))


def _newest(out: Path) -> int:
    return max((step for step, _ in list_checkpoints(out / "checkpoints")), default=-1)


def _left_by_a_kill(out: Path) -> Iterator[str]:
    """Reads all that is there, which must be sound, and tells how far the run was."""
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
    journal = out / "metrics.jsonl"
    lines = journal.read_bytes().split(b"\n") if journal.exists() else [b""]
    for line in lines[:-1]:
        json.loads(line)
    yield "with checkpoints" if kept else "before the first checkpoint"
    if lines[-1]:
        yield "in the middle of a line of the journal"
    if any(out.rglob("*.partial")):
        yield "in the middle of a save"


def same_to_the_byte(one: Path, other: Path) -> None:
    """Two runs are over and ended alike, in every byte that does not depend on the clock; nothing else lies around."""
    same_run(one, other)
    names = [{str(path.relative_to(run)) for path in run.rglob("*") if "tensorboard" not in path.parts} for run in (one, other)]
    assert names[0] == names[1], f"what killed processes left is gone: {sorted(names[0] ^ names[1])}"
    for name in sorted(names[0]):
        if name.endswith((".safetensors", ".tokenizer.json", ".yaml")):
            assert (one / name).read_bytes() == (other / name).read_bytes(), name


def kill_all(folder: Path, rungs: list[str], kills: int, seed: int, steps: int = 12) -> Tally:
    """The whole test; raises AssertionError where a run does not end as it should."""
    draw, tally = random.Random(seed), Tally()
    for number, rung in enumerate(rungs):
        share = kills // len(rungs) + (number < kills % len(rungs))
        if not share:
            continue
        config = rung_settings(folder / "pairs", rung, training={**OFTEN, "steps": steps, **WAYS[number % len(WAYS)]})
        began = time.monotonic()
        process = start(config, folder / rung)
        process.join()
        assert process.exitcode == 0, "the undisturbed run fails by itself"
        kill_often(config, folder / rung, share, draw, time.monotonic() - began, tally)
        print(f"{rung}: {share} kills, the same run in the end", file=sys.stderr, flush=True)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="in all")
    parser.add_argument("--rungs", nargs="+", choices=RUNGS, default=list(RUNGS), help="which rungs; default: all")
    parser.add_argument("--seed", type=int, default=1, help="decides when")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that are started
    with tempfile.TemporaryDirectory() as folder:
        tally = kill_all(Path(folder), given.rungs, given.kills, given.seed)
    print(f"{tally.summary()}\n{len(given.rungs)} rungs: every run ended as if it had not been disturbed")


if __name__ == "__main__":
    main()
