"""One config over several seeds: each run's score on a test set, their mean, and how sure the mean is.

    python replications/seeds.py CONFIG --train PATH… --valid PATH… --test PATH… --seeds 1 2 3 4 5 --out runs/NAME

Each seed is trained by `eyeline train` and measured by `eyeline evaluate`, in processes of their own; what is finished is kept,
so that a run that was stopped goes on where it was. The interval of the mean is Student's, at 95 %: it holds for other seeds on
the same test lines, and says nothing of other lines, for which each score has a bootstrap interval of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from eyeline.lab.timing import student


def run(arguments: list[str], log: Path) -> None:
    """Runs a command of eyeline to its end. Raises SystemExit where it fails."""
    with log.open("a") as stream:
        failed = subprocess.run([sys.executable, "-m", "eyeline", *arguments], stdout=stream, stderr=stream).returncode
    if failed:
        raise SystemExit(f"eyeline {' '.join(arguments)} failed: see {log}")


def measured(seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """The evaluation of one seed's run, which is trained where that has not been done."""
    folder = given.out / f"seed-{seed}"
    result = folder / "evaluation.json"
    if not result.exists():
        folder.mkdir(parents=True, exist_ok=True)
        threads = f"--threads={given.threads}"
        parts = [word for name in ("train", "valid") if getattr(given, name) for word in (f"--{name}", *getattr(given, name))]
        settings = [f"--set={setting}" for setting in given.set]
        began = time.monotonic()
        train = ["train", given.config, *parts, *settings, "--out", str(folder / "run"), "--resume", f"--seed={seed}", threads]
        run(train, folder / "train.log")
        took = time.monotonic() - began
        found = folder / "found.json"
        run(["evaluate", str(folder / "run"), *given.test, f"--json={found}", threads], folder / "evaluate.log")
        values = json.loads(found.read_text(encoding="utf-8")) | {"training_s": took}
        result.write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return json.loads(result.read_text(encoding="utf-8"))


def mean_and_half_width(scores: list[float]) -> tuple[float, float]:
    """The mean, and half of its 95 % interval by Student's t; infinite for one score."""
    n = len(scores)
    mean = sum(scores) / n
    if n < 2:
        return mean, float("inf")
    deviation = (sum((score - mean) ** 2 for score in scores) / (n - 1)) ** 0.5
    return mean, student(n - 1) * deviation / n**0.5


def table(metric: str, found: dict[int, dict[str, Any]]) -> str:
    lines = [f"| seed | {metric} | training |", "| --- | ---: | ---: |"]
    for seed, values in found.items():
        score = values["metrics"][metric]
        minutes, seconds = divmod(round(values["training_s"]), 60)
        lines.append(f"| {seed} | {score['score']:.1f} [{score['low']:.1f}, {score['high']:.1f}] | {minutes} m {seconds:02d} s |")
    mean, half = mean_and_half_width([values["metrics"][metric]["score"] for values in found.values()])
    return "\n".join([*lines, f"| mean of {len(found)} | {mean:.1f} ± {half:.1f} | |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    for name in ("train", "valid", "test"):
        parser.add_argument(f"--{name}", nargs="+", default=[], required=name != "valid")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, as of `eyeline train`")
    parser.add_argument("--metric", default="exact_match")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found: dict[int, dict[str, Any]] = {}
    for seed in given.seeds:
        found[seed] = measured(seed, given)
        print(f"seed {seed}: {found[seed]['metrics'][given.metric]['score']:.2f}", file=sys.stderr, flush=True)
    text = table(given.metric, found)
    (given.out / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
