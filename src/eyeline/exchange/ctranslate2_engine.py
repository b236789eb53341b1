"""CTranslate2 in the place of our own search. Knows how it is asked and what it answers; no text, no options.

Its beam keeps hypotheses as ours does. It stops when so many have ended as its patience says, where ours waits for what would be
better if it ended now; without patience, where ours stops when nothing better can come, it looks on for nothing. It may say
padding, which our search never does: that, and what it leaves unfinished, is left to our search.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eyeline.contracts import BEGIN, END, PAD, RESERVED, Hypothesis
from eyeline.errors import require
from eyeline.exchange.ctranslate2 import check_convertible, names_of, write_ctranslate2
from eyeline.runs import SOURCE_TOKENIZER, TARGET_TOKENIZER, Run

LONGEST = 4096  # positions, where they are not learned
EVER = 1e3  # a patience that no beam wears out
COMPUTE = {"fp32": "float32", "int8": "int8"}


def export_run(run: Run, out: Path, quantization: str = "float32") -> None:
    """Writes a run's weights, vocabularies and tokenizers for `ctranslate2.Translator`. Raises as `write_ctranslate2` does."""
    settings: Any = run.config.model
    check_convertible(settings)
    names = (run.path / SOURCE_TOKENIZER, run.path / TARGET_TOKENIZER)
    write_ctranslate2(
        run.load(), settings, vocabularies(run), LONGEST, out, quantization, [path for path in names if path.exists()]
    )


def vocabularies(run: Run) -> tuple[list[str], list[str]]:
    """The names of all ids, of sources and of targets."""
    source, target = (names_of(side.tokens_of(range(side.size))) for side in (run.source, run.target))
    return source, target


class CTranslate2Engine:
    """A run's weights in CTranslate2; keeps `predictor.engines.Engine`.

    Args:
        model: the run's, in single precision.
        precision: "fp32", or "int8".

    Raises:
        ConfigError: a model that CTranslate2 has no kind for.
        MissingExtra: it is not installed.
    """

    def __init__(self, run: Run, model: Any, *, device: str = "cpu", threads: int = 0, precision: str = "fp32") -> None:
        settings: Any = run.config.model
        self._source, target = vocabularies(run)
        self._target = {name: number for number, name in enumerate(target)}
        self._longest = settings.longest or LONGEST
        library: Any = require("ctranslate2", "exchange")
        with tempfile.TemporaryDirectory() as folder:
            write_ctranslate2(model, settings, (self._source, target), LONGEST, Path(folder) / "model")
            kind, _, number = device.partition(":")
            self._translator = library.Translator(
                f"{folder}/model",
                device=kind,
                device_index=int(number or 0),
                compute_type=COMPUTE[precision],
                intra_threads=threads,
            )

    def __call__(
        self,
        sources: Sequence[Sequence[int]],
        most: Sequence[int],
        *,
        beam_size: int,
        n_best: int,
        length_penalty: float,
        patience: float | None,
        normalize: Callable[[float, int], float],
    ) -> list[list[Hypothesis] | None]:
        """See the protocol."""
        answers: list[list[Hypothesis] | None] = [None] * len(sources)
        able = [row for row, ids in enumerate(sources) if max(len(ids), most[row] + 1) < self._longest]
        tokens = {row: [self._source[number] for number in sources[row]] for row in able}
        if not able:
            return answers
        found = self._translator.translate_batch(
            [tokens[row] for row in able],
            beam_size=beam_size,
            num_hypotheses=n_best,
            patience=1.0 if beam_size == 1 else EVER if patience is None else patience,
            length_penalty=length_penalty if beam_size > 1 else 0.0,
            min_decoding_length=0,
            max_decoding_length=max(most[row] for row in able) + 1,
            max_input_length=0,
            return_end_token=True,
        )
        said = {row: result.hypotheses for row, result in zip(able, found, strict=True)}
        sure = [row for row in able if len(said[row]) == n_best and all(_ended(one, most[row]) for one in said[row])]
        pairs = [(row, one[:-1]) for row in sure for one in said[row]]
        scores = self._translator.score_batch([tokens[row] for row, _ in pairs], [one for _, one in pairs], max_input_length=0)
        for (row, one), score in zip(pairs, scores, strict=True):
            ids = (*(self._target[name] for name in one), END)
            each = tuple(min(0.0, number) for number in score.log_probs)
            total = sum(each)
            answer = [*(answers[row] or []), Hypothesis(ids, each, total, normalize(total, len(ids)), True)]
            answers[row] = sorted(answer, key=lambda hypothesis: -hypothesis.normalized_score)
        return answers


def _ended(tokens: Sequence[str], most: int) -> bool:
    """Whether an output is one that our search could have said: it never says what is only there for padding and beginnings."""
    return tokens[-1:] == [RESERVED[END]] and len(tokens) <= most + 1 and not {RESERVED[PAD], RESERVED[BEGIN]} & set(tokens)
