"""Words to phones in every language of a folder: single models, the best of them by dev, and their ensemble.

    python replications/languages.py SIGMORPHON2021_DIR --out runs/g2p --seeds 1 2 3 4 5
    python replications/languages.py SIGMORPHON2021_DIR --out runs/g2p --seeds 1 2 3 4 5 --languages ady gre ita

Each language is trained with the same settings but for what follows from its size: smaller batches and more epochs where there
are 800 words. Runs are made by `eyeline train` and measured by `eyeline evaluate`, in processes of their own; what is finished
is kept, so that a script that was stopped goes on where it was, and seeds and languages may be added. Prints a Markdown
table beside the published word error rates (SIGMORPHON 2021 task 1, baseline: an ensemble of neural transducers).
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seeds import mean_and_half_width, run

PUBLISHED = {  # word error rate, test
    "eng_us": 41.94,
    "arm_e": 7.0,
    "bul": 18.3,
    "dut": 14.7,
    "fre": 8.5,
    "hbs_latn": 32.1,
    "hun": 1.8,
    "jpn_hira": 5.2,
    "kor": 16.3,
    "ady": 22.0,
    "gre": 21.0,
    "ita": 19.0,
    "khm": 34.0,
    "lav": 55.0,
    "mlt_latn": 19.0,
    "rum": 10.0,
    "slv": 49.0,
}
ALL = {
    "tokenizer.kind": "character",
    "tokenizer.target.kind": "whitespace-symbols",
    "model.embedding_size": "128",
    "model.encoder_size": "128",
    "model.decoder_size": "256",
    "model.attention_size": "128",
    "model.dropout": "0.35",
    "training.learning_rate": "2e-3",
    "training.schedule": "linear",
    "training.warmup_steps": "200",
    "training.label_smoothing": "0.1",
    "training.checkpoint_every": "4000",
    "training.metric": "exact_match",
}
OWN = {"kor": {"data.normalization.source": "jamo", "data.normalization.target": "nfc"}}


@dataclass(frozen=True)
class Size:
    """What follows from the number of training words."""

    words: int  # at most
    epochs: int
    settings: dict[str, str]


SIZES = (
    Size(1_000, 100, {"training.batch_tokens": "256", "training.validate_every": "150"}),
    Size(10_000, 40, {"training.batch_tokens": "1024", "training.validate_every": "400"}),
    Size(100_000, 20, {"training.batch_tokens": "2048", "training.validate_every": "400"}),
)


def size_of(train: Path) -> Size:
    with train.open("rb") as lines:
        words = sum(1 for _ in lines)
    return next(size for size in SIZES if words <= size.words)


def evaluated(runs: list[Path], pairs: Path, result: Path, threads: str) -> dict[str, Any]:
    """What `eyeline evaluate` finds of a run, or of several that answer together."""
    if not result.exists():
        others = [word for other in runs[1:] for word in ("--ensemble", str(other))]
        made = result.with_suffix(".new")
        run(["evaluate", str(runs[0]), str(pairs), *others, f"--json={made}", threads], result.with_suffix(".log"))
        made.rename(result)
    return json.loads(result.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def wrong(found: dict[str, Any]) -> float:
    """The word error rate of an evaluation."""
    return 100.0 - float(found["metrics"]["exact_match"]["score"])


def language(name: str, given: argparse.Namespace) -> str:
    """Trains and measures what is not done yet; the language's line of the table."""
    train, dev, test = (given.data / f"{name}_{part}.tsv" for part in ("train", "dev", "test"))
    size, threads = size_of(train), f"--threads={given.threads}"
    runs, on_dev, on_test = list[Path](), list[float](), list[float]()
    for seed in given.seeds:
        folder = given.out / name / f"seed-{seed}"
        settings = [f"--set={key}={value}" for key, value in {**ALL, **size.settings, **OWN.get(name, {})}.items()]
        if not (folder / "dev.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            made = [
                "--architecture",
                given.architecture,
                "--train",
                str(train),
                "--valid",
                str(dev),
                "--out",
                str(folder / "run"),
            ]
            run(
                ["train", *made, *settings, "--resume", f"--epochs={size.epochs}", f"--seed={seed}", threads],
                folder / "train.log",
            )
        on_dev.append(wrong(evaluated([folder / "run"], dev, folder / "dev.json", threads)))
        on_test.append(wrong(evaluated([folder / "run"], test, folder / "test.json", threads)))
        runs.append(folder / "run")
    best = min(zip(on_dev, on_test, strict=True))[1]
    mean, half = mean_and_half_width(on_test)
    together = "–"
    if len(runs) > 1:
        found = evaluated(runs, test, given.out / name / f"ensemble-of-{len(runs)}.json", threads)
        score = found["metrics"]["exact_match"]
        together = f"{wrong(found):.1f} [{100 - score['high']:.1f}, {100 - score['low']:.1f}]"
    spread = f"{mean:.1f} ± {half:.1f}" if len(runs) > 1 else f"{mean:.1f}"
    each = " · ".join(f"{score:.1f}" for score in on_test)
    line = f"| {name} | {PUBLISHED[name]:.1f} | {together} | {best:.1f} | {spread} | {each} |"
    print(line, file=sys.stderr, flush=True)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of the data set, with ady_train.tsv and the others")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--languages", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--architecture", default="bahdanau")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    lines = [language(name, given) for name in given.languages]
    print("| language | published, ensemble | ours, ensemble | best single by dev | mean of the singles | each seed |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
