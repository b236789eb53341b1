"""The attention explorer: its page, the models that it offers, and what they do with a source. Knows models and HTTP."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Field, StrictBool
from starlette.responses import Response

from eyeline.explorer import trace
from eyeline.explorer.one_file import PAGE
from eyeline.explorer.trace import MOST
from eyeline.predictor.inputs import check_sources
from eyeline.serving.front import entry_of
from eyeline.serving.limits import Limits
from eyeline.serving.models import Models
from eyeline.serving.requests import Count, Input, Positive, Shape, Text
from eyeline.serving.wire import Json

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
INDEX = "index.html"
SUCH: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`source` and `target` with their tokens, `steps` with candidates, `looks` with scores and weights",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


class ExploreRequest(Shape):
    """One source, and how its output is looked for."""

    source: Input
    """a text; for a model that reads numbers, a list of numbers or of lists of them"""
    model: Text | None = None
    """one of those served; the first where it is left out"""
    target: str | None = None
    """the output; where it is left out, what the model predicts"""
    prefix: Annotated[list[Count], Field(max_length=MOST)] = []
    """ids that a predicted output begins with, of another answer's target.ids and candidates"""
    beam_size: Positive | None = None
    tree: StrictBool = False
    """whether the hypotheses that the beam kept are told"""
    look: Annotated[list[Count | None], Field(min_length=2, max_length=2)] | None = None
    """layer and head of the attention that is wanted; null for one that is no head, or a mean of heads"""


class Offered(Shape):
    name: str
    architecture: str
    numbers: int
    """that each element of a source has; 0 where sources are text"""


class Offer(Shape):
    models: list[Offered]
    wants_key: bool


def router(models: Models, limits: Limits, wants_key: bool) -> tuple[APIRouter, APIRouter]:
    """What asks a model, and what only shows the page."""
    asking, telling = APIRouter(), APIRouter()
    files = {path.name: path.read_bytes() for path in PAGE.iterdir()}  # no name that is asked for is ever a path

    @asking.post("/explore", responses=SUCH, summary="Everything that a model does at each step of one output")
    async def explore(body: ExploreRequest, request: Request) -> Response:
        served = models.get(body.model)
        (line,) = check_sources([body.source], served.predictor.config.numbers > 0, name="source")
        limits.check("characters of source", len(line), limits.characters)
        limits.check("characters of target", len(body.target or ""), limits.characters)
        limits.check("beam_size", body.beam_size or 1, limits.beam)
        entry_of(request).note(served.name, [line])
        look = None if body.look is None else (body.look[0], body.look[1])
        asked = partial(trace, prefix=body.prefix, beam_size=body.beam_size, tree=body.tree, look=look)
        return Json({**await served.run(asked, served.predictor, line, body.target), "name": served.name})

    @telling.get("/explore/models", responses={200: {"model": Offer}}, summary="The models that can be explored")
    async def offered() -> Response:
        configs = {served.name: served.predictor.config for served in models}
        found = [
            {"name": name, "architecture": config.model.architecture, "numbers": config.numbers}
            for name, config in configs.items()
        ]
        return Json({"models": found, "wants_key": wants_key})

    @telling.get("/", include_in_schema=False)
    async def page() -> Response:
        return _file(INDEX, files)

    @telling.get("/page/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        return _file(name, files)

    return asking, telling


def _file(name: str, files: dict[str, bytes]) -> Response:
    if name not in files:
        return Json({"error": "not found"}, 404)
    kind = KINDS[name[name.rindex(".") :]]
    return Response(files[name], media_type=f"{kind}; charset=utf-8")
