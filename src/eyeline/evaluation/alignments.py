"""Where a run looks: alignments against gold links, and the matrix of one pair. Knows predictors, metrics and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from eyeline.config import Config
from eyeline.config_models import PointerGeneratorTransformerSettings, StateSpaceSettings, TransformerSettings
from eyeline.errors import UserError
from eyeline.evaluation.pairs import source_lines
from eyeline.figures import AlignmentMatrix, heading
from eyeline.metrics import (
    AlignmentScores,
    GoldLinks,
    Links,
    alignment_scores,
    attention_links,
    format_links,
    parse_links,
)
from eyeline.predictor import Predictor, SearchOptions
from eyeline.text.records import Pair
from eyeline.text.words import word_spans
from eyeline.training.links import token_links


class Head(NamedTuple):
    """Whose cross-attention."""

    layer: int  # of the decoder, from 0
    number: int | None  # of the layer, from 0; None: the mean of them all

    def __str__(self) -> str:
        return f"layer {self.layer}, " + ("mean of its heads" if self.number is None else f"head {self.number}")

    @property
    def options(self) -> str:
        """What selects it for one command."""
        return f"--layer {self.layer}" + ("" if self.number is None else f" --head {self.number}")

    @property
    def settings(self) -> str:
        """What selects it for good."""
        number = "null" if self.number is None else self.number
        return f"model.alignment_layer={self.layer} and model.alignment_head={number}"


def shown_head(config: Config) -> Head | None:
    """The head that a run shows; None where it has one attention, none, or one of its own for copying."""
    model = config.model
    if isinstance(model, TransformerSettings | StateSpaceSettings):
        return Head(range(model.decoder_layers)[model.alignment_layer], model.alignment_head)
    if isinstance(model, PointerGeneratorTransformerSettings) and model.copy_head != "learned":
        return Head(model.decoder_layers - 1, model.copy_head)
    return None


def align_pairs(predictor: Predictor, pairs: Sequence[Pair], *, words: bool) -> list[Links]:
    """Each target word (or token) linked to the source word (or token) that it attends to most.

    Raises:
        UserError: the architecture has no attention.
    """
    links: list[Links] = [frozenset() for _ in pairs]  # what stays of them is for pairs that are blank on both sides
    asked = predictor.asked(given_pairs(predictor, pairs))
    for place, score in predictor.scores(asked, SearchOptions(), attention=True):
        if score.alignment is None:
            raise no_attention(predictor)
        (links[place],) = attention_links([score.alignment], score.source_words, score.target_words, words=words)
    return links


def given_pairs(predictor: Predictor, pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    """The pairs as a predictor is given them."""
    return list(zip(source_lines(predictor, pairs), (pair.target for pair in pairs), strict=True))


def gold_links(predictor: Predictor, pairs: Sequence[Pair], *, words: bool) -> list[GoldLinks] | None:
    """The pairs' own links, between words or between tokens; None where words are asked for and they count something else.

    Where the run's `data.links` are characters, they are put between the tokens that hold those; otherwise they are taken to
    count what is asked for. A pair without any has none.

    Raises:
        DataError: a link that is none, or beyond the characters there are.
    """
    characters = predictor.config.data.links == "characters"
    if words and (characters or not links_words(pairs)):
        return None
    gold = [parse_links(pair.alignment or "", pair.path, pair.line) for pair in pairs]
    return [_of_tokens(predictor, pair, line) for pair, line in zip(pairs, gold, strict=True)] if characters else gold


def _of_tokens(predictor: Predictor, pair: Pair, gold: GoldLinks) -> GoldLinks:
    """Gold links of a pair's characters between its tokens."""
    read = predictor.read(*source_lines(predictor, [pair]))
    sides = read.encoded, predictor.coder.encode_target(pair.target, read)
    spelling = predictor.coder.spelling
    sure, possible = (
        frozenset(token_links(replace(pair, alignment=format_links(links)), *sides, spelling, "characters")) for links in gold
    )
    return GoldLinks(sure, possible)


def alignment_against_gold(links: Sequence[Links], pairs: Sequence[Pair], *, linked_only: bool = False) -> AlignmentScores | None:
    """Precision, recall, F1 and AER against the pairs' own links; None when they have none.

    Args:
        linked_only: leave out target positions that the gold links to nothing. Attention always looks somewhere, so where the
            gold says "from nothing" (the hyphens of an ISO date) the standard measure counts a fault that no attention avoids.
    """
    if any(pair.alignment is None for pair in pairs):
        return None
    gold = [parse_links(pair.alignment or "", pair.path, pair.line) for pair in pairs]
    if linked_only:
        linked = [{target for _, target in line.possible} for line in gold]
        links = [frozenset(link for link in line if link[1] in known) for line, known in zip(links, linked, strict=True)]
    return alignment_scores(links, [line.sure for line in gold], [line.possible for line in gold])


def links_words(pairs: Sequence[Pair]) -> bool:
    """Whether the pairs' gold links can be between words: none reaches beyond the last word of its side."""
    for pair in pairs:
        sources, targets = len(word_spans(pair.source)), len(word_spans(pair.target))
        gold = parse_links(pair.alignment or "", pair.path, pair.line).possible
        if any(source >= sources or target >= targets for source, target in gold):
            return False
    return True


def alignment_matrix(
    predictor: Predictor, source: str, target: str | None = None, beam_size: int | None = None
) -> AlignmentMatrix:
    """The attention of one pair, ready to be drawn; the target is what the run predicts when none is given.

    Raises:
        UserError: the source is blank, or the architecture has no attention.
    """
    if predictor.is_blank(source):
        raise UserError("there is nothing to look at in a source of white space", "--source")
    head = shown_head(predictor.config)
    where = "" if head is None else f", {head}"
    name = f"{predictor.run.path.resolve().name} ({predictor.config.model.architecture}{where})"
    shown = source.replace("\t", " ")
    if target is None:
        prediction = predictor.predict([source], beam_size=beam_size)[0]
        if prediction.alignment is None:
            raise no_attention(predictor)
        note = f"{name}: predicted, log-probability {prediction.score:.3f}"
        return AlignmentMatrix(
            prediction.source_tokens, prediction.tokens, prediction.alignment, heading(shown, prediction.text), note
        )
    score = predictor.score([(source, target)], attention=True)[0]
    if score.alignment is None:
        raise no_attention(predictor)
    note = f"{name}: given, log-probability {score.score:.3f}"
    return AlignmentMatrix(score.source_tokens, score.tokens, score.alignment, heading(shown, target), note)


def no_attention(predictor: Predictor) -> UserError:
    """What is said where an architecture has nothing to show."""
    return UserError(
        "this architecture looks at its source once and has no attention to show",
        f"model.architecture={predictor.config.model.architecture}",
        "train bahdanau or luong",
    )
