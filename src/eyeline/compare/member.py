"""A member's own process: `python -m eyeline.compare.member JOB.json [--speed]`. Knows runs, training and evaluation.

It trains, going on where it was, then predicts the test pairs and leaves what is needed to measure it; with `--speed` it measures
how fast the rung is. It ends, with its state saved, when whoever started it ends: the pipe at its standard input then closes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from eyeline.compare.pictures import picture_lines, pictures
from eyeline.config import Config
from eyeline.config_models import Seq2SeqSettings
from eyeline.errors import Interrupted, UserError
from eyeline.evaluation import align_pairs, gold_links, read_for, source_lines
from eyeline.files import write_json
from eyeline.memory import keep_freed_memory
from eyeline.metrics import LinkCounts
from eyeline.predictor import Predictor, SearchOptions, load
from eyeline.runs import CONFIG, create_run
from eyeline.text.records import Pair
from eyeline.text.tokenizers import Tokenizer
from eyeline.training import Reporter, train
from eyeline.training.checkpoints import peek
from eyeline.training.preparation import settled
from eyeline.training.reporting import peak_memory_mb

SPEED_STEPS = 30  # updates that training's speed is taken from; the first ten warm up
SPEED_SOURCES = 200  # test sources, evenly chosen, that prediction's speed is taken from


def train_member(folder: Path, job: dict[str, Any], config: Config, reporter: Reporter) -> None:
    """Trains the member's run to its budget."""
    run = folder / "run"
    if not (run / CONFIG).exists():
        tokenizers = Path(job["tokenizers"])
        create_run(run, settled(config), Tokenizer.load(tokenizers / "source.json"), Tokenizer.load(tokenizers / "target.json"))
    train(config, run, resume=True, device=job["device"], reporter=reporter)


def predict_member(folder: Path, job: dict[str, Any], config: Config, reporter: Reporter) -> None:
    """Predicts every test pair and writes outputs.json."""
    predictor = load(folder / "run", job["device"])
    pairs = read_for(predictor, config.data.test, alignment=True, warn=reporter.warn)
    sources = source_lines(predictor, pairs)
    reads = [predictor.read(source) for source in sources]
    lengths = [len(read.encoded.ids) for read in reads]
    predictions = []
    told = began = time.monotonic()
    for prediction in predictor.stream(sources, SearchOptions(attention=False)):
        predictions.append(prediction)
        if time.monotonic() - told > 10:
            told = time.monotonic()
            reporter.note(f"predicted {len(predictions):,} of {len(pairs):,}, {len(predictions) / (told - began):,.1f}/s")
    scores = predictor.score(zip(sources, (pair.target for pair in pairs), strict=True))
    tokens = sum(len(score.token_scores) for score in scores)
    state = peek(folder / "run" / "checkpoints")
    assert state is not None, "a run that is over has a checkpoint"
    write_json(
        folder / "outputs.json",
        {
            "sources": [pair.source for pair in pairs],
            "references": [predictor.coder.compared(pair.target) for pair in pairs],
            "outputs": [predictor.coder.judged(prediction.text) for prediction in predictions],
            "lengths": lengths,
            "unfinished": sum(not prediction.finished for prediction in predictions),
            "unknown_source_rate": sum(read.unknown for read in reads) / max(1, sum(lengths)),
            "loss": -sum(score.score for score in scores) / tokens if tokens else 0.0,
            "parameters": sum(parameter.numel() for parameter in predictor.model.parameters()),
            "alignment": alignment(predictor, pairs),
            "pictures": pictures(predictor, pairs, picture_lines(lengths)),
            "training": {"steps": state[0].step, "target_tokens": state[0].target_tokens, "seconds": state[0].seconds},
        },
    )


