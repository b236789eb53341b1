"""`POST /predict`: everything that `eyeline predict` can do, with JSON or token by token. Knows models and HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from eyeline.contracts import Prediction
from eyeline.errors import RunError, UserError
from eyeline.predictor.answers import as_json
from eyeline.serving.asking import ask, can_part
from eyeline.serving.front import Entry, entry_of
from eyeline.serving.limits import Limits, Refused
from eyeline.serving.models import Models
from eyeline.serving.requests import PredictAnswer, PredictRequest
from eyeline.serving.sentences import sentences
from eyeline.serving.wire import Json, written

ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": PredictAnswer,
        "description": "Predictions, or with `stream` server-sent events",
        "content": {"text/event-stream": {}},
    }
}


def router(models: Models, limits: Limits, split: bool, seed: int | None) -> APIRouter:
    """`split` and `seed`: whether inputs are cut into sentences, and what samples follow from, where a request does not say."""
    routes = APIRouter()

    @routes.post("/predict", responses=ANSWERS, summary="Predict the output of each input")
    async def predict(body: PredictRequest, request: Request) -> Response:
        served = models.get(body.model)
        lines = body.lines(limits, served.predictor.config.numbers > 0)
        entry_of(request).note(served.name, lines)
        options, prefixes, terms = body.options(limits, seed), body.prefixes(limits), body.terms(limits)
        parted = body.split if body.split is not None else split and can_part(served)
        if not body.stream:
            cut = sentences if parted else None
            predictions = await ask(served, lines, options, cut=cut, prefixes=prefixes, terms=terms)
            return Json({"predictions": [as_json(one) for one in predictions], "model": served.name})
        if len(lines) != 1 or body.split:
            raise Refused(400, "one input as a whole is told token by token", "stream=true", "ask for one, without split")
        coming = served.stream(lines[0], options, prefix=prefixes[0] if prefixes else "", terms=terms)
        first = await anext(coming)  # what is wrong with the request is told as for others
        return StreamingResponse(_events(first, coming, served.name, entry_of(request)), media_type="text/event-stream")

    return routes


async def _events(first: Prediction, coming: AsyncIterator[Prediction], name: str, entry: Entry) -> AsyncIterator[str]:
    """A `token` for each token, and the whole as a `prediction`; or an `error`."""
    try:
        last = first
        async for following in coming:
            token = {"token": last.tokens[-1], "token_score": last.token_scores[-1], "text": last.text}
            yield _event("token", token)
            last = following
        yield _event("prediction", {"predictions": [as_json(last)], "model": name})
    except RunError:
        yield _event("error", {"error": "the model cannot be used"})
    except UserError as error:
        yield _event("error", {"error": str(error)})
    except Exception as error:
        entry.blame(error)
        yield _event("error", {"error": "a defect of the service"})


def _event(name: str, value: Any) -> str:
    return f"event: {name}\ndata: {written(value)}\n\n"
