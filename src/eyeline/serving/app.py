"""The application: routes behind one front. Knows how its parts go together; no model, no text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI
from starlette.responses import Response

from eyeline import __version__
from eyeline.serving import explore, libretranslate, opennmt, predicting, reference
from eyeline.serving.access import Access
from eyeline.serving.front import Front, Journal
from eyeline.serving.limits import Limits
from eyeline.serving.measures import Measures
from eyeline.serving.models import Models
from eyeline.serving.requests import Shape
from eyeline.serving.wire import MISTAKES, tell_mistakes


class Health(Shape):
    status: str


class _App(FastAPI):
    """Its OpenAPI document has no 422: what cannot be read is answered with 400, as everything that the user can mend."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schema = super().openapi()
            for methods in schema["paths"].values():
                for operation in methods.values():
                    operation["responses"].pop("422", None)
            for name in ("HTTPValidationError", "ValidationError"):
                schema["components"]["schemas"].pop(name, None)
        assert self.openapi_schema is not None
        return self.openapi_schema


def _silent(line: dict[str, Any]) -> None:
    """Writes nothing down."""


def create_app(
    models: Models,
    limits: Limits,
    *,
    access: Access | None = None,
    split: bool = False,
    seed: int | None = None,
    journal: Journal = _silent,
    log_text: bool = False,
) -> FastAPI:
    """The service of some models.

    Args:
        access: who may ask; without it everybody may.
        split: whether inputs are cut into sentences where a request does not say.
        seed: what samples follow from where a request does not say; default: the run's.
        journal: is given what is to be written down of each request.
        log_text: whether that has what users typed.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        models.close()

    guard = access or Access(rate=limits.rate)
    measures = Measures(models)
    app = _App(title="eyeline", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None, responses=MISTAKES)
    translating, telling = libretranslate.router(models, limits, split, guard.wants_key)
    exploring, showing = explore.router(models, limits, guard.wants_key)
    predicted = predicting.router(models, limits, split, seed)
    for working in (predicted, translating, opennmt.router(models, limits, split), exploring):
        app.include_router(working, dependencies=[Depends(guard)])
    app.include_router(telling)
    app.include_router(showing)

    @app.get("/health", responses={200: {"model": Health}}, summary="Whether the service is there")
    async def health() -> Health:
        return Health(status="ok")

    @app.get(
        "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}}, summary="Counts, for Prometheus"
    )
    async def metrics() -> Response:
        return Response(measures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.include_router(reference.router(app))
    tell_mistakes(app)
    app.add_middleware(Front, limits=limits, measures=measures, journal=journal, log_text=log_text)
    return app
