"""One output as it comes, token by token. Knows the contracts' Model and nothing of any architecture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, Hypothesis, Model, Source
from eyeline.search.beam import NOTHING
from eyeline.search.coverage import Looked
from eyeline.search.greedy import Likeliest, refuse_required
from eyeline.search.limits import Lengths, Limits, Ranking, Worth, average, total
from eyeline.search.rules import Demands, Rules
from eyeline.search.sampling import Drawn, Filter
from eyeline.search.walk import Pick


@torch.inference_mode()
def unfold(
    model: Model,
    source: Source,
    *,
    filters: Sequence[Filter] | None = None,
    seed: int = 1,
    length_penalty: float = 1.0,
    min_length: Lengths = 0,
    max_length: Lengths = None,
    attention: bool = True,
    coverage_penalty: float = 0.0,
    no_repeat_ngram: int = 0,
    demands: Demands = NOTHING,
    worth: Worth = average,
) -> Iterator[tuple[Hypothesis, bool]]:
    """What `greedy` answers to one source, or the first of `sample` where there are `filters`, as it grows.

    Yields:
        The hypothesis after each token, and whether it is the answer: that one is the last, alone carries attention, and has END
        or is unfinished.

    Raises:
        ConfigError, RunError: as those do.
    """
    assert source.ids.shape[0] == 1
    ranking = Ranking(length_penalty, worth, coverage_penalty)
    limits = Limits.of(source, min_length, max_length, ranking, demands.begun(1))
    refuse_required(demands)
    rules, most = Rules.of(demands, no_repeat_ngram, limits), int(limits.max_length[0])
    pick: Pick = Likeliest() if filters is None else Drawn.of(source, seed, 1, most + 1, tuple(filters))
    ids, scores, looks = list[int](), list[float](), list[Mapping[str, Tensor]]()
    memory, row = model.encode(source), torch.zeros(1, dtype=torch.long)
    state, token, looked = model.decoder.start(memory), torch.full_like(row, BEGIN), Looked.none(source, coverage_penalty)
    finished = False
    for position in range(most + 1):
        step, state = model.decoder.step(token.to(source.ids.device), state, memory)
        looked = looked.after(step.attention)
        token, score = pick.pick(model.head(step, source), position, rules)
        possible = bool(score[0] > -torch.inf)
        finished = possible and int(token[0]) == END
        goes_on = possible and not finished and position < most
        if finished or goes_on:
            ids, scores = [*ids, int(token[0])], [*scores, float(score[0])]
            looks.append(dict(step.attention) if attention else {})
        if not goes_on:
            break
        yield Hypothesis(tuple(ids), tuple(scores), total(scores), ranking.normalize(total(scores), len(ids)), False), False
        rules, looked = rules.select(row, row[:, None], token[:, None]), looked.select(row, row[:, None])
    ranked = ranking.normalize(total(scores), len(ids)) + (float(looked.penalties(source, 1)) if finished else 0.0)
    seen = {name: torch.cat([each[name] for each in looks]).float().cpu() for name in (looks[0] if looks else {})}
    yield Hypothesis(tuple(ids), tuple(scores), total(scores), ranked, finished, seen), True
