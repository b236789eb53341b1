"""What goes over the wire: JSON out, JSON or a form in, and mistakes as `{"error": "…"}`. Knows HTTP; no models."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from eyeline.errors import RunError, UserError
from eyeline.serving.limits import Refused

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
Body = TypeVar("Body", bound=BaseModel)


class Mistake(BaseModel):
    """What every request is told that is not answered."""

    model_config = ConfigDict(extra="forbid")

    error: str


MISTAKES: dict[int | str, dict[str, Any]] = {
    400: {"model": Mistake, "description": "The request is not one that can be answered"},
    403: {"model": Mistake, "description": "A valid API key is wanted"},
    404: {"model": Mistake, "description": "No such model"},
    408: {"model": Mistake, "description": "The request did not come in time"},
    413: {"model": Mistake, "description": "The request is too large"},
    429: {"model": Mistake, "description": "Too much at a time; `Retry-After` says when to come back"},
    500: {"model": Mistake, "description": "A defect of the service"},
    503: {"model": Mistake, "description": "The service has not the memory for it"},
    504: {"model": Mistake, "description": "No answer within the time limit"},
}


class Json(Response):
    """JSON as browsers and Python read it: what is no finite number is null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return written(content).encode("utf-8", "replace")  # half of a surrogate pair in a message is no text


def written(value: Any) -> str:
    """The value as JSON on one line."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:  # an output that cannot be has a score of -inf
        return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() in FORMS


async def fields(request: Request) -> Any:
    """What a request says, as JSON or as a form; in a form, what comes again is a list. Raises Refused for neither."""
    if is_form(request):
        given = [*request.query_params.multi_items(), *(await request.form()).multi_items()]
        names = dict.fromkeys(name for name, _ in given)
        values = {name: [value for key, value in given if key == name] for name in names}
        return {name: each[0] if len(each) == 1 else each for name, each in values.items()}
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError):
        raise Refused(400, "the body is neither JSON nor a form", hint="send one, and its Content-Type") from None


async def read(request: Request, shape: type[Body]) -> Body:
    """A request's fields in a shape; in a form numbers are text. Raises Refused for what has another one."""
    try:
        return shape.model_validate(await fields(request), strict=not is_form(request))
    except ValidationError as error:
        raise Refused(400, *_first_fault(error.errors())) from None


NOT_JSON = ("the body is not JSON", "", "send JSON, and Content-Type: application/json")


def _first_fault(faults: Any) -> tuple[str, str, str]:
    """What is wrong, where, and what to do."""
    fault = faults[0]
    if fault["type"] == "json_invalid":
        return NOT_JSON
    if tuple(fault["loc"]) in ((), ("body",)):
        wanted = "list" if fault["type"] == "list_type" else "object"
        return f"the body is not a JSON {wanted}", "", NOT_JSON[2]
    where = ".".join(str(part) for part in fault["loc"] if part != "body")
    return str(fault["msg"])[:200], where[:200], ""


def mistake(error: UserError) -> Response:
    """What the user is told."""
    if isinstance(error, RunError):  # a model that answers NaN, or the like: not the user's to mend, and it may name a path
        return Json({"error": "the model cannot be used"}, 500)
    status, retry_after = (error.status, error.retry_after) if isinstance(error, Refused) else (400, 0)
    return Json({"error": str(error)}, status, {"retry-after": str(retry_after)} if retry_after else None)


def tell_mistakes(app: FastAPI) -> None:
    """Lets `app` answer every mistake in one shape."""

    async def user_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, UserError)
        return mistake(error)

    async def bad_request(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return mistake(Refused(400, *_first_fault(error.errors())))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return Json({"error": str(error.detail).lower()}, error.status_code, error.headers)

    app.add_exception_handler(UserError, user_error)
    app.add_exception_handler(RequestValidationError, bad_request)
    app.add_exception_handler(HTTPException, refused)
