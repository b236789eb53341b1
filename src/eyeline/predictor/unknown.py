"""Unknown tokens replaced by the word of the source that they stand for. Knows attention, text and coders; no model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eyeline.contracts import UNKNOWN, Hypothesis
from eyeline.data.coding import as_typed
from eyeline.errors import ConfigError, DataError
from eyeline.predictor.answers import Piece
from eyeline.text.lines import read_lines, require_line
from eyeline.text.words import word_spans


@dataclass(frozen=True)
class Replacer:
    """Replaces an unknown token by the raw source word that it looked at most, or what a dictionary has for that.

    Luong et al. 2015 ("Addressing the rare word problem"), section 3.3, with attention in the place of positions: Jean et al.
    2015, section 4.1.
    """

    whole_words: bool  # whether a token of the target is a word; else it is replaced by the source's token, as it was typed
    dictionary: Mapping[str, str]

    def words(self, hypothesis: Hypothesis, piece: Piece, text: str) -> dict[int, str]:
        """Place -> the word that replaces the unknown token there; `text` is the line as typed, features apart.

        Raises:
            ConfigError: the model has no attention to the source.
        """
        places = [place for place, number in enumerate(hypothesis.ids) if number == UNKNOWN]
        if not places:
            return {}
        if "source" not in hypothesis.attention:
            raise ConfigError(
                "this architecture has no attention to the source",
                "replace_unknown=true",
                "leave it out, or copy with pointer-generator",
            )
        encoded, weights, typed = piece.source.encoded, hypothesis.attention["source"], word_spans(text)
        words, tokens = encoded.words, as_typed(encoded, text)
        real = [column for column, word in enumerate(words) if word is not None]  # neither features nor END
        found = {}
        for place in places:
            if real:
                column = max(real, key=lambda column: float(weights[place, column]))
                start, end = typed[words[column] or 0]
                raw = text[start:end] if self.whole_words else tokens[column].strip(" ")
                found[place] = self.dictionary.get(raw, raw)
        return found


def read_dictionary(path: str | Path) -> dict[str, str]:
    """SOURCE, a tab, TARGET a line. Raises DataError for another one."""
    entries = {}
    for line in read_lines(path, str(path)):
        text = require_line(line, str(path)).text
        source, tab, target = text.partition("\t")
        if not text:
            continue
        if not (source and tab and target) or "\t" in target:
            raise DataError("not an entry: SOURCE, a tab, TARGET are wanted", path, line.number)
        entries[source] = target
    return entries