def alignment(predictor: Predictor, pairs: Sequence[Pair]) -> dict[str, Any] | None:
    """Counts of links a line, made from where the run looks, against the pairs' own; None where either has none.

    Target positions that the gold links to nothing are left out: attention always looks somewhere, and nothing it could do there
    would be right.
    """
    if isinstance(predictor.config.model, Seq2SeqSettings) or any(pair.alignment is None for pair in pairs):
        return None
    for words in (True, False):
        gold = gold_links(predictor, pairs, words=words)
        if gold is not None:
            break
    if gold is None or not any(line.possible for line in gold):
        return None
    made = align_pairs(predictor, pairs, words=words)
    counts = []
    for links, line in zip(made, gold, strict=True):
        linked = {target for _, target in line.possible}
        counts.append(LinkCounts.of((link for link in links if link[1] in linked), *line))
    unit = "words" if words else "tokens"
    return {"unit": unit, "counts": [[one.made, one.sure, one.in_sure, one.in_possible] for one in counts]}


def measure_speed(folder: Path, job: dict[str, Any], config: Config, reporter: Reporter) -> None:
    """Times a few updates from fresh weights, and predictions with the trained ones."""
    bound = {"steps": SPEED_STEPS, "target_tokens": None, "for_": None, "epochs": None, "metric": "loss", "average": "none"}
    short = config.model_copy(
        update={
            "data": config.data.model_copy(update={"valid": []}),
            "training": config.training.model_copy(update=bound),
        }
    )
    scratch = folder / "speed"
    shutil.rmtree(scratch, ignore_errors=True)
    train_member(scratch, job, short, reporter)
    with (scratch / "run" / "metrics.jsonl").open(encoding="utf-8") as stream:
        rates = [event["tokens_per_s"] for event in map(json.loads, stream) if event["split"] == "train"]
    peak = peak_memory_mb() if not job["device"].startswith("cuda") else torch.cuda.max_memory_allocated() / 2**20
    shutil.rmtree(scratch)
    predictor = load(folder / "run", job["device"])
    sources = source_lines(predictor, read_for(predictor, config.data.test))
    chosen = sources[:: max(1, len(sources) // SPEED_SOURCES)][:SPEED_SOURCES]
    list(predictor.stream(chosen[:2], SearchOptions(attention=False)))  # the first call pays for what later ones have
    began = time.perf_counter()
    list(predictor.stream(chosen, SearchOptions(attention=False)))
    seconds = time.perf_counter() - began
    write_json(
        folder / "speed.json",
        {
            "train_tokens_per_s": statistics.median(rates[1:] or rates),
            "peak_memory_mb": peak,
            "predict_sentences_per_s": len(chosen) / seconds,
            "threads": torch.get_num_threads(),
            "device": job["device"],
        },
    )


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Waits for a process that an earlier comparison left behind and that still saves its state; where the system has no such
    locks, nobody waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        try:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX)
        except ImportError:
            pass
        yield


def end_with(parent: int) -> None:
    """In the background: once the pipe `parent` closes, this process is told to stop, as by SIGTERM."""

    def wait() -> None:
        while os.read(parent, 1):  # not through a stream, whose lock would be held when the interpreter ends
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: Sequence[str]) -> int:
    """Runs one job. Returns its status: 0; 2 for what a user can mend or 1 for a defect, with failure.json; 130 when stopped."""
    path = Path(arguments[0])
    folder, job = path.parent, json.loads(path.read_text(encoding="utf-8"))
    reporter = Reporter(0, Console(file=sys.stderr, highlight=False, width=200))
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        end_with(0)
    torch.set_num_threads(job["threads"])
    keep_freed_memory()
    try:
        config = Config.from_dict(job["config"])
        with alone(folder / "lock"):
            if "--speed" in arguments:
                measure_speed(folder, job, config, reporter)
            else:
                train_member(folder, job, config, reporter)
                predict_member(folder, job, config, reporter)
    except (Interrupted, KeyboardInterrupt) as error:
        reporter.note(f"interrupted: {error}")
        return 130
    except UserError as error:
        return _failed(folder, str(error), 2)
    except Exception as error:
        traceback.print_exc()
        return _failed(folder, f"defect: {type(error).__name__}: {error}", 1)
    return 0


def _failed(folder: Path, why: str, status: int) -> int:
    sys.stderr.write(f"error: {why}\n")
    write_json(folder / "failure.json", {"error": why})
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
