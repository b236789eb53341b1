"""The model card that a finished run leaves. Knows a run and its figures; measures nothing."""

from __future__ import annotations

from torch import nn

from eyeline import __version__
from eyeline.config import Config
from eyeline.files import write_text
from eyeline.runs import Run
from eyeline.training.beginning import origin
from eyeline.training.preparation import Prepared
from eyeline.training.reporting import duration
from eyeline.training.starting import covered_before
from eyeline.training.state import State

CARD = "README.md"


def write_card(run: Run, model: nn.Module, state: State, prepared: Prepared, averaged: str = "") -> None:
    """Writes README.md: what the model is, what it was trained on, how well it did, how to use it.

    Args:
        averaged: what the weights are the mean of, in words; empty for single weights.
    """
    config, position, progress = run.config, state.position, state.progress
    languages = " → ".join(filter(None, (config.data.source_language, config.data.target_language)))
    valid = f"{len(prepared.valid.pairs):,}" if prepared.valid else "none"
    best = "not measured: no validation pairs"
    if progress.best is not None:
        best = f"{config.training.metric} {progress.best:.4f} at step {progress.best_step}"
    name = run.path.resolve().name
    files = [path for corpus in config.data.all_corpora for path in corpus.pairs]
    begun = origin(run.path, config)
    begun = f"| starts from | {begun} |\n" if begun else ""
    below, above = prepared.report.sides
    vectors = "".join(f"| {covered.side} vectors | {covered} |\n" for covered in covered_before(run.path))
    write_text(
        run.path / CARD,
        f"""# {name}

A sequence-to-sequence model, trained with eyeline {__version__}.

| | |
| --- | --- |
| languages | {languages or "not named"} |
| architecture | {config.model.architecture} |
| parameters | {sum(parameter.numel() for parameter in model.parameters()):,} |
| vocabulary | source {below.vocabulary}, target {above.vocabulary} |
{begun}{vectors}| training pairs | {len(prepared.train.pairs):,} from {", ".join(files)} |
| validation pairs | {valid} |
| trained for | {position.step:,} updates, {position.target_tokens:,} target tokens, {duration(position.seconds)} |
| best validation | {best} (outputs searched greedily) |
| weights | {averaged or _kept(config)} |
| seed | {config.seed} |

```
{prepared.report.render()}
```

## Use

    eyeline predict {name} input.txt
    eyeline evaluate {name} test.tsv

    import eyeline
    eyeline.load("{name}").predict(["…"])[0].text

Every setting is in `config.yaml`, every logged figure in `metrics.jsonl`.
""",
    )


def _kept(config: Config) -> str:
    if config.training.optimizer == "schedule-free":
        return "the mean that the schedule-free optimiser keeps"
    return f"moving average, decay {config.training.ema_decay:g}" if config.training.average == "ema" else "of one step"
