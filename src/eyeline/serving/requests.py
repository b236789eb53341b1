"""The bodies of `/predict` and what it answers. Knows shapes and options; no models, no HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from eyeline.errors import UserError
from eyeline.predictor import SearchOptions, Term
from eyeline.predictor.inputs import check_prefixes, check_sources
from eyeline.predictor.terms import check_terms
from eyeline.serving.limits import Limits

Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
Positive = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Weight = Annotated[float, Field(strict=True, ge=0, le=1000, allow_inf_nan=False)]
Number = Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True, allow_inf_nan=False)]
Input = str | list[Number | list[Number]]
Text = Annotated[str, Field(max_length=1000)]


class Shape(BaseModel):
    """A shape without room for misspelt names."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class TermShape(Shape):
    """A phrase that outputs have to have, or may not, where the source has a term."""

    source: Text = ""
    """words that an input has to have; without them it holds for every input; a last * lets the last word go on"""
    require: str | list[str] = []
    forbid: str | list[str] = []
    line: Positive | None = None
    """the one input that it holds for, from 1"""


class PredictRequest(Shape):
    """What is predicted, and how: the options are those of `eyeline predict`; where one is left out, the run's own setting."""

    inputs: list[Input]
    """texts; for a model that reads numbers, lists of numbers or of lists of them"""
    model: Text | None = None
    """one of those served; the first where it is left out"""
    beam_size: Positive | None = None
    """hypotheses kept; 1 is greedy"""
    n_best: Positive = 1
    """outputs an input, at most beam_size"""
    length_penalty: Weight | None = None
    """outputs are ranked by score / length^length_penalty"""
    length_normalization: Literal["average", "wu"] | None = None
    """wu: by score / ((5 + length) / 6)^length_penalty instead"""
    coverage_penalty: Weight | None = None
    """outputs lose so many times the sum of -log min(attention that each source token had, 1)"""
    no_repeat_ngram: Annotated[int, Field(strict=True, ge=0, le=1000)] | None = None
    """so many tokens in a row come at most once in an output"""
    min_length: Count | None = None
    """tokens before the end may come"""
    max_length: Positive | None = None
    """most tokens of an output"""
    min_length_ratio: Annotated[Weight, Field(le=100)] | None = None
    """tokens before the end may come, for each of the source's"""
    max_length_ratio: Annotated[Weight, Field(gt=0, le=100)] | None = None
    """most tokens, for each of the source's"""
    diverse_groups: Positive | None = None
    """parts of the beam that shun each other's tokens"""
    diversity: Weight | None = None
    """what a token costs for each earlier group that says it there"""
    patience: Annotated[Weight, Field(gt=0)] | None = None
    """a beam stops when so many times as many outputs as it keeps have ended"""
    sampling: Text | None = None
    """outputs are drawn: top-k=20,temperature=0.8, of top-k, top-p, typical and temperature"""
    mbr: Count = 0
    """so many are drawn, and the one nearest to all is taken"""
    seed: Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)] | None = None
    """what is drawn follows from it and from the input alone"""
    prefix: str | list[str] | None = None
    """what the outputs begin with: one text for all, or one for each input"""
    constraints: list[TermShape] = []
    """a terminology"""
    replace_unknown: StrictBool = False
    """an unknown token is written as the source word that it looked at most"""
    dictionary: dict[str, str] | None = None
    """with replace_unknown: source word to what is written instead of it"""
    too_long: Literal["error", "truncate", "split"] | None = None
    """what is done with inputs longer than the model was trained on; they are predicted as they are where it is left out"""
    attention: StrictBool = True
    """whether predictions carry their alignment"""
    split: StrictBool | None = None
    """whether inputs are cut into sentences that are predicted one by one; as the service was started where it is left out"""
    stream: StrictBool = False
    """tokens as server-sent events, as they come: for one input, greedy (beam_size 1) or sampled"""

    def lines(self, limits: Limits, numbers: bool) -> list[str]:
        """The inputs as text. Raises Refused for too many or too long ones, UserError for what is none."""
        limits.check("inputs", len(self.inputs), limits.items)
        lines = check_sources(self.inputs, numbers, "inputs")
        for place, line in enumerate(lines):
            limits.check(f"characters of inputs[{place}]", len(line), limits.characters)
        return lines

    def prefixes(self, limits: Limits) -> list[str] | None:
        """One for each input, where there are any. Raises UserError."""
        given = [self.prefix] * len(self.inputs) if isinstance(self.prefix, str) else self.prefix
        if given is not None and len(given) != len(self.inputs):
            raise UserError("one prefix for all inputs, or one for each, is wanted", f"{len(given)} given")
        for prefix in given or ():
            limits.check("characters of a prefix", len(prefix), limits.characters)
        return check_prefixes(given)

    def terms(self, limits: Limits) -> list[Term]:
        """The terminology. Raises UserError for an entry that is none."""
        limits.check("constraints", len(self.constraints), limits.items)
        return check_terms([term.model_dump() for term in self.constraints])

    def options(self, limits: Limits, seed: int | None) -> SearchOptions:
        """How outputs are looked for; `seed` where none is given. Raises Refused for more than the service allows."""
        limits.check("beam_size", self.beam_size or 1, limits.beam)
        limits.check("mbr", self.mbr, limits.beam)
        limits.check("n_best", self.n_best, limits.n_best)
        limits.check("min_length", self.min_length or 0, limits.tokens)
        limits.check("max_length", self.max_length or 0, limits.tokens)
        if self.dictionary is not None:
            limits.check("entries of dictionary", len(self.dictionary), 10 * limits.items)
        given = self.model_dump(include=OPTIONS)
        return SearchOptions(**{**given, "seed": seed if self.seed is None else self.seed})


OPTIONS = {
    "beam_size",
    "n_best",
    "length_penalty",
    "length_normalization",
    "coverage_penalty",
    "no_repeat_ngram",
    "min_length",
    "max_length",
    "min_length_ratio",
    "max_length_ratio",
    "diverse_groups",
    "diversity",
    "patience",
    "sampling",
    "mbr",
    "seed",
    "replace_unknown",
    "dictionary",
    "too_long",
    "attention",
}


class Output(Shape):
    """An entry of an n-best list. Scores are natural logarithms; null is the score of what cannot be."""

    text: str
    score: float | None
    normalized_score: float | None
    tokens: list[str]
    token_scores: list[float | None]
    finished: bool


class Answer(Shape):
    """The answer to one input, as `eyeline predict --format jsonl` writes it."""

    source: str
    text: str
    score: float | None
    normalized_score: float | None
    source_tokens: list[str]
    tokens: list[str]
    token_scores: list[float | None]
    alignment: list[list[float | None]] | None
    n_best: list[Output]
    truncated: bool
    finished: bool


class PredictAnswer(Shape):
    """One prediction for each input, in order, and the model that made them."""

    predictions: list[Answer]
    model: str
