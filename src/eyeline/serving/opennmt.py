"""The shape of OpenNMT's translation server. Knows models and HTTP."""

from __future__ import annotations

from typing import Annotated

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
        served = _choose(models, {segment.id for segment in body} or {0})
        entry_of(request).note(served.name, texts)
        cut = sentences if split and can_part(served) else None
        answers = await ask(served, texts, SearchOptions(attention=False), cut=cut)
        said = [{"src": one.source, "tgt": one.text, "n_best": 1, "pred_score": one.normalized_score} for one in answers]
        return Json([said])

    return routes


def _choose(models: Models, ids: set[int | str]) -> Served:
    """The one model that is meant. Raises Refused for none or several."""
    if len(ids) > 1:
        raise Refused(400, "the segments of a request are for one model", "id", "send a request for each")
    (given,) = ids
    if isinstance(given, str):
        return models.get(given)
    names = models.names
    if len(names) == 1:
        return models.get(None)
    if not 0 <= given < len(names):
        raise Refused(404, "no model of that number is served", f"id={given}", f"there are 0 to {len(names) - 1}")
    return models.get(names[given])
