"""LibreTranslate's shapes, so that its clients work unchanged. Knows models' languages and HTTP.

A run that names its languages (`data.source_language`, `data.target_language`) answers for that pair; one that does not answers
for any, and is listed under `und`. There is no language identification: `/detect` says for each model's source language how much
of the text its vocabulary knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from eyeline.contracts import Prediction
from eyeline.errors import UserError
from eyeline.predictor import Predictor, SearchOptions
from eyeline.predictor.inputs import check_sources
from eyeline.serving.asking import ask, can_part
from eyeline.serving.front import entry_of
from eyeline.serving.limits import Limits, Refused
from eyeline.serving.markup import Document, document
from eyeline.serving.models import Models, Served
from eyeline.serving.requests import Shape
from eyeline.serving.sentences import Parts, lines, sentences
from eyeline.serving.wire import FORMS, Json, read

UNDETERMINED = "und"  # ISO 639-2's word for it
AUTO = "auto"
DETECTED = 1000  # characters that are looked at

Code = Annotated[str, Field(max_length=100)]


class _Asked(BaseModel):
    """Fields that others know besides are let pass."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)


class TranslateRequest(_Asked):
    q: str | list[str]
    """a text, or several"""
    source: Code
    """its language's code, or auto"""
    target: Code
    format: Literal["text", "html"] = "text"
    """in html, tags stay as they are"""
    alternatives: Annotated[int, Field(ge=0, le=1000)] = 0
    """so many other translations"""
    api_key: str | None = None


class DetectRequest(_Asked):
    q: str
    api_key: str | None = None


class Detected(Shape):
    confidence: float
    """how much of the text the model's vocabulary knows, in percent"""
    language: str


class Translated(Shape):
    translatedText: str | list[str]  # noqa: N815 the client's spelling
    alternatives: list[str] | list[list[str]] = []
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815


class Language(Shape):
    code: str
    name: str
    targets: list[str]


def router(models: Models, limits: Limits, split: bool, wants_key: bool) -> tuple[APIRouter, APIRouter]:
    """What asks a model, and what only tells of them."""
    asking, telling = APIRouter(), APIRouter()

    @asking.post("/translate", openapi_extra=_either(TranslateRequest), responses=_in_shape(Translated), summary="Translate")
    async def translate(request: Request) -> Response:
        body = await read(request, TranslateRequest)
        texts = [body.q] if isinstance(body.q, str) else body.q
        limits.check("texts of q", len(texts), limits.items)
        limits.check("alternatives", body.alternatives, limits.n_best - 1)
        for text in check_sources(texts, name="q"):
            limits.check("characters of q", len(text), limits.characters)
        served = _choose(models, body.source, body.target, texts)
        entry_of(request).note(served.name, texts)
        return Json(await _translated(served, body, texts, sentences if split else lines))

    @asking.post(
        "/detect", openapi_extra=_either(DetectRequest), responses=_in_shape(list[Detected]), summary="Detect a language"
    )
    async def detect(request: Request) -> Response:
        body = await read(request, DetectRequest)
        limits.check("characters of q", len(check_sources([body.q], name="q")[0]), limits.characters)
        found: dict[str, float] = {}
        for one in (_detected(served, body.q) for served in models):
            found[one["language"]] = max(found.get(one["language"], 0.0), one["confidence"])
        ranked = sorted(found.items(), key=lambda one: -one[1])
        return Json([{"confidence": confidence, "language": language} for language, confidence in ranked])

    @telling.get("/languages", responses=_in_shape(list[Language]), summary="The languages of the models")
    async def languages() -> Response:
        return Json(list(_languages(models)))

    @telling.get("/frontend/settings", summary="What LibreTranslate's own page asks for")
    async def settings() -> Response:
        target = _target(models.get(None).predictor)
        spoken = {"source": {"code": AUTO, "name": "Auto Detect"}, "target": {"code": target, "name": _name(target)}}
        limited = {"charLimit": limits.characters, "frontendTimeout": 500, "suggestions": False, "supportedFilesFormat": []}
        return Json({"apiKeys": wants_key, "keyRequired": wants_key, "language": spoken, **limited})

    return asking, telling


