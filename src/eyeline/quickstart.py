"""The main job on what ships with the package: dates in twelve languages to ISO 8601. Knows every room but the command line."""

from __future__ import annotations

from pathlib import Path

from eyeline.errors import MissingExtra
from eyeline.evaluation import align_pairs, alignment_against_gold, alignment_matrix, evaluate, read_for, render
from eyeline.files import write_json
from eyeline.predictor import Predictor
from eyeline.starter import starting_config
from eyeline.text.records import Pair
from eyeline.training import train
from eyeline.training.reporting import Reporter


def run(out: str | Path, *, seed: int | None = None, device: str = "cpu", reporter: Reporter | None = None) -> None:
    """Trains on the dates, predicts and measures dates never seen, and draws the attention over some of them.

    A run that was interrupted goes on; one that is finished is measured and drawn again. Results go to standard output.

    Raises:
        UserError: something is in the way at `out`.
    """
    reporter = reporter or Reporter()
    out = Path(out)
    config = starting_config(seed=seed)
    reporter.note("Dates in twelve languages to ISO 8601, by attention (Bahdanau et al. 2015)")
    trained = train(config, out, resume=True, device=device, reporter=reporter)
    predictor = Predictor(trained, trained.load(device), device)
    pairs = read_for(predictor, config.data.test, alignment=True)
    result = evaluate(predictor, pairs, seed=config.seed)
    links = align_pairs(predictor, pairs, words=False)
    gold = alignment_against_gold(links, pairs, linked_only=True)
    assert gold is not None, "the sample has gold links"
    result["alignment"] = {"precision": gold.precision, "recall": gold.recall, "f1": gold.f1, "aer": gold.aer}
    write_json(out / "evaluation.json", result)
    print("\nDates it never saw:")
    examples = _examples(pairs)
    for pair, prediction in zip(examples, predictor.predict([pair.source for pair in examples]), strict=True):
        print(f"  {'✓' if prediction.text == pair.target else '✗'} {pair.source} → {prediction.text}")
    print(f"\nOn {len(pairs):,} held-out dates:\n{render(result)}")
    figures = f"F1 {gold.f1:.2f}, precision {gold.precision:.2f}, recall {gold.recall:.2f}"
    print(f"attention against the gold links (hyphens, which come from nothing, left out): {figures}")
    for path in _draw(predictor, examples, out, reporter):
        print(f"attention: {path}")
    print(f"\nNext: echo '3. Oktober 1990' | eyeline predict {out}")


def _examples(pairs: list[Pair]) -> list[Pair]:
    """One date of each script, German among them: the first long one of the portion."""
    wanted: list[Pair] = []
    for first, last in (("가", "힣"), ("\u0600", "\u06ff"), ("\u0900", "\u097f"), ("\u4e00", "\u9fff"), ("\u0400", "\u04ff")):
        wanted += [pair for pair in pairs if any(first <= letter <= last for letter in pair.source)][:1]
    german = [pair for pair in pairs if any(day in pair.source for day in ("tag, ", "woch, ")) and pair.source.isprintable()]
    return german[:1] + wanted


def _draw(predictor: Predictor, pairs: list[Pair], out: Path, reporter: Reporter) -> list[Path]:
    """Heat maps as PNG and SVG, where matplotlib is installed."""
    paths: list[Path] = []
    for number, pair in enumerate(pairs[:3], 1):
        matrix = alignment_matrix(predictor, pair.source)
        for suffix in ("png", "svg"):
            path = out / f"attention-{number}.{suffix}"
            try:
                matrix.save(path)
            except MissingExtra as error:
                reporter.warn(str(error))
                return paths
            paths.append(path)
    return paths
