"""Does coverage keep attention from repeating itself? Trains tally-bahdanau.yaml with and without it, and measures.

    python replications/coverage.py --out runs/coverage --seeds 1 2 3

One run after the other, on one thread; each run's last weights are measured, and what is finished is kept. Leaves a table on
standard output, `result.json`, and heat maps of coverage over time of one source.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import eyeline
from eyeline.config import Config
from eyeline.data.generated import GeneratedPair, write_tsv
from eyeline.data.generated.tally import tally
from eyeline.evaluation import alignment_matrix
from eyeline.figures import CoverageMatrix
from eyeline.metrics.significance import bootstrap_interval, paired_bootstrap
from eyeline.predictor import Predictor
from eyeline.training import Reporter

CONFIG = Path(__file__).parent / "tally-bahdanau.yaml"
LOSS_FROM = 600  # the coverage loss comes last, as in See et al. 2017
VARIANTS: dict[str, tuple[str, float]] = {  # coverage in the score, and the weight of the coverage loss
    "none": ("none", 0.0),
    "sum": ("sum", 0.0),
    "fertility": ("fertility", 0.0),
    "gated": ("gated", 0.0),
    "sum, loss at the end": ("sum", 1.0),
    "none, loss at the end": ("none", 1.0),
}
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam 5": {"beam_size": 5},
    "beam 5, penalty 0.01": {"beam_size": 5, "coverage_penalty": 0.01},
    "beam 5, penalty 0.2": {"beam_size": 5, "coverage_penalty": 0.2},
}
SETS: dict[str, tuple[int, int, tuple[int, int], list[str]]] = {  # pairs, seed, symbols of a source, searches
    "test": (1_000, 3, (10, 30), list(SEARCHES)),
    "longer": (500, 4, (31, 40), ["greedy"]),
}
MEASURES = ("repeats", "leaves out", "exact")
Found = dict[tuple[str, str, str], list[np.ndarray]]  # variant, set, search -> of each seed [lines, 3]


def trained(out: Path, variant: str, seed: int) -> Predictor:
    """The run of a variant, trained where it is not finished."""
    coverage, weight = VARIANTS[variant]
    run = out / f"{variant.replace(', ', '-').replace(' ', '-')}-{seed}"
    values = Config.from_yaml(CONFIG, [f"data.train={out / 'train.tsv'}", f"model.coverage={coverage}", f"seed={seed}"]).to_dict()
    last = values["training"]["steps"]
    for steps, loss in ((LOSS_FROM, 0.0), (last, weight)) if weight else ((last, 0.0),):
        training = {**values["training"], "steps": steps, "coverage_loss": loss}
        eyeline.train(Config.from_dict({**values, "training": training}), run, resume=True, reporter=Reporter(-1))
    return eyeline.load(run)


def measured(model: Predictor, pairs: Sequence[GeneratedPair], options: dict[str, Any]) -> np.ndarray:
    """[lines, 3] of 0 and 1: says a symbol more often than its source has it; less often; says exactly what it should."""
    rows = []
    for pair, said in zip(pairs, model.predict([pair.source for pair in pairs], attention=False, **options), strict=True):
        wanted, got = Counter(pair.source.split()), Counter(said.text.split())
        rows.append((bool(got - wanted), bool(wanted - got), said.text == pair.target))
    return np.array(rows, dtype=np.float64)


def shares(seeds: Sequence[np.ndarray], column: int) -> np.ndarray:
    """[lines of all seeds, 2]: the statistics of a share of lines."""
    flags = np.concatenate([rows[:, column] for rows in seeds])
    return np.stack([flags, np.ones_like(flags)], 1)


def report(found: Found) -> list[dict[str, Any]]:
    """Percent over all seeds with 95 % bootstrap intervals over lines, those of each seed, and the difference to no coverage."""
    result = []
    for (variant, part, search), seeds in found.items():
        entry: dict[str, Any] = {"variant": variant, "set": part, "search": search, "seeds": len(seeds), "lines": len(seeds[0])}
        for column, measure in enumerate(MEASURES):
            rows = shares(seeds, column)
            interval = bootstrap_interval("exact_match", rows)  # as of any share of lines
            entry[measure] = {"percent": 100 * float(rows[:, 0].mean()), "low": interval.low, "high": interval.high}
            entry[measure]["seeds"] = [100 * float(flags[:, column].mean()) for flags in seeds]
            if variant != "none" and ("none", part, search) in found:
                against = paired_bootstrap("exact_match", rows, shares(found["none", part, search], column))
                entry[measure]["against none"] = {"delta": against.delta, "low": against.low, "high": against.high}
        result.append(entry)
    return result


def table(result: list[dict[str, Any]]) -> str:
    lines = [
        "| coverage | set | search | repeats, % | each seed | leaves out, % | exact, % |",
        "| --- | --- | --- | ---: | --- | ---: | ---: |",
    ]
    for entry in result:
        cells = [f"{entry[m]['percent']:.1f} [{entry[m]['low']:.1f}, {entry[m]['high']:.1f}]" for m in MEASURES]
        each = " · ".join(f"{value:.1f}" for value in entry["repeats"]["seeds"])
        lines.append(
            f"| {entry['variant']} | {entry['set']} | {entry['search']} | {cells[0]} | {each} | {cells[1]} | {cells[2]} |"
        )
    return "\n".join(lines)


def draw(folder: Path, models: dict[str, Predictor], pairs: Sequence[GeneratedPair], flags: np.ndarray) -> None:
    """Coverage over time of the shortest source on which attention without coverage repeats itself, by every variant."""
    repeated = [pair for pair, flag in zip(pairs, flags[:, 0], strict=True) if flag] or list(pairs)
    source = min(repeated, key=lambda pair: len(pair.source)).source
    for variant, model in models.items():
        matrix = CoverageMatrix(alignment_matrix(model, source, beam_size=1))
        for kind in (".png", ".json"):
            matrix.save(folder / (variant.replace(", ", "-").replace(" ", "-") + kind))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="these variants")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if not (given.out / "train.tsv").exists():
        write_tsv(tally(10_000, 1), given.out / "train.tsv")
    sets = {name: list(tally(count, seed, length)) for name, (count, seed, length, _) in SETS.items()}
    found: Found = {}
    first: dict[str, Predictor] = {}
    for seed in given.seeds:
        for variant in given.only:
            model = trained(given.out, variant, seed)
            first.setdefault(variant, model)
            for part, pairs in sets.items():
                for search in SETS[part][-1]:
                    found.setdefault((variant, part, search), []).append(measured(model, pairs, SEARCHES[search]))
        result = report(found)
        (given.out / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"after seed {seed}:\n\n{table(result)}\n", flush=True)
    if ("none", "test", "greedy") in found:
        draw(given.out / "maps", first, sets["test"], found["none", "test", "greedy"][0])


if __name__ == "__main__":
    main()
