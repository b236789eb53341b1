"""What a validation measures: the loss over every pair, and outputs against references where the metric wants them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from eyeline.config import Config
from eyeline.contracts import Hypothesis
from eyeline.data.batches import sequential_batches
from eyeline.data.corpus import source_batch
from eyeline.ladder import Seq2Seq
from eyeline.loss import negative_log_likelihood
from eyeline.metrics import corpus_score
from eyeline.search import search
from eyeline.text.normalization import restore
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.journal import Journal
from eyeline.training.preparation import Portion
from eyeline.training.reporting import Reporter

EXAMPLES = 3  # outputs shown at each validation


@dataclass
class Validator:
    """Scores a model on the validation pairs. Outputs are looked for greedily: for choosing weights, speed counts."""

    model: Seq2Seq
    portion: Portion
    target: Tokenizer
    config: Config
    journal: Journal
    reporter: Reporter
    device: torch.device

    def __post_init__(self) -> None:
        self.corpus = self.portion.corpus()

    def __call__(self, step: int) -> float:
        """Measures, reports, and returns the value of `training.metric`."""
        metric = self.config.training.metric
        loss = self.loss()
        values: dict[str, object] = {"loss": loss, "perplexity": math.exp(min(loss, 700.0)), "n": len(self.corpus)}
        shown = list(range(min(EXAMPLES, len(self.corpus))))
        if metric == "loss":
            outputs = self.outputs(shown)
            score, signature = loss, ""
        else:
            outputs = self.outputs(range(len(self.corpus)))
            references = [self._reference(place) for place in range(len(self.corpus))]
            measured = corpus_score(metric, outputs, references)
            score, signature = measured.score, measured.signature
            values |= {metric: score, "signature": signature}
        self.journal.log("valid", step, values)
        self._show(step, loss, score, signature, outputs, shown)
        return score

    def loss(self) -> float:
        """Plain cross-entropy a real target token, natural log, over every pair."""
        nll, tokens = 0.0, 0
        lengths = [max(pair) for pair in zip(self.corpus.source_lengths, self.corpus.target_lengths, strict=True)]
        with torch.inference_mode():
            for rows in sequential_batches(lengths, self.config.training.batch_tokens):
                batch = self.corpus.batch(rows).to(self.device)
                step = self.model(batch.source, batch.inputs)
                head = self.model.head
                loss = negative_log_likelihood(head, step, batch.source, batch.outputs, batch.target_mask)
                nll, tokens = nll + float(loss.nll), tokens + loss.tokens
        return nll / tokens

    def outputs(self, places: Sequence[int]) -> list[str]:
        """What the model answers to the pairs at `places`, as a user would see it."""
        answers = [""] * len(places)
        ids = [self.portion.sources[place] for place in places]
        with torch.inference_mode():
            for rows in sequential_batches([len(i) + 1 for i in ids], self.config.search.batch_tokens):
                source = source_batch([ids[row] for row in rows]).to(self.device)
                maximum = self.config.search.max_length
                found = search(self.model, source, beam_size=1, max_length=maximum, attention=False)
                for row, hypotheses in zip(rows, found, strict=True):
                    answers[row] = self._text(hypotheses[0])
        return answers

    def _text(self, hypothesis: Hypothesis) -> str:
        return restore(self.target.decode(hypothesis.ids), self.config.data.form("target"))

    def _reference(self, place: int) -> str:
        return restore(self.portion.pairs[place].target, "nfc")

    def _show(self, step: int, loss: float, score: float, signature: str, outputs: list[str], shown: list[int]) -> None:
        metric = self.config.training.metric
        line = f"validation at step {step}: loss {loss:.4f}  perplexity {math.exp(min(loss, 700.0)):.3f}"
        if metric != "loss":
            line += f"  {metric} {score:.2f} [{signature}]"
        self.reporter.note(line)
        examples = []
        for place in shown:
            pair = self.portion.pairs[place]
            mark = "✓" if outputs[place] == self._reference(place) else "✗"
            examples.append(
                f"  {mark} {pair.source} → {outputs[place]}" + (f"  (reference {pair.target})" if mark == "✗" else "")
            )
        for example in examples:
            self.reporter.note(example)
        self.journal.text("examples", step, "\n\n".join(examples))
