"""How what was seen is told: short JSON-able values. Knows what was observed, coders and settings; runs no model.

Lists over steps and source tokens are flat, row by row, and rounded: a page of 300 × 300 tokens is sent in a moment.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from eyeline.config import Config
from eyeline.contracts import END, Hypothesis
from eyeline.data.coding import Coder, Read
from eyeline.errors import UserError
from eyeline.evaluation.alignments import shown_head
from eyeline.explorer.beams import Tree
from eyeline.explorer.looking import Look, Observed, Said, informative

CELLS = 150_000  # weights of all looks that are sent together; of more only the look that is shown
WHOLE = 10_000  # what a weight of 1 is written as
PARTS = 8  # numbers that a vector is shown by

Told = dict[str, Any]
Wanted = tuple[int | None, int | None]  # layer and head


def step(coder: Coder, source: Read, number: int, said: Said) -> Told:
    """What is told of one step."""
    ids = [number for number, _ in said.candidates]
    candidates = []
    for (candidate, log_prob), token in zip(said.candidates, coder.tokens(ids, source), strict=True):
        share = sum(mass for _, mass in _copied(source, candidate, said))
        candidates.append({"id": candidate, "token": token, "p": _probability(log_prob), "copied": _short(share)})
    told: Told = {"p": _probability(said.log_prob), "candidates": candidates}
    if said.generating is not None:
        told["generating"] = _short(said.generating)
        told["copied"] = [[place, _short(mass)] for place, mass in _copied(source, number, said) if mass >= 5e-5]
    return told


def _copied(source: Read, number: int, said: Said) -> list[tuple[int, float]]:
    """The share of an output's probability from each source position that holds it, (1 - p_gen) α (See et al. 2017, eq. 9)."""
    if said.generating is None or said.looked is None or source.copies is None:
        return []
    places = [place for place, copy in enumerate([*source.copies, END]) if copy == number]
    return [(place, (1 - said.generating) * float(said.looked[place])) for place in places]


def looks(config: Config, seen: Observed, wanted: Wanted | None) -> Told:
    """All looks, or what they are called and one of them whole; which is shown, and why."""
    if not seen.looks:
        return {"looks": [], "shown": None, "chosen": None}
    shown, chosen = _shown(config, seen.looks, wanted)
    everything = sum(look.weights.numel() for look in seen.looks) <= CELLS
    every = [_told(look, everything or place == shown) for place, look in enumerate(seen.looks)]
    return {"looks": every, "shown": shown, "chosen": chosen}


def _shown(config: Config, looks: list[Look], wanted: Wanted | None) -> tuple[int, str]:
    """The look to begin with: the one asked for, the model's own, the head that the run was told to show, or else the head that
    tells most about the steps."""
    names = {(look.layer, look.head): place for place, look in enumerate(looks)}
    if wanted is not None:
        if wanted not in names:
            raise UserError("the model has no such attention", f"look={list(wanted)}", "layers and heads count from 0")
        return names[wanted], "asked"
    if looks[0].layer is None:
        return 0, "own"
    head = shown_head(config)
    if head is not None and (head.layer, head.number) in names and head.number is not None:
        return names[head.layer, head.number], "kept"
    heads = [look for look in looks if look.head is not None]
    found = informative(heads)
    return names[found.layer, found.head], "informative"


def _told(look: Look, whole: bool) -> Told:
    told: Told = {"layer": look.layer, "head": look.head}
    if not whole:
        return told
    told["weights"] = (look.weights * WHOLE).round().int().flatten().tolist()
    told["scores"] = None if look.scores is None else _flat(look.scores, 3, look.weights == 0)
    if look.values is not None:
        told |= _summed(look.weights, look.values)
    return told


def _summed(weights: Tensor, values: Tensor) -> Told:
    """What the weights sum up, by few numbers of each vector: those along the directions that tell most of the source's vectors.

    The directions are the first right singular vectors of `values` [S, C], so that the sum of weighted numbers is the number of
    the weighted sum: nothing of the picture is made up. `norms` are those of the whole contexts [T].
    """
    _, strengths, directions = torch.linalg.svd(values.double(), full_matrices=False)
    directions = directions[:PARTS]
    signs = directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()  # a direction has two names: the larger side's
    parts = values.double() @ (directions * signs).T  # [S, PARTS]
    total = float(strengths.square().sum())
    return {
        "parts": (parts / parts.abs().max().clamp(min=1e-12)).round(decimals=3).tolist(),
        "kept": round(float(strengths[:PARTS].square().sum()) / total, 3) if total else 1.0,
        "norms": [round(norm, 3) for norm in (weights @ values).norm(dim=1).tolist()],
    }


def beam(coder: Coder, source: Read, tree: Tree, best: list[Hypothesis]) -> Told:
    """The levels of a tree, a score of None for what cannot be, and where in it the best answers end; level -1 is before all."""
    last = max((place[0] for one in best if (place := tree.place(one)) is not None), default=-1)
    levels = [
        [
            {"id": kept.id, "token": token, "parent": kept.parent, "score": _logarithm(kept.score)}
            for kept, token in zip(level, coder.tokens([kept.id for kept in level], source), strict=True)
        ]
        for level in tree.levels[: last + 1]  # what was looked at beyond changed nothing
    ]
    ended = []
    for one in best:
        level, slot = tree.place(one) or (-1, 0)
        ended.append(
            {
                "level": level,
                "place": slot,
                "text": coder.decode(one.ids, source),
                "ids": list(one.ids),
                "score": _logarithm(one.score),
                "normalized": _logarithm(one.normalized_score),
                "finished": one.finished,
            }
        )
    return {"levels": levels, "ended": ended}


def coverage(config: Config, seen: Observed) -> Told | None:
    """What coverage remembered before each step, where there is such; its kind."""
    if seen.coverage is None:
        return None
    return {"kind": str(getattr(config.model, "coverage", "sum")), "before": _flat(seen.coverage, 3)}


def _logarithm(score: float) -> float | None:
    return round(score, 4) if score > -math.inf else None


def _flat(numbers: Tensor, decimals: int, hidden: Tensor | None = None) -> list[float | None]:
    """Row by row; None where `hidden`, and for what is no number."""
    rounded = numbers.double().round(decimals=decimals).flatten().tolist()
    out = (~numbers.isfinite() if hidden is None else hidden | ~numbers.isfinite()).flatten().tolist()
    return [None if gone else value for value, gone in zip(rounded, out, strict=True)]


def _probability(log_prob: float) -> float:
    return float(f"{math.exp(log_prob):.4g}")


def _short(share: float) -> float:
    return round(share, 4)
