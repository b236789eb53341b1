"""What dropout, R-Drop and averaging are worth on French words to phones: each on and off, over several seeds, for any rungs.

    python replications/recipes.py SIGMORPHON2021_DIR --out runs/recipes --rungs bahdanau transformer --seeds 1 2 3 4 5

Settings and rungs are those of ladder.py, but for validations, which come more often, so that there is something to average.
R-Drop compares passes with different dropout, so there is none without it. What is trained is the same with an average and
without: every run is trained once, with `training.average: best-5`, and measured with its best single weights, with the mean of
its best five, and with what it keeps, which is the better of the two on the validation set.

What is finished is kept, so that a script that was stopped goes on where it was. Intervals are Student's over the seeds, at 95 %;
differences are of the same seeds, so that what a seed is worth by itself does not count.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from seeds import mean_and_half_width

from ladder import RUNGS, TASKS, folder_of, measured, training_arguments

TASK = TASKS["french"]
OFTEN = {"training.validate_every": "200", "training.average": "best-5"}
TRAINED = {  # how it is trained -> what of the rung's settings that changes
    "no dropout": {"model.dropout": "0"},
    "dropout": {},
    "dropout, R-Drop": {"training.r_drop": "5"},  # the paper's weight for translation (Liang et al. 2021, section 4.1)
}
SINGLE_OR_MEAN = ("single", "mean")
WEIGHTS = (*SINGLE_OR_MEAN, "kept")
Scores = dict[tuple[str, str, str], list[float]]  # rung, how it is trained, weights -> of each seed


@dataclass(frozen=True)
class Work:
    """One run to be trained, and measured with all of its weights."""

    rung: str
    trained: str
    seed: int

    def folder(self, out: Path) -> Path:
        return folder_of(self.rung, out) / folder_of(self.trained, Path(f"seed-{self.seed}"))


def work(it: Work, given: argparse.Namespace) -> None:
    """Trains a run where it is not finished, and measures its weights on the test set."""
    folder = it.folder(given.out)
    if (folder / "scores.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    settings = [f"--set={key}={value}" for key, value in {**OFTEN, **TRAINED[it.trained]}.items()]
    threads = f"--threads={given.threads}"
    arguments = [*training_arguments(it.rung, TASK, given.data, it.seed), *settings, given.budget or TASK.budget, threads]
    took = measured([*arguments, "--out", str(folder / "kept"), "--resume"], folder / "train.log")["seconds"]
    with_single_weights(folder / "kept", folder / "single")
    if not (folder / "mean").exists():
        measured(["average", str(folder / "kept"), "--best=5", "--out", str(folder / "mean")], folder / "average.log")
    scores = {}
    for weights in WEIGHTS:
        test = [str(given.data / file) for file in TASK.files["test"]]
        report = folder / f"{weights}.json"
        measured(["evaluate", str(folder / weights), *test, f"--json={report}", threads], folder / f"{weights}.log")
        scores[weights] = json.loads(report.read_text(encoding="utf-8"))["metrics"][TASK.metric]["score"]
    (folder / "scores.json").write_text(json.dumps({**scores, "training_s": took}) + "\n", encoding="utf-8")
    print(f"{it.rung}, {it.trained}, seed {it.seed}: {scores}, {took:.0f} s", file=sys.stderr, flush=True)


def with_single_weights(run: Path, copy: Path) -> None:
    """The same run with its best single weights, which it has beside the snapshots of the mean."""
    copy.mkdir(exist_ok=True)
    for path in (run / "config.yaml", *run.glob("*.tokenizer.json")):
        shutil.copyfile(path, copy / path.name)
    shutil.copyfile(run / "snapshots" / "best.safetensors", copy / "model.safetensors")


def found(rungs: list[str], seeds: list[int], out: Path) -> Scores:
    """The scores of all seeds, of what is finished."""
    scores: Scores = {}
    for rung in rungs:
        for trained in TRAINED:
            files = [Work(rung, trained, seed).folder(out) / "scores.json" for seed in seeds]
            if all(file.exists() for file in files):
                read = [json.loads(file.read_text(encoding="utf-8")) for file in files]
                scores |= {(rung, trained, weights): [values[weights] for values in read] for weights in WEIGHTS}
    return scores


def table(scores: Scores) -> str:
    """Markdown: the mean of each way over the seeds, and each seed."""
    lines = ["| rung | trained with | weights | exact match | each seed |", "| --- | --- | --- | ---: | --- |"]
    for (rung, trained, weights), each in scores.items():
        seeds = " · ".join(f"{score:.1f}" for score in each)
        lines.append(f"| {rung} | {trained} | {weights} | {interval(each)} | {seeds} |")
    return "\n".join(lines)


def differences(scores: Scores) -> str:
    """Markdown: what each recipe adds, of the same seeds, with the others as they are."""
    lines = ["| rung | what is switched on | with | exact match, on minus off |", "| --- | --- | --- | ---: |"]
    for rung in dict.fromkeys(rung for rung, _, _ in scores):
        steps = [
            *(("dropout", weights, ("no dropout", weights), ("dropout", weights)) for weights in SINGLE_OR_MEAN),
            *(
                ("R-Drop", f"dropout, {weights}", ("dropout", weights), ("dropout, R-Drop", weights))
                for weights in SINGLE_OR_MEAN
            ),
            *(("averaging", trained, (trained, "single"), (trained, "mean")) for trained in TRAINED),
        ]
        for what, beside, off, on in steps:
            if (rung, *off) in scores and (rung, *on) in scores:
                deltas = [b - a for a, b in zip(scores[rung, *off], scores[rung, *on], strict=True)]
                lines.append(f"| {rung} | {what} | {beside} | {interval(deltas, '+')} |")
    return "\n".join(lines)


def interval(scores: list[float], sign: str = "") -> str:
    mean, half = mean_and_half_width(scores)
    return f"{mean:{sign}.2f} ± {half:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of the data set, with fre_train.tsv")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rungs", nargs="+", choices=RUNGS, default=["bahdanau", "transformer"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--only", nargs="+", choices=TRAINED, default=list(TRAINED), help="these ways to train")
    parser.add_argument("--budget", help="such as --budget=--steps=20; default: 30 epochs")
    parser.add_argument("--jobs", type=int, default=1, help="runs trained at a time")
    parser.add_argument("--threads", type=int, default=1, help="of each")
    given = parser.parse_args()
    runs = [Work(rung, trained, seed) for seed in given.seeds for rung in given.rungs for trained in given.only]
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(lambda it: work(it, given), runs))
    scores = found(given.rungs, given.seeds, given.out)
    text = f"{table(scores)}\n\n{differences(scores)}\n"
    (given.out / "table.md").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
