"""Every language of a data set: single models, the best of them by dev, and their ensemble, beside what was published.

    python replications/languages.py g2p SIGMORPHON2021_DIR --out runs/g2p --seeds 1 2 3 4 5
    python replications/languages.py inflection SIGMORPHON2022_DIR --out runs/inflection --seeds 1 --languages hun kor

The data sets, their settings and the published figures stand in `families.py`. Runs are made by `eyeline train` and measured by
`eyeline evaluate`, in processes of their own; what is finished is kept, so that a script that was stopped goes on where it was,
and seeds and languages may be added. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from families import FAMILIES, Family
from seeds import mean_and_half_width, run

Files = tuple[Path, Path, Path]  # of train, dev and test


def trained(family: Family, name: str, files: Files, folder: Path, seed: int, given: argparse.Namespace) -> Path:
    """The run of a seed, trained where it is not finished."""
    train, dev, _ = files
    size, done = family.size(train), folder / "run"
    if (folder / "dev.json").exists():
        return done
    folder.mkdir(parents=True, exist_ok=True)
    settings = [f"--set={key}={value}" for key, value in {**family.settings, **size.settings, **family.own.get(name, {})}.items()]
    parts = ["--train", str(train), "--valid", str(dev), "--out", str(done)]
    bound = given.budget or f"--epochs={size.epochs}"
    words = ["train", "--architecture", given.architecture or family.architecture, *parts, *settings, "--resume", bound]
    run([*words, f"--seed={seed}", f"--threads={given.threads}"], folder / "train.log")
    return done


def evaluated(runs: list[Path], pairs: Path, result: Path, threads: int) -> dict[str, Any]:
    """What `eyeline evaluate` finds of a run, or of several that answer together."""
    if not result.exists():
        others = [word for other in runs[1:] for word in ("--ensemble", str(other))]
        made = result.with_suffix(".new")
        run(["evaluate", str(runs[0]), str(pairs), *others, f"--json={made}", f"--threads={threads}"], result.with_suffix(".log"))
        made.rename(result)
    return json.loads(result.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def figures(found: dict[str, Any], wrong: bool) -> tuple[float, float, float]:
    """Exact match of an evaluation and its interval, or what is left of a hundred."""
    score, low, high = (float(found["metrics"]["exact_match"].get(key, 0.0)) for key in ("score", "low", "high"))
    return (100 - score, 100 - high, 100 - low) if wrong else (score, low, high)


def language(family: Family, name: str, given: argparse.Namespace) -> str:
    """Trains and measures what is not done yet; the language's line of the table."""
    files = family.paths(given.data, name, given.out / name)
    runs, on_dev, on_test = list[Path](), list[float](), list[tuple[float, float, float]]()
    for seed in given.seeds:
        folder = given.out / name / f"seed-{seed}"
        runs.append(trained(family, name, files, folder, seed, given))
        on_dev.append(figures(evaluated([runs[-1]], files[1], folder / "dev.json", given.threads), family.wrong)[0])
        on_test.append(figures(evaluated([runs[-1]], files[2], folder / "test.json", given.threads), family.wrong))
    choose = min if family.wrong else max
    _, best = choose(zip(on_dev, on_test, strict=True))
    together = mean = "–"
    if len(runs) > 1:
        found = evaluated(runs, files[2], given.out / name / f"ensemble-of-{len(runs)}.json", given.threads)
        together, mean = (
            interval(figures(found, family.wrong)),
            "{:.1f} ± {:.1f}".format(*mean_and_half_width([score for score, _, _ in on_test])),
        )
    each = " · ".join(f"{score:.1f}" for score, _, _ in on_test)
    line = f"| {name} | {family.published[name]} | {together} | {interval(best)} | {mean} | {each} |"
    print(line, file=sys.stderr, flush=True)
    return line


def interval(values: tuple[float, float, float]) -> str:
    return "{:.1f} [{:.1f}, {:.1f}]".format(*values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("data", type=Path, help="the folder of the data set")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--languages", nargs="+", help="these alone")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--architecture", help="another one than the data set's")
    parser.add_argument("--budget", help="such as --budget=--steps=20; default: epochs by the size")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    family = FAMILIES[given.family]
    for name in given.languages or []:
        if name not in family.published:
            parser.error(f"no language of {given.family}: {name}; there are {', '.join(family.published)}")
    lines = [language(family, name, given) for name in given.languages or family.published]
    print(f"Published: {family.source}.\n")
    print("| language | published | ours, ensemble | best single by dev | mean of the singles | each seed |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
