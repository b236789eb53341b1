"""What a beam's patience saves, and what it costs: one run, one test set, several patiences.

    python benchmarks/patience.py RUN test.tsv --patience 3 2 1
    python benchmarks/patience.py RUN test.de test.en

Without patience a beam waits until nothing better can come. Prints a Markdown table: seconds of processor, so that a busy machine
matters little (what metrics take is in them, the same in each row); the metrics; how many outputs are those without patience.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

import eyeline
from eyeline.evaluation import measure, read_for
from eyeline.memory import keep_freed_memory
from eyeline.predictor import SearchOptions

WARM = 32  # pairs that are predicted before
NONE = 1e9  # no beam wears it out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("pairs", nargs="+", type=Path, help="a file of pairs, or one of sources and one of targets")
    parser.add_argument("--patience", nargs="+", type=float, default=[3.0, 2.0, 1.0])
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_freed_memory()
    predictor = eyeline.load(given.run)
    pairs = read_for(predictor, [str(path) for path in given.pairs])
    predictor.predict([pair.source for pair in pairs[:WARM]], beam_size=given.beam_size, attention=False)
    without: list[str] | None = None
    for patience in (NONE, *given.patience):
        begun = time.process_time()
        measured = measure(predictor, pairs, SearchOptions(beam_size=given.beam_size, patience=patience))
        seconds = time.process_time() - begun
        metrics = measured.result["metrics"]
        if without is None:
            without = measured.outputs
            print(f"| patience | seconds | {' | '.join(metrics)} | outputs as without it |")
            print(f"| --- | ---: | {'---: | ' * len(metrics)}---: |")
        scores = " | ".join(f"{metric['score']:.2f}" for metric in metrics.values())
        same = sum(one == other for one, other in zip(measured.outputs, without, strict=True))
        print(
            f"| {'none' if patience == NONE else f'{patience:g}'} | {seconds:.1f} | {scores} | {same:,} of {len(pairs):,} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
