"""Weights that start from another run, and what becomes of its vocabularies. Knows runs, tokenizers and models' tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from eyeline.config import Config
from eyeline.contracts import RESERVED, UNKNOWN
from eyeline.errors import ConfigError
from eyeline.ladder import Seq2Seq
from eyeline.runs import Run, load_weights, open_run
from eyeline.text.tokenizers import Encoded, Tokenizer
from eyeline.training.portions import Portion
from eyeline.training.preparation import Prepared

Side = Literal["source", "target"]
FROM = "from"  # of the journal's events that say what became of the symbols
SHOWN = 20  # symbols that a message names
MAY_DIFFER = {"dropout", "alignment_layer", "alignment_head"}  # settings of a model that its weights do not depend on


@dataclass(frozen=True)
class Symbols:
    """What one side's pairs and vocabulary have of each other."""

    side: Side
    known: int  # symbols that both have, reserved ones apart
    missing: list[str]  # those that the run it starts from knows nothing of; of kept vocabularies the most frequent first
    extra: list[str]  # those that it knows and this run has no use for

    def __str__(self) -> str:
        missing, extra = (_listed(symbols) for symbols in (self.missing, self.extra))
        return f"{self.side}: {self.known:,} symbols are known; missing: {missing}; extra: {extra}"


def _listed(symbols: Sequence[str]) -> str:
    if not symbols:
        return "none"
    more = f" and {len(symbols) - SHOWN:,} more" if len(symbols) > SHOWN else ""
    return f"{len(symbols):,} ({' '.join(symbols[:SHOWN])}{more})"


def base_run(config: Config) -> Run | None:
    """The run that `training.from` names, if it does and weights can start from it.

    Raises:
        RunError: it is none.
        ConfigError: it is of another model, or its vocabularies are to be kept and the settings ask for others.
    """
    if config.training.from_ is None:
        return None
    run = open_run(config.training.from_)
    theirs, ours = run.config, config
    if theirs.model.architecture != ours.model.architecture:
        _differ("model.architecture", ours.model.architecture, theirs.model.architecture)
    for name in type(ours.model).model_fields:
        before, now = getattr(theirs.model, name), getattr(ours.model, name)
        if name not in MAY_DIFFER and before != now and not (name == "element_size" and not now):
            _differ(f"model.{name}", now, before)
    if theirs.tokenizer.shared != ours.tokenizer.shared:
        _differ("tokenizer.shared", ours.tokenizer.shared, theirs.tokenizer.shared)
    if config.training.from_vocabulary == "new":
        return run
    for section, names in (("tokenizer", type(ours.tokenizer).model_fields), ("data", ("normalization", "lowercase"))):
        for name in names:
            before, now = (getattr(getattr(each, section), name) for each in (theirs, ours))
            if before != now:
                _differ(f"{section}.{name}", now, before, "training.from_vocabulary=new makes new vocabularies")
    return run


def _differ(name: str, now: Any, before: Any, hint: str = "") -> None:
    where = f"there it is {before}" + (hint and f"; {hint}")
    raise ConfigError("weights cannot start from a run with another setting", f"{name}={now}", where)


def inherit(model: Seq2Seq, base: Run, source: Tokenizer, target: Tokenizer) -> None:
    """Fills a model with the weights of `base`; rows of symbols go to the same symbols, and those of new ones stay as drawn.

    Raises:
        RunError: the weights are absent, damaged, or of another model.
    """
    if _keys(source) == _keys(base.source) and _keys(target) == _keys(base.target):
        load_weights(model, base.weights)
        return
    old = base.load()
    rows = {"source": _rows(base.source, source), "target": _rows(base.target, target)}
    given = dict(old.named_parameters())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            side = _side(model, name, parameter, target.size)
            if side is None:
                parameter.copy_(given[name])
            else:
                new, before = rows[side]
                parameter[new] = given[name][before]


