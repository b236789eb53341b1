"""A file of real lines through a trained Transformer: eyeline's own search and CTranslate2, in single precision and with 8 bits.

    eyeline shortlist RUN train.de train.en
    python benchmarks/real_lines.py RUN lines.de --lines 10000 --references lines.en

Each tool is a process of its own, one at a time, that reads the lines, cuts them into tokens, translates them in its own batches
with a beam of 5 and the same patience, and puts words together again; loading is not counted. In every round each has its turn,
in another order. Prints a Markdown table: lines a second (the median of the rounds), the ratio to CTranslate2 of the same
precision (the median of the rounds' ratios), how many outputs are those of eyeline in single precision, and BLEU where there are
references.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

WARM = 128  # lines that are translated before
LONGEST = 256  # tokens of their outputs
THEIR_BATCH = 64  # sentences, which CTranslate2 sorts by length

Translate = Callable[[list[str]], list[str]]


def eyeline(given: argparse.Namespace, precision: str, shortlist: bool) -> Translate:
    import eyeline as library
    from eyeline.memory import keep_freed_memory

    keep_freed_memory()
    predictor = library.load(given.run, precision=precision, shortlist=shortlist)
    how = {"beam_size": given.beam_size, "patience": given.patience}
    return lambda lines: [one.text for one in predictor.predict(lines, **how, attention=False)]


def ctranslate2(given: argparse.Namespace, precision: str) -> Translate:
    import ctranslate2 as library

    import eyeline
    from eyeline.exchange.ctranslate2_engine import COMPUTE, export_run, vocabularies

    predictor = eyeline.load(given.run)
    names, targets = vocabularies(predictor.run)
    ids = {name: number for number, name in enumerate(targets)}
    kind, threads = COMPUTE[precision], given.threads
    with tempfile.TemporaryDirectory() as folder:
        export_run(predictor.run, Path(folder) / "model")
        translator = library.Translator(f"{folder}/model", compute_type=kind, inter_threads=1, intra_threads=threads)
    how = {"beam_size": given.beam_size, "patience": given.patience if given.beam_size > 1 else 1.0}
    how |= {"max_batch_size": THEIR_BATCH, "max_decoding_length": LONGEST}

    def translate(lines: list[str]) -> list[str]:
        reads = [predictor.read(line) for line in lines]
        tokens = [[names[one] for one in read.encoded.ids] for read in reads]
        found = translator.translate_batch(tokens, **how)
        said = ([ids[name] for name in one.hypotheses[0]] for one in found)
        return [predictor.coder.decode(one, read) for one, read in zip(said, reads, strict=True)]

    return translate


def tools(given: argparse.Namespace) -> dict[str, Callable[[], Translate]]:
    return {
        "eyeline": lambda: eyeline(given, "fp32", False),
        "eyeline, shortlist": lambda: eyeline(given, "fp32", True),
        "ctranslate2": lambda: ctranslate2(given, "fp32"),
        "eyeline, int8": lambda: eyeline(given, "int8", False),
        "eyeline, int8, shortlist": lambda: eyeline(given, "int8", True),
        "ctranslate2, int8": lambda: ctranslate2(given, "int8"),
    }


def read(path: str, count: int | None) -> list[str]:
    with open(path, encoding="utf-8") as stream:
        return [line.rstrip("\n") for line in islice(stream, count)]


def work(name: str, given: argparse.Namespace) -> None:
    """Translates the file and prints what it took, as JSON; in a process of its own."""
    import torch

    torch.set_num_threads(given.threads)
    translate, lines = tools(given)[name](), read(given.lines_file, given.lines)
    translate(lines[:WARM])
    began = time.perf_counter()
    texts = translate(lines)
    print(json.dumps({"seconds": time.perf_counter() - began, "texts": texts}))


def turn(name: str, arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *arguments, "--tool", name], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a trained run with a shortlist")
    parser.add_argument("lines_file", help="source text")
    parser.add_argument("--references", help="what should come out, a line each")
    parser.add_argument("--lines", type=int, help="only so many")
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--patience", type=float, default=2.0, help="of either beam: when it stops looking for better ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tool", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.tool:
        work(given.tool, given)
        return
    names, answers = list(tools(given)), [dict[str, dict[str, Any]]() for _ in range(given.rounds)]
    for number, answer in enumerate(answers):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            answer[name] = turn(name, sys.argv[1:])
            print(f"round {number + 1}: {name}: {answer[name]['seconds']:.1f} s", file=sys.stderr, flush=True)
    print("| tool | lines/s | to CTranslate2 | outputs as eyeline's in fp32 | BLEU |\n| --- | --: | --: | --: | --: |")
    first = answers[0]["eyeline"]["texts"]
    for name in names:
        theirs = "ctranslate2, int8" if "int8" in name else "ctranslate2"
        texts = answers[0][name]["texts"]
        rate = median(len(texts) / answer[name]["seconds"] for answer in answers)
        ratio = median(answer[theirs]["seconds"] / answer[name]["seconds"] for answer in answers)
        same = sum(one == other for one, other in zip(texts, first, strict=True))
        print(f"| {name} | {rate:,.1f} | {ratio:.2f} | {same:,} of {len(texts):,} | {bleu(texts, given)} |")


def bleu(texts: list[str], given: argparse.Namespace) -> str:
    if given.references is None:
        return "–"
    from sacrebleu import corpus_bleu

    return f"{corpus_bleu(texts, [read(given.references, given.lines)]).score:.2f}"


if __name__ == "__main__":
    main()
