"""The shape of OpenNMT's translation server. Knows models and HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StrictInt
from starlette.responses import Response

from eyeline.predictor import SearchOptions
from eyeline.predictor.inputs import check_sources
from eyeline.serving.asking import ask, can_part
from eyeline.serving.front import entry_of
from eyeline.serving.limits import Limits, Refused
from eyeline.serving.models import Models, Served
from eyeline.serving.requests import Shape
from eyeline.serving.sentences import sentences
from eyeline.serving.wire import Json


class Segment(BaseModel):
    """A text and the model that is to translate it."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    src: str
    id: StrictInt | Annotated[str, Field(max_length=1000)] = 0
    """the model's place among those served, from 0, or its name; of one model alone, any number"""


class Translation(Shape):
    src: str
    tgt: str
    n_best: int
    """how many translations of each text there are"""
    pred_score: float | None


def router(models: Models, limits: Limits, split: bool) -> APIRouter:
    routes = APIRouter(prefix="/translator")

    @routes.post("/translate", responses={200: {"model": list[list[Translation]]}}, summary="Translate, as OpenNMT's server does")
    async def translate(body: list[Segment], request: Request) -> Response:
        limits.check("segments", len(body), limits.items)
        texts = check_sources([segment.src for segment in body], name="src")
        for text in texts:
            limits.check("characters of src", len(text), limits.characters)
        served = [_choose(models, segment.id) for segment in body]
        entry_of(request).note(served[0].name if served else "", texts)
        said: list[dict[str, Any]] = [{} for _ in body]
        for one in dict.fromkeys(served):
            places = [place for place, other in enumerate(served) if other is one]
            cut = sentences if split and can_part(one) else None
            answers = await ask(one, [texts[place] for place in places], SearchOptions(attention=False), cut=cut)
            for place, answer in zip(places, answers, strict=True):
                score = answer.normalized_score
                said[place] = {"src": answer.source, "tgt": answer.text, "n_best": 1, "pred_score": score}
        return Json([said])

    return routes


def _choose(models: Models, given: int | str) -> Served:
    """The model that is meant. Raises Refused for one that is not there."""
    if isinstance(given, str):
        return models.get(given)
    names = models.names
    if len(names) == 1:
        return models.get(None)
    if not 0 <= given < len(names):
        raise Refused(404, "no model of that number is served", f"id={given}", f"there are 0 to {len(names) - 1}")
    return models.get(names[given])
