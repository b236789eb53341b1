"""Words that no vocabulary holds: a model that copies learns to write them exactly as they were typed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from eyeline.config_models import PointerGeneratorSettings, PointerGeneratorTransformerSettings
from eyeline.contracts import UNKNOWN, Hypothesis, Source
from eyeline.data.copying import Copyable, copyable, extended
from eyeline.data.corpus import Corpus, Sequences, Sources
from eyeline.ladder import build
from eyeline.loss import coverage_loss, negative_log_likelihood
from eyeline.search import score, search
from eyeline.text.tokenizers import Tokenizer

pytestmark = pytest.mark.slow
LETTERS = "abcdefghij" + "äßéŁ" + "한글" + "05_"
TEMPLATES = (
    ("my friend {0} from {1} is here", "{0} lives in {1}"),
    ("in {0} we met {1} and {2}", "{1} and {2} live in {0}"),
    ("{0} asked {1} ; {1} asked {0}", "{1} answered {0}"),
    ("nobody is here", "nobody lives here"),
)


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Sentences about people and places; each name is drawn for its sentence, and is in hardly any other."""
    draw = random.Random(seed)
    made = []
    for number in range(count):
        names = ["".join(draw.choice(LETTERS) for _ in range(draw.randint(3, 9))) for _ in range(3)]
        source, target = TEMPLATES[number % len(TEMPLATES)]
        made.append((source.format(*names), target.format(*names)))
    return made


@dataclass(frozen=True)
class Copied:
    """Pairs as a model that copies reads them."""

    tokenizer: Tokenizer
    pairs: list[tuple[str, str]]
    sources: list[Copyable]
    corpus: Corpus

    @classmethod
    def of(cls, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> Copied:
        read = tokenizer.encode_batch([source for source, _ in pairs])
        said = tokenizer.encode_batch([target for _, target in pairs])
        sources = [copyable(each.surfaces, tokenizer.lookup, tokenizer.size) for each in read]
        targets = [
            extended(each.surfaces, tokenizer.lookup, tokenizer.size, source.extra)
            for each, source in zip(said, sources, strict=True)
        ]
        held = Sources.of([each.ids for each in read], [source.ids for source in sources], tokenizer.size)
        return cls(tokenizer, pairs, sources, Corpus(held, Sequences.of(targets)))

    def texts(self, found: list[Hypothesis]) -> list[str]:
        """What hypotheses say, one a source."""
        return [self.tokenizer.decode(answer.ids, source.extra) for answer, source in zip(found, self.sources, strict=True)]


TINY: dict[str, Any] = {"size": 32, "heads": 4, "feedforward_size": 64, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
SETTINGS = [
    PointerGeneratorSettings(cell="gru", embedding_size=16, encoder_size=24, decoder_size=32, attention_size=24, dropout=0.0),
    PointerGeneratorTransformerSettings(**TINY),
    PointerGeneratorTransformerSettings(**TINY, copy_head=0),
]


def learnt(settings: Any, data: Copied, updates: int) -> Any:
    torch.manual_seed(1)
    model = build(settings, data.tokenizer.size, data.tokenizer.size)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    draw = np.random.default_rng(1)
    for _ in range(updates):
        batch = data.corpus.batch(draw.choice(len(data.corpus), 32, replace=False))
        step = model(batch.source, batch.inputs)
        loss = negative_log_likelihood(model.head, step, batch.source, batch.outputs, batch.target_mask)
        objective = loss.objective + 0.1 * coverage_loss(step.attention["source"], batch.target_mask)
        optimizer.zero_grad()
        (objective / batch.target_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
    return model.eval()


def best(model: Any, source: Source, beam_size: int) -> list[Hypothesis]:
    return [answers[0] for answers in search(model, source, beam_size=beam_size, max_length=12)]


@pytest.mark.parametrize("settings", SETTINGS, ids=["recurrent", "transformer-learned", "transformer-head-0"])
def test_words_that_no_vocabulary_holds_are_copied_as_typed(settings: Any) -> None:
    train = pairs(600, 1)
    tokenizer = Tokenizer.train("word", [text for pair in train for text in pair], 200, min_frequency=10)
    data, unseen = Copied.of(tokenizer, train), Copied.of(tokenizer, pairs(60, 2))
    assert sum(UNKNOWN in tokenizer.encode(target).ids for _, target in unseen.pairs) == 45
    model = learnt(settings, data, 200)
    batch = unseen.corpus.batch(np.arange(len(unseen.pairs)))
    wanted = [target for _, target in unseen.pairs]
    for beam_size in (1, 4):
        together = best(model, batch.source, beam_size)
        assert unseen.texts(together) == wanted
        for row in range(8):  # alone: other neighbours, fewer words of the batch's own
            own = unseen.corpus.batch([row]).source
            (alone,) = best(model, own, beam_size)
            assert alone.ids == together[row].ids
            assert alone.score == pytest.approx(together[row].score, abs=1e-5)
    scored = score(model, batch.source, batch.inputs, batch.outputs, batch.target_mask)
    for answer, given in zip(together, scored, strict=True):
        assert given.ids == answer.ids
        assert given.score == pytest.approx(answer.score, abs=1e-5)
