"""What it takes to predict a file of any size: rate, and the most memory that the command held; and what kills do to it.

    python benchmarks/predict_file.py --lines 10000 100000 1000000 --kills 3 --threads 1
    python benchmarks/predict_file.py --run RUN --input FILE --beam-size 5 --threads 1

Trains a small run (reversal, Luong's attention, briefly), then `eyeline predict RUN FILE -o OUT --beam-size 1`, a process of
its own for each number of lines, as a user types it. Prints a Markdown table. "Own" is what a process has allocated (RssAnon,
looked at fifty times a second; on Linux alone), "resident" counts mapped files, too. With --run it is your run and your file.

With --kills N the largest file is predicted once more: SIGKILL ends the command N times at random moments, each time it is told
to `--resume`, and in the end every byte is compared with the undisturbed output.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from prepare import MB, measured

MODEL = {"cell": "gru", "embedding_size": 32, "encoder_size": 32, "decoder_size": 64, "dropout": 0.0}
LENGTHS = "3-12"
MORE = 1.1  # how much of the undisturbed time passes until the last kill


def trained(folder: Path, common: list[str]) -> Path:
    """A run that reverses well enough to end its outputs."""
    pairs, run = folder / "pairs.tsv.gz", folder / "run"
    measured(["generate", "reversal", "--pairs", "20000", "--length", LENGTHS, "-o", pairs, "--seed", "1"], folder / "log")
    settings = {**{f"model.{name}": value for name, value in MODEL.items()}, "tokenizer.kind": "whitespace-symbols"}
    settings |= {"training.learning_rate": 0.005, "training.validate_every": 100_000, "training.checkpoint_every": 100_000}
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    train = ["train", "--architecture", "luong", "--train", pairs, "--columns", "source,target,-", "--out", run, "--steps", "500"]
    measured([*train, *words, *common], folder / "log")
    return run


def sources(folder: Path, lines: int) -> Path:
    """So many lines to be reversed."""
    pairs, path = folder / "lines.tsv", folder / f"{lines}.txt"
    measured(["generate", "reversal", "--pairs", str(lines), "--length", LENGTHS, "-o", pairs, "--seed", "2"], folder / "log")
    with pairs.open("rb") as table, path.open("wb") as text:
        text.writelines(line.split(b"\t", 1)[0] + b"\n" for line in table)
    pairs.unlink()
    return path


def killed(command: list[str | Path], out: Path, kills: int, seconds: float) -> list[float]:
    """Runs a command to its end in spite of so many kills; returns how long each process lived."""
    chance, lives = random.Random(1), []
    for _ in range(kills):
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "eyeline", *map(str, command), "-q"])
        time.sleep(chance.uniform(0.2, MORE) * seconds / kills)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not out.exists(), "it was killed before its end"
        lives.append(time.perf_counter() - began)
    lives.append(measured(command, out.with_suffix(".log")).seconds)
    return lives


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="of each file")
    parser.add_argument("--run", help="a run of yours, with --input")
    parser.add_argument("--input", help="the file of lines that it predicts")
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0, help="of the command with the largest file")
    parser.add_argument("--threads", type=int, default=1, help="of each command")
    parser.add_argument("--directory", help="where files are put for a while; about 100 bytes a line")
    options = parser.parse_args()
    os.environ.update({f"{name}_NUM_THREADS": str(options.threads) for name in ("OMP", "MKL", "RAYON")})
    common = ["--threads", str(options.threads), "--device", "cpu"]
    search = ["--beam-size", str(options.beam_size), *common]
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        folder = Path(name)
        run = Path(options.run) if options.run else trained(folder, common)
        print("| lines | seconds | processor seconds | lines a processor second | own, MB | resident, MB | written, MB |")
        print("| --: | --: | --: | --: | --: | --: | --: |")
        for given in [Path(options.input)] if options.run else (sources(folder, lines) for lines in options.lines):
            out = folder / f"{given.name}.out"
            cost = measured(["predict", run, given, "-o", out, *search], folder / "log")
            lines, spent = out.read_bytes().count(b"\n"), cost.processor_seconds
            memory, size = f"{cost.own / MB:,.0f} | {cost.resident / MB:,.0f}", out.stat().st_size / MB
            print(
                f"| {lines:,} | {cost.seconds:,.0f} | {spent:,.0f} | {lines / spent:,.0f} | {memory} | {size:,.1f} |", flush=True
            )
        if options.kills:
            again = folder / "again.out"
            command = ["predict", run, given, "-o", again, *search, "--resume"]
            lives = killed(command, again, options.kills, cost.seconds)
            same = "every byte is the same" if filecmp.cmp(out, again, shallow=False) else "THE BYTES DIFFER"
            lived = ", ".join(f"{life:,.0f}" for life in lives)
            print(f"\nKilled {options.kills} times, processes lived {lived} s: {same}.")


if __name__ == "__main__":
    main()
