"""What a validation measures: the loss over every pair, and outputs against references where the metric wants them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from eyeline.config import Config
from eyeline.contracts import Hypothesis
from eyeline.data.batches import sequential_batches
from eyeline.data.coding import Coder
from eyeline.errors import RunError
from eyeline.ladder import Seq2Seq
from eyeline.loss import negative_log_likelihood
from eyeline.metrics import corpus_score
from eyeline.search import default_max_length, search
from eyeline.training.journal import Journal
from eyeline.training.portions import Portion
from eyeline.training.reporting import Reporter
from eyeline.training.state import Position

EXAMPLES = 3  # outputs shown at each validation


@dataclass
class Validator:
    """Scores a model on the validation pairs. Outputs are looked for greedily: for choosing weights, speed counts."""

    model: Seq2Seq
    portion: Portion
    coder: Coder
    config: Config
    journal: Journal
    reporter: Reporter
    device: torch.device

    def __post_init__(self) -> None:
        self.corpus = self.portion.corpus()

    def __call__(self, position: Position) -> float:
        """Measures, reports, and returns the value of `training.metric`; NaN for a model whose numbers are none."""
        metric, step = self.config.training.metric, position.step
        loss = self.loss()
        perplexity = math.exp(loss) if loss < 700 else math.inf
        values: dict[str, object] = {"time_s": round(position.seconds, 3), "loss": loss, "perplexity": perplexity}
        line = f"validation at step {step}: loss {loss:.4f}  perplexity {perplexity:.3f}"
        shown = range(min(EXAMPLES, len(self.corpus)))
        outputs = self._outputs(shown if metric == "loss" else range(len(self.corpus))) if math.isfinite(loss) else None
        score = loss
        if outputs is None:
            score = math.nan
        elif metric != "loss":
            measured = corpus_score(metric, outputs, [self._reference(place) for place in range(len(self.corpus))])
            score = measured.score
            values |= {metric: score, "signature": measured.signature}
            line += f"  {metric} {score:.2f} [{measured.signature}]"
        self.journal.log("valid", step, {**values, "n": len(self.corpus)})
        self.reporter.note(line)
        examples = [self._example(place, output) for place, output in zip(shown, outputs or (), strict=False)]
        for example in examples:
            self.reporter.note(f"  {example}")
        self.journal.text("examples", step, "\n\n".join(examples))
        return score

    def loss(self) -> float:
        """Plain cross-entropy a real target token, natural log, over every pair."""
        nll, tokens = 0.0, 0
        lengths = np.maximum(self.corpus.source_lengths, self.corpus.target_lengths)
        with torch.inference_mode():
            for rows in sequential_batches(lengths, self.config.training.batch_tokens):
                batch = self.corpus.batch(rows).to(self.device)
                step = self.model(batch.source, batch.inputs)
                head = self.model.head
                loss = negative_log_likelihood(head, step, batch.source, batch.outputs, batch.target_mask)
                nll, tokens = nll + float(loss.nll), tokens + loss.tokens
        return nll / tokens

    def _outputs(self, places: Sequence[int]) -> list[str] | None:
        """As `outputs`; None where probabilities are no numbers, as too large weights can make them on an output's own path."""
        try:
            return self.outputs(places)
        except RunError as error:
            self.reporter.warn(str(error))
            return None

    def outputs(self, places: Sequence[int]) -> list[str]:
        """What the model answers to the pairs at `places`, as a user would see it."""
        answers = [""] * len(places)
        chosen = np.asarray(places, dtype=np.int64)
        with torch.inference_mode():
            for rows in sequential_batches(self.corpus.source_lengths[chosen], self.config.search.batch_tokens):
                source = self.corpus.sources.batch(chosen[rows]).to(self.device)
                most = [min(default_max_length(length), self.config.most_tokens[0]) for length in source.lengths.tolist()]
                found = search(self.model, source, beam_size=1, max_length=self.config.search.max_length or most, attention=False)
                for row, hypotheses in zip(rows, found, strict=True):
                    answers[row] = self._text(places[row], hypotheses[0])
        return answers

    def _text(self, place: int, hypothesis: Hypothesis) -> str:
        pair = self.portion.pairs[place]
        source = self.coder.read(self.coder.encode(pair.source, pair.features), pair.source)
        return self.coder.judged(self.coder.decode(hypothesis.ids, source))

    def _reference(self, place: int) -> str:
        """The target spelt as a perfect output would be, so that another Unicode form or case in the file is no error."""
        return self.coder.compared(self.portion.pairs[place].target)

    def _example(self, place: int, output: str) -> str:
        pair = self.portion.pairs[place]
        if output == self._reference(place):
            return f"✓ {pair.source} → {output}"
        return f"✗ {pair.source} → {output}  (reference {pair.target})"