async def _translated(
    served: Served, body: TranslateRequest, texts: Sequence[str], cut: Callable[[str], Parts]
) -> dict[str, Any]:
    """What is answered to a request."""
    documents = [document(text) if body.format == "html" else Document(("", ""), (text,)) for text in texts]
    options = SearchOptions(n_best=body.alternatives + 1, attention=False)
    flat = [text for one in documents for text in one.texts]
    answers = iter(await ask(served, flat, options, cut=cut if can_part(served) else None))
    several = [_translations(one, [next(answers) for _ in one.texts]) for one in documents]
    alone = isinstance(body.q, str)
    result: dict[str, Any] = {"translatedText": several[0][0] if alone else [each[0] for each in several]}
    if body.alternatives:
        result["alternatives"] = several[0][1:] if alone else [each[1:] for each in several]
    if body.source == AUTO:
        found = [_detected(served, text) for text in texts]
        result["detectedLanguage"] = found[0] if alone else found
    return result


def _in_shape(shape: Any) -> dict[int | str, dict[str, Any]]:
    """How OpenAPI is told of an answer."""
    return {200: {"model": shape}}


def _either(shape: type[BaseModel]) -> dict[str, Any]:
    """How OpenAPI says that a body is JSON or a form."""
    content = {kind: {"schema": shape.model_json_schema()} for kind in ("application/json", *FORMS)}
    return {"requestBody": {"required": True, "content": content}}


def _source(predictor: Predictor) -> str:
    return predictor.config.data.source_language or UNDETERMINED


def _target(predictor: Predictor) -> str:
    return predictor.config.data.target_language or UNDETERMINED


def _choose(models: Models, source: str, target: str, texts: Sequence[str]) -> Served:
    """The first model of the pair, or else one that names none; for `auto` the one that knows most of the texts."""
    for wanted in (target, UNDETERMINED):
        to = [served for served in models if _target(served.predictor) == wanted]
        if to and source == AUTO:
            return max(to, key=lambda served: sum(_known(served.predictor, text) for text in texts))
        for spoken in (source, UNDETERMINED):
            for served in to:
                if _source(served.predictor) == spoken:
                    return served
    raise Refused(400, f"{source} to {target} is not supported", hint=f"there are {', '.join(_codes(models))}")


def _codes(models: Models) -> list[str]:
    return [f"{_source(served.predictor)} to {_target(served.predictor)}" for served in models]


def _known(predictor: Predictor, text: str) -> float:
    """How much of a text's tokens the vocabulary holds, from 0 to 1."""
    try:
        read = predictor.read(" ".join(text[:DETECTED].split()))
    except UserError:
        return 0.0
    tokens = len(read.encoded.ids)
    return 1 - read.unknown / tokens if tokens else 0.0


def _detected(served: Served, text: str) -> dict[str, Any]:
    return {"confidence": round(100 * _known(served.predictor, text), 1), "language": _source(served.predictor)}


def _translations(page: Document, answers: Sequence[Prediction]) -> list[str]:
    """The text itself and then others, each once; where a part has fewer, its best stands in."""
    count = max((len(answer.n_best) for answer in answers), default=1)
    ranks = [[answer.n_best[rank if rank < len(answer.n_best) else 0].text for answer in answers] for rank in range(count)]
    return list(dict.fromkeys(page.filled(texts) for texts in ranks))


def _languages(models: Models) -> Iterator[dict[str, Any]]:
    targets: dict[str, list[str]] = {}
    for served in models:
        target = _target(served.predictor)
        targets.setdefault(_source(served.predictor), []).append(target)
    for served in models:
        targets.setdefault(_target(served.predictor), [])
    for code, to in targets.items():
        yield {"code": code, "name": _name(code), "targets": list(dict.fromkeys(to))}


def _name(code: str) -> str:
    """A language's name in English; the code where there is none."""
    from babel import Locale  # takes a while

    return str(Locale("en").languages.get(code.replace("-", "_"), code))
