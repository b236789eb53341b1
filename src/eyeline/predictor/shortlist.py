"""A small vocabulary for each source, of what it may well turn into. Knows models and searches; no text.

The output layer of a vocabulary of thousands, and the choice of the best among them, are a large part of a step's work; of those
thousands a source of twenty words needs a few hundred (Jean et al. 2015, section 3.2; L'Hostis et al. 2016). Letters: n sources,
C candidates of their batch in the order of their ids, V output ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from eyeline.contracts import PAD, RESERVED, Hypothesis, LinearHead, Model, Source, State, Step
from eyeline.errors import ConfigError, RunError
from eyeline.files import beside
from eyeline.nn.heads import wide
from eyeline.nn.packed import RoundedLinear
from eyeline.nn.packing import pack, round_weights
from eyeline.runs import Run, tensors_written
from eyeline.search import Demands
from eyeline.search.ensemble import Ensemble

SHORTLIST = "shortlist.safetensors"  # in a run directory

Search = Callable[..., list[list[Hypothesis]]]  # (model, source, *, demands, …) -> the hypotheses of each source


@dataclass(frozen=True)
class Shortlist:
    """What each source symbol may turn into; on the CPU."""

    likely: Tensor  # [source vocabulary, L] int32: output ids, the likeliest first, PAD behind the last of a row
    always: Tensor  # [A] int32: output ids that any source may turn into, the reserved ones apart

    def among(self, source: Source, outputs: int, needed: Sequence[Sequence[int]] = ()) -> Tensor:
        """[n, V] True for the candidates of each source: the reserved ids, `always`, what its symbols may turn into, and what is
        `needed` of it, one list of ids a source."""
        candidates = torch.zeros(len(source.lengths), outputs, dtype=torch.bool)
        ids = self.likely[source.ids.cpu()].masked_fill(source.mask.cpu()[..., None], PAD)  # [n, S, L]
        candidates.scatter_(1, ids.flatten(1).long(), True)
        candidates[:, self.always.long()] = True
        candidates[:, : len(RESERVED)] = True
        for row, own in enumerate(needed):
            candidates[row, list(own)] = True
        return candidates

    def save(self, run: Path) -> None:
        """Into a run directory, whole or not at all. Raises UserError where that cannot be written."""
        with beside(run / SHORTLIST) as temporary, tensors_written():
            save_file({"likely": self.likely, "always": self.always}, str(temporary))


def load_shortlist(run: Run, model: Model) -> Shortlist:
    """The shortlist of a run.

    Raises:
        RunError: it has none, or a damaged one, or one of other vocabularies.
        ConfigError: `model` has no output layer over a vocabulary alone.
    """
    check_layer(run, model)
    path = run.path / SHORTLIST
    try:
        held = load_file(str(path))
        shortlist = Shortlist(held["likely"], held["always"])
    except FileNotFoundError:
        raise RunError("the run has no shortlist", str(path), "`eyeline shortlist RUN PAIRS` makes one") from None
    except (SafetensorError, KeyError, OSError):
        raise RunError("damaged, or no shortlist", str(path), "`eyeline shortlist RUN PAIRS` makes it anew") from None
    ids = torch.cat([shortlist.likely.flatten(), shortlist.always, torch.zeros(1, dtype=torch.int32)])
    if len(shortlist.likely) != run.source.size or int(ids.min()) < 0 or int(ids.max()) >= run.target.size:
        raise RunError("a shortlist of other vocabularies", str(path), "`eyeline shortlist RUN PAIRS` makes it anew")
    return shortlist


def check_layer(run: Run, model: Model) -> None:
    """Raises ConfigError for a model whose outputs are not chosen from a vocabulary alone."""
    if not isinstance(model.head, LinearHead):
        where = f"model.architecture={run.config.model.architecture}"
        raise ConfigError("outputs that are copied or pointed at have no shortlist", where, "leave it out")


def search_candidates(
    search: Search, shortlist: Shortlist, model: Model, source: Source, asked: Mapping[str, Any]
) -> list[list[Hypothesis]]:
    """The hypotheses of a search over each source's candidates alone, among which probabilities are shared out anew.

    What it finds does not depend on the other sources of a batch: their candidates are computed beside its own and hidden.

    Args:
        search: `eyeline.search.search`, or what takes the same and draws nothing by chance.
        asked: what it takes by name, `demands` among it.
    """
    demands: Demands = asked["demands"]
    first = model.models[0] if isinstance(model, Ensemble) else model
    outputs = len(_layer(first)[0])
    among = shortlist.among(source, outputs, demands.needed(len(source.lengths)))
    ids = among.any(0).nonzero()[:, 0]  # [C]
    asked = {**asked, "demands": _moved(demands, ids, outputs)}
    meant = ids.tolist()
    found = search(narrowed(model, ids, ~among[:, ids]), source, **asked)
    return [[replace(one, ids=tuple(meant[place] for place in one.ids)) for one in several] for several in found]


def narrowed(model: Model, ids: Tensor, hidden: Tensor) -> Model:
    """A model that says and reads places in `ids` [C], and nothing of what is `hidden` [n, C] from a source."""
    if isinstance(model, Ensemble):
        return Ensemble([narrowed(each, ids, hidden) for each in model.models], model.decoder.mean)
    return _Narrowed(model, ids, hidden)


def _moved(demands: Demands, ids: Tensor, outputs: int) -> Demands:
    """Demands in places of candidates. A phrase that must not come and has an id that is none of them cannot come."""
    place = torch.full((outputs,), -1).scatter(0, ids, torch.arange(len(ids))).tolist()

    def moved(phrase: Sequence[int]) -> list[int]:
        return [place[each] for each in phrase]

    return Demands(
        [moved(prefix) for prefix in demands.prefixes],
        [[moved(phrase) for phrase in phrases] for phrases in demands.required],
        [[way for phrase in phrases if -1 not in (way := moved(phrase))] for phrases in demands.forbidden],
    )


def _layer(model: Model) -> tuple[Tensor, Tensor]:
    assert isinstance(model.head, LinearHead), "an output layer over a vocabulary"
    return model.head.output_layer()


@dataclass(frozen=True)
class _Memory:
    """What a model remembers of n sources, and what each of them does not turn into."""

    memory: Any
    cost: Tensor  # [n, C] 0, or -inf

    @property
    def mask(self) -> Tensor:
        return self.memory.mask  # type: ignore[no-any-return]

    def select(self, rows: Tensor) -> _Memory:
        return _Memory(self.memory.select(rows), self.cost.index_select(0, rows.to(self.cost.device)))


class _Decoder:
    """Reads places of candidates; its features are the log-probabilities of what comes next."""

    def __init__(self, decoder: Any, ids: Tensor, output: nn.Module) -> None:
        self.decoder, self.ids, self.output = decoder, ids, output

    def start(self, memory: _Memory) -> State:
        return self.decoder.start(memory.memory)  # type: ignore[no-any-return]

    def step(self, token: Tensor, state: State, memory: _Memory) -> tuple[Step, State]:
        step, state = self.decoder.step(self.ids[token], state, memory.memory)
        return self._said(step, memory), state

    def __call__(self, tokens: Tensor, memory: _Memory) -> Step:
        return self._said(self.decoder(self.ids[tokens], memory.memory), memory)

    def _said(self, step: Step, memory: _Memory) -> Step:
        scores = wide(self.output(step.features))
        of_source = scores.view(len(memory.cost), -1, scores.shape[-1]) + memory.cost[:, None]
        return replace(step, features=of_source.log_softmax(-1).view(scores.shape))


class _Narrowed:
    """A model over candidates."""

    def __init__(self, model: Model, ids: Tensor, hidden: Tensor) -> None:
        weight, bias = _layer(model)
        there = ids.to(weight.device)
        layer = nn.Linear(weight.shape[1], len(ids), device="meta")
        layer.weight = nn.Parameter(weight.detach()[there], requires_grad=False)
        layer.bias = nn.Parameter(bias.detach()[there], requires_grad=False)
        self.model, self.cost = model, torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf).to(weight.device)
        rounded = isinstance(model.head, nn.Module) and any(isinstance(part, RoundedLinear) for part in model.head.modules())
        laid = (round_weights if rounded else pack)(nn.Sequential(layer))
        self.decoder = _Decoder(model.decoder, there, laid)

    def encode(self, source: Source) -> _Memory:
        return _Memory(self.model.encode(source), self.cost)

    def head(self, step: Step, source: Source) -> Tensor:
        return step.features
