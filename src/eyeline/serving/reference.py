"""`GET /docs`: what can be asked, as one page without a script. Knows OpenAPI documents and HTML."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.responses import Response

STYLE = Path(__file__).parent / "reference.css"


def router(app: FastAPI) -> APIRouter:
    """The page for what `app` has when it is asked for."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/docs")
    async def docs() -> Response:
        return Response(page(app.openapi()), media_type="text/html; charset=utf-8")

    @routes.get("/docs/style.css")
    async def style() -> Response:
        return Response(STYLE.read_bytes(), media_type="text/css; charset=utf-8")

    return routes


def page(document: dict[str, Any]) -> str:
    """An OpenAPI document as HTML."""
    title = escape(document["info"]["title"])
    operations = [
        _operation(method, path, operation, document)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}: what can be asked</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="docs/style.css"></head>'
        f"<body><main><h1>{title} {escape(document['info']['version'])}</h1>"
        '<p>What can be asked of this service. For programs: <a href="openapi.json">openapi.json</a>. '
        "A mistake is answered with <code>{&quot;error&quot;: &quot;…&quot;}</code>.</p>"
        f"{''.join(operations)}</main></body></html>\n"
    )


def _operation(method: str, path: str, operation: dict[str, Any], document: dict[str, Any]) -> str:
    parts = [f"<section><h2><code>{escape(method.upper())} {escape(path)}</code></h2>"]
    parts.append(f"<p>{escape(operation.get('summary', ''))}</p>")
    bodies = operation.get("requestBody", {}).get("content", {})
    if bodies:
        shape = next(iter(bodies.values()))["schema"]
        parts.append(f"<h3>Asked as {escape(', '.join(bodies))}</h3>{_fields(shape, document)}")
    for status, response in operation["responses"].items():
        for kind, content in response.get("content", {}).items():
            if status == "200" and content.get("schema"):
                parts.append(f"<h3>Answered as {escape(kind)}</h3>{_fields(content['schema'], document)}")
    codes = ", ".join(status for status in operation["responses"] if status != "200")
    return "".join(parts) + (f"<p>Mistakes: {escape(codes)}</p></section>" if codes else "</section>")


def _fields(shape: dict[str, Any], document: dict[str, Any]) -> str:
    """A table of an object's fields, or of those of a list's entries."""
    shape, before = _resolved(shape, document), ""
    while shape.get("type") == "array":
        shape, before = _resolved(shape["items"], document), before + "a list of "
    if "properties" not in shape:
        return f"<p>{escape(before + _kind(shape, document))}</p>"
    required = shape.get("required", [])
    rows = [
        f"<tr><th><code>{escape(name)}</code>{'' if name in required else ' (optional)'}</th>"
        f"<td>{escape(_kind(field, document))}</td><td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in shape["properties"].items()
    ]
    return f"<p>{escape(before)}an object</p><table><tbody>{''.join(rows)}</tbody></table>"


def _resolved(shape: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    name = shape.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else shape


def _kind(shape: dict[str, Any], document: dict[str, Any]) -> str:
    """What a value is, in a few words."""
    if "$ref" in shape:
        return f"{{{', '.join(_resolved(shape, document).get('properties', {}))}}}"
    if "anyOf" in shape:
        return " or ".join(dict.fromkeys(_kind(each, document) for each in shape["anyOf"]))
    if "enum" in shape:
        return " or ".join(map(str, shape["enum"]))
    if shape.get("type") == "array":
        return (
            f"list of ({_kind(shape['items'], document)})"
            if "anyOf" in shape["items"]
            else f"list of {_kind(shape['items'], document)}"
        )
    bounds = [f"{word} {_number(shape[key])}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in shape]
    return " ".join([str(shape.get("type", "anything")), *bounds])


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"