def _side(model: Seq2Seq, name: str, parameter: nn.Parameter, target_size: int) -> Side | None:
    """Whose symbols the rows of a weight stand for: both tables', and what the output layer has a row a symbol of."""
    tables: tuple[tuple[Side, nn.Embedding | None], ...] = (("source", model.source_table), ("target", model.target_table))
    for side, table in tables:
        if table is not None and parameter is table.weight:
            return side
    return "target" if name.startswith("head.") and parameter.shape[:1] == (target_size,) else None  # heads have no other weights


def _rows(before: Tokenizer, now: Tokenizer) -> tuple[Tensor, Tensor]:
    """The ids of the symbols that both have: the new ones, and the old ones of the same symbols."""
    old = {_key(before, number): number for number in range(before.size)}
    pairs = [(number, old[key]) for number in range(now.size) if (key := _key(now, number)) in old]
    return torch.tensor([new for new, _ in pairs]), torch.tensor([number for _, number in pairs])


def _keys(tokenizer: Tokenizer) -> list[tuple[int, str]]:
    return [_key(tokenizer, number) for number in range(tokenizer.size)]


def _key(tokenizer: Tokenizer, number: int) -> tuple[int, str]:
    """What an entry is, whatever its id: a reserved one, text, or a feature."""
    if number < len(RESERVED):
        return 0, RESERVED[number]
    piece = tokenizer.piece(number)
    return (1, piece) if piece else (2, tokenizer.token(number))


def symbols(config: Config, base: Run, prepared: Prepared) -> list[Symbols]:
    """What the vocabularies of this run and of the one it starts from have of each other, for each side that has one.

    Where they are kept, it is the training pairs that may have symbols which they lack, and which are read as unknown.
    """
    sides: tuple[tuple[Side, Tokenizer, Tokenizer], ...] = (
        ("source", base.source, prepared.source),
        ("target", base.target, prepared.target),
    )
    sides = tuple(each for each in sides if each[0] not in prepared.coder.instead)
    if config.training.from_vocabulary == "new":
        return [_of_new(*each) for each in sides]
    used, missing = _seen(prepared)
    found = []
    for side, before, _ in sides:
        entries = range(len(RESERVED), before.size)
        extra = [before.token(number) for number in entries if number not in used[side]]
        found.append(Symbols(side, len(entries) - len(extra), [symbol for symbol, _ in missing[side].most_common()], extra))
    return found


def _of_new(side: Side, before: Tokenizer, now: Tokenizer) -> Symbols:
    old, new = ({_key(each, number): each.token(number) for number in range(len(RESERVED), each.size)} for each in (before, now))
    missing = [token for key, token in new.items() if key not in old]
    return Symbols(side, len(new) - len(missing), missing, [token for key, token in old.items() if key not in new])


def _seen(prepared: Prepared) -> tuple[dict[Side, set[int]], dict[Side, Counter[str]]]:
    """The ids that the training pairs have, and, as they were typed, the symbols that no id stands for."""
    coder, train = prepared.coder, prepared.train
    assert isinstance(train, Portion), "what was prepared beforehand is refused with training.from"
    used: dict[Side, set[int]] = {"source": set(), "target": set()}
    missing: dict[Side, Counter[str]] = {"source": Counter(), "target": Counter()}
    without_features = not prepared.source.features  # then no id stands for one, not even the unknown one
    for pair, below, above in zip(train.pairs, train.sources, train.targets, strict=True):
        used["source"].update(below)
        used["target"].update(above)
        if without_features:
            missing["source"].update(pair.features)
        if UNKNOWN in below or UNKNOWN in above:
            source = coder.encode(pair.source, () if without_features else pair.features)
            _count_unknown(source, missing["source"])
            _count_unknown(coder.encode_target(pair.target, coder.read(source, pair.source)), missing["target"])
    return used, missing


def _count_unknown(encoded: Encoded, missing: Counter[str]) -> None:
    missing.update(token for token, number in zip(encoded.tokens, encoded.ids, strict=True) if number == UNKNOWN)
