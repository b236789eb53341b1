"""Every rung on one data set under one budget, and the table of docs/ladder.md.

    python replications/ladder.py french SIGMORPHON2021_DIR --out runs/ladder-french
    python replications/ladder.py captions MULTI30K_DIR --out runs/ladder-captions

Each rung is trained by `eyeline train` and measured by `eyeline evaluate`, in processes of their own; what is finished is kept,
so that a run that was stopped goes on where it was. `--jobs 2` trains two rungs at a time, each on one thread.

Speeds are measured afterwards, one rung at a time with `--speed-threads`, on what should then be a quiet machine: training over
the first 60 updates, prediction over the test set with the trained weights.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Task:
    """A data set, and what is the same for all rungs."""

    files: dict[str, list[str]]  # --train, --valid and the test set, below the data directory
    settings: dict[str, str]
    metric: str
    budget: str  # an option of `eyeline train`


TASKS = {
    "french": Task(
        {"train": ["fre_train.tsv"], "valid": ["fre_dev.tsv"], "test": ["fre_test.tsv"]},
        {
            "tokenizer.kind": "character",
            "tokenizer.target.kind": "whitespace-symbols",
            "training.batch_tokens": "1024",
            "training.label_smoothing": "0.1",
            "training.warmup_steps": "400",
            "training.schedule": "linear",
            "training.validate_every": "500",
            "training.checkpoint_every": "4000",
            "training.metric": "exact_match",
        },
        "exact_match",
        "--epochs=30",
    ),
    "captions": Task(
        {
            "train": ["train.de", "train.en"],
            "valid": ["val.de", "val.en"],
            "test": ["test_2016_flickr.de", "test_2016_flickr.en"],
        },
        {
            "data.source_language": "de",
            "data.target_language": "en",
            "data.lowercase": "true",
            "tokenizer.kind": "bpe",
            "tokenizer.size": "4000",
            "tokenizer.shared": "true",
            "training.batch_tokens": "1024",
            "training.label_smoothing": "0.1",
            "training.warmup_steps": "200",
            "training.schedule": "linear",
            "training.validate_every": "400",
            "training.checkpoint_every": "4000",
            "training.metric": "loss",
        },
        "bleu",
        "--epochs=2",
    ),
}

RECURRENT = {
    "model.embedding_size": "128",
    "model.encoder_size": "128",
    "model.decoder_size": "256",
    "model.dropout": "0.3",
    "training.learning_rate": "2e-3",
}
ADDITIVE = {**RECURRENT, "model.attention_size": "128"}
TRANSFORMER = {
    "model.size": "128",
    "model.heads": "4",
    "model.feedforward_size": "512",
    "model.dropout": "0.1",
    "training.learning_rate": "2e-3",
}
STATE_SPACE = {"model.size": "128", "model.dropout": "0.1", "training.learning_rate": "2e-3"}

RUNGS = {  # name in the table -> architecture and its settings
    "seq2seq": ("seq2seq", {**RECURRENT, "model.encoder_size": "256"}),
    "seq2seq, context at every step": ("seq2seq", {**RECURRENT, "model.encoder_size": "256", "model.context": "every-step"}),
    "bahdanau": ("bahdanau", ADDITIVE),
    "bahdanau, coverage (Tu, gated)": ("bahdanau", {**ADDITIVE, "model.coverage": "gated"}),
    "luong, general": ("luong", RECURRENT),
    "luong, local-p": ("luong", {**RECURRENT, "model.scope": "local-p", "model.window": "5"}),
    "luong, projected-dot": ("luong", {**RECURRENT, "model.score": "projected-dot"}),
    "pointer-generator, coverage (See)": ("pointer-generator", ADDITIVE),
    "transformer": ("transformer", TRANSFORMER),
    "pointer-generator-transformer": ("pointer-generator-transformer", TRANSFORMER),
    "state-space": ("state-space", STATE_SPACE),
}


def measured(arguments: list[str], log: Path) -> dict[str, float]:
    """Runs a command of eyeline to its end; its wall-clock time and the most memory it held.

    Raises:
        SystemExit: it failed; `log` says why.
    """
    with log.open("w") as stream:
        began = time.monotonic()
        process = subprocess.Popen([sys.executable, "-m", "eyeline", *arguments], stdout=stream, stderr=stream)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"eyeline {' '.join(arguments)} failed: see {log}")
    return {"seconds": time.monotonic() - began, "peak_mb": usage.ru_maxrss / 1024}


def folder_of(name: str, out: Path) -> Path:
    return out / name.replace(",", "").replace(" ", "-").replace("(", "").replace(")", "")


def training_arguments(name: str, task: Task, data: Path, seed: int) -> list[str]:
    architecture, own = RUNGS[name]
    files = {part: [str(data / file) for file in names] for part, names in task.files.items()}
    settings = [f"--set={key}={value}" for key, value in {**task.settings, **own}.items()]
    given = ["--train", *files["train"], "--valid", *files["valid"]]
    return ["train", "--architecture", architecture, *given, *settings, f"--seed={seed}"]


def quality(name: str, task: Task, data: Path, options: argparse.Namespace) -> None:
    """Trains a rung and measures what it predicts."""
    folder = folder_of(name, options.out)
    if (folder / "quality.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    arguments = training_arguments(name, task, data, options.seed)
    arguments += ["--out", str(folder / "run"), "--resume", options.budget or task.budget, f"--threads={options.threads}"]
    training = measured(arguments, folder / "train.log")
    report = folder / "evaluation.json"
    test = [str(data / file) for file in task.files["test"]]
    threads = f"--threads={options.threads}"
    measured(["evaluate", str(folder / "run"), *test, "--json", str(report), threads], folder / "evaluate.log")
    found = json.loads(report.read_text())
    score = found["metrics"][task.metric]
    values = {"score": score, "perplexity": found["perplexity"], "repetition_rate": found["repetition_rate"]}
    values |= {"parameters": parameters(folder / "run"), "train_s": training["seconds"]}
    (folder / "quality.json").write_text(json.dumps(values, indent=1))
    print(f"{name}: {score['score']:.2f} after {training['seconds']:.0f} s", file=sys.stderr)


def speed(name: str, task: Task, data: Path, options: argparse.Namespace) -> None:
    """Times a rung's first updates, and its predictions with the weights that are there."""
    folder = folder_of(name, options.out)
    if (folder / "speed.json").exists():
        return
    shutil.rmtree(folder / "speed", ignore_errors=True)
    threads = f"--threads={options.speed_threads}"
    arguments = [*training_arguments(name, task, data, options.seed), "--out", str(folder / "speed"), "--steps=60", threads]
    training = measured([*arguments, "--set=training.metric=loss"], folder / "speed.log")
    events = [json.loads(line) for line in (folder / "speed" / "metrics.jsonl").read_text().splitlines()]
    rates = sorted(event["tokens_per_s"] for event in events if event["split"] == "train")
    report = folder / "speed-evaluation.json"
    test = [str(data / file) for file in task.files["test"]]
    searching = measured(["evaluate", str(folder / "run"), *test, "--json", str(report), threads], folder / "evaluate.log")
    values = {
        "train_tokens_per_s": rates[len(rates) // 2],
        "train_peak_mb": training["peak_mb"],
        "predict_sentences_per_s": json.loads(report.read_text())["speed"]["sentences_per_s"],
        "predict_peak_mb": searching["peak_mb"],
    }
    (folder / "speed.json").write_text(json.dumps(values, indent=1))


def parameters(folder: Path) -> int:
    done = subprocess.run([sys.executable, "-m", "eyeline", "info", str(folder), "--json"], capture_output=True, text=True)
    return int(json.loads(done.stdout)["parameters"])


def table(names: list[str], out: Path, metric: str) -> str:
    """The results as Markdown."""
    lines = [
        f"| rung | parameters | {metric} | perplexity | training, target tokens/s | training, MB | prediction, sentences/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        folder = folder_of(name, out)
        it = json.loads((folder / "quality.json").read_text()) | json.loads((folder / "speed.json").read_text())
        score = "{score:.1f} [{low:.1f}, {high:.1f}]".format_map(it["score"])
        lines.append(
            f"| {name} | {it['parameters']:,} | {score} | {it['perplexity']:.3f} | {it['train_tokens_per_s']:,.0f} "
            f"| {it['train_peak_mb']:,.0f} | {it['predict_sentences_per_s']:,.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("data", type=Path, help="the folder of the data set")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", help="such as --budget=--for=10m; default: the task's epochs")
    parser.add_argument("--rungs", nargs="*", choices=RUNGS, default=list(RUNGS))
    parser.add_argument("--jobs", type=int, default=1, help="rungs trained at a time")
    parser.add_argument("--threads", type=int, default=1, help="of each")
    parser.add_argument("--speed-threads", type=int, default=2)
    parser.add_argument("--no-speed", action="store_true", help="leave speeds, and so the table, for later")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    task = TASKS[options.task]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda name: quality(name, task, options.data, options), options.rungs))
    if options.no_speed:
        return
    for name in options.rungs:
        speed(name, task, options.data, options)
    text = table(options.rungs, options.out, task.metric)
    (options.out / "table.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
