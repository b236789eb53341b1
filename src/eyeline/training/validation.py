"""What a validation measures: the loss over every pair, and outputs against references where the metric wants them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import torch

from eyeline.config import Config
from eyeline.contracts import END, RESERVED, Hypothesis
from eyeline.data.batches import Indices, sequential_batches
from eyeline.data.coding import Coder, Read
from eyeline.errors import RunError
from eyeline.ladder import Seq2Seq
from eyeline.loss import Loss, negative_log_likelihood
from eyeline.metrics import Score, corpus_score
from eyeline.search import default_max_length, search
from eyeline.training.compiling import as_written
from eyeline.training.distributed import World
from eyeline.training.examples import Example
from eyeline.training.journal import Log
from eyeline.training.portions import Portion
from eyeline.training.reporting import Reporter
from eyeline.training.state import Position

EXAMPLES = 3  # outputs shown at each validation
PICTURES_EVERY = 10.0  # seconds of training between heat maps: each takes some hundredths of one to draw
FEW = 8  # tokens of each output that a rehearsal looks for


@dataclass
class Validator:
    """Scores a model on the validation pairs. Outputs are looked for greedily: for choosing weights, speed counts.

    Of several processes each works through its share of the batches; what follows from them is the same on all.
    """

    model: Seq2Seq
    portion: Portion
    coder: Coder
    config: Config
    journal: Log
    reporter: Reporter
    device: torch.device
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.corpus = self.portion.corpus()
        self._drawn_at = -PICTURES_EVERY

    def __call__(self, position: Position, split: str = "valid") -> float:
        """Measures, reports, logs under `split`, and returns the value of `training.metric`; NaN where numbers are none."""
        with as_written():
            return self._measured(position, split)

    def _measured(self, position: Position, split: str) -> float:
        metric, step = self.config.training.metric, position.step
        loss = self.loss()
        perplexity = math.exp(loss) if loss < 700 else math.inf
        values: dict[str, object] = {"time_s": round(position.seconds, 3), "loss": loss, "perplexity": perplexity}
        line = f"validation at step {step}: loss {loss:.4f}  perplexity {perplexity:.3f}"
        score = loss if math.isfinite(loss) else math.nan
        examples: list[Example] = []
        try:
            if math.isfinite(loss) and metric != "loss":
                measured = self.score()
                score = measured.score
                values |= {metric: score, "signature": measured.signature}
                line += f"  {metric} {score:.2f} [{measured.signature}]"
            if math.isfinite(loss) and self.world.first:
                examples = self.examples()
        except RunError as error:  # probabilities that are no numbers, as too large weights can make them on an output's own path
            self.reporter.warn(str(error))
            score = math.nan
        self.journal.log(split, step, {**values, "n": len(self.corpus)})
        self.reporter.note(f"{line}  over {len(self.corpus):,} pairs")
        self._show(examples, position)
        return self.world.of_first(score)

    def _show(self, examples: Sequence[Example], position: Position) -> None:
        step = position.step
        for example in examples:
            for line in example.lines():
                self.reporter.note(f"  {line}")
        self.journal.text("examples", step, "\n\n".join("\n".join(example.lines()) for example in examples))
        if not self.journal.trackers or position.seconds < self._drawn_at + PICTURES_EVERY:
            return
        self._drawn_at = position.seconds
        for number, example in enumerate(examples, 1):
            picture = example.picture()
            if picture is not None:
                self.journal.picture(f"alignment/{number}", step, picture)

    def rehearse(self) -> None:
        """The largest batch of the loss, and the first steps of the largest of the search: what would fail does so at once."""
        # A RunError is of numbers that are none, which validation says when it counts.
        with as_written(), torch.inference_mode(), suppress(RunError):
            lengths = np.maximum(self.corpus.source_lengths, self.corpus.target_lengths)
            self._sums(sequential_batches(lengths, self.config.training.batch_tokens)[0])
            rows = sequential_batches(self.corpus.source_lengths, self.config.search.batch_tokens)[0]
            search(self.model, self.corpus.sources.batch(rows).to(self.device), beam_size=1, max_length=FEW, attention=False)

    def loss(self) -> float:
        """Plain cross-entropy a real target token, natural log, over every pair."""
        nll, tokens = 0.0, 0
        lengths = np.maximum(self.corpus.source_lengths, self.corpus.target_lengths)
        with torch.inference_mode():
            for rows in self.world.own(sequential_batches(lengths, self.config.training.batch_tokens)):
                sums = self._sums(rows)
                nll, tokens = nll + float(sums.nll), tokens + sums.tokens
        whole = self.world.sum(nll, tokens)
        return whole[0] / whole[1]

    def _sums(self, rows: Indices) -> Loss:
        batch = self.corpus.batch(rows).to(self.device)
        step = self.model(batch.source, batch.inputs)
        return negative_log_likelihood(self.model.head, step, batch.source, batch.outputs, batch.target_mask)

    def score(self) -> Score:
        """The corpus score of what the model answers to every pair, as a user would see it. Raises RunError for NaN."""
        outputs, references = [""] * len(self.corpus), [self._reference(place) for place in range(len(self.corpus))]
        found, fault = [], ""
        try:
            for rows in self.world.own(sequential_batches(self.corpus.source_lengths, self.config.search.batch_tokens)):
                for place, hypothesis in zip(rows.tolist(), self._answers(rows, attention=False), strict=True):
                    found.append(json.dumps([place, self._text(hypothesis, self._read(place))]))
        except RunError as error:  # of one process, which the others must know
            fault = str(error)
        for text in chain.from_iterable(self.world.texts([fault])):
            if text:
                raise RunError(text)
        for place, output in map(json.loads, chain.from_iterable(self.world.texts(found))):
            outputs[place] = output
        return corpus_score(self.config.training.metric, outputs, references)

    def examples(self) -> list[Example]:
        """The answers to the first few pairs, with where the model looked. Raises RunError for NaN."""
        rows = np.arange(min(EXAMPLES, len(self.corpus)))
        return [self._example(place, hypothesis) for place, hypothesis in enumerate(self._answers(rows, attention=True))]

    def _answers(self, rows: Indices, *, attention: bool) -> list[Hypothesis]:
        with torch.inference_mode():
            source = self.corpus.sources.batch(rows).to(self.device)
            most = [min(default_max_length(length), self.config.most_tokens[0]) for length in source.lengths.tolist()]
            longest = self.config.search.max_length or most
            return [found[0] for found in search(self.model, source, beam_size=1, max_length=longest, attention=attention)]

    def _read(self, place: int) -> Read:
        pair = self.portion.pairs[place]
        return self.coder.read(self.coder.encode(pair.source, pair.features), pair.source)

    def _text(self, hypothesis: Hypothesis, source: Read) -> str:
        return self.coder.judged(self.coder.decode(hypothesis.ids, source))

    def _reference(self, place: int) -> str:
        """The target spelt as a perfect output would be, so that another Unicode form or case in the file is no error."""
        return self.coder.compared(self.portion.pairs[place].target)

    def _example(self, place: int, hypothesis: Hypothesis) -> Example:
        pair, source = self.portion.pairs[place], self._read(place)
        weights = hypothesis.attention.get("source")
        return Example(
            source=pair.source,
            output=self._text(hypothesis, source),
            reference=self._reference(place),
            target=pair.target,
            source_tokens=[*source.encoded.tokens, RESERVED[END]],
            tokens=self.coder.tokens(hypothesis.ids, source),
            weights=None if weights is None else weights.double().numpy(),
        )
