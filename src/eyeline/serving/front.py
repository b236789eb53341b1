"""What every request passes, whatever it asks: an id, the size of its body, headers of the answer, counts, a line in the journal.

Knows HTTP as ASGI has it. Nothing that a user typed is written down unless `Entry.texts` was asked for.
"""

from __future__ import annotations

import asyncio
import re
import time
import traceback
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eyeline.serving.limits import Limits, Refused
from eyeline.serving.measures import Measures
from eyeline.serving.wire import Json, mistake

Journal = Callable[[dict[str, Any]], None]

KEY = "eyeline.entry"  # of a request's scope
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
BODY_SECONDS, DRAIN_SECONDS, DRAIN_BYTES = 30.0, 5.0, 64 << 20
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
}


@dataclass
class Entry:
    """What is known of a request that is being answered."""

    id: str
    model: str = ""
    inputs: int = 0
    characters: int = 0
    texts: list[str] | None = None  # None: not to be written down
    fault: dict[str, Any] = field(default_factory=dict)  # of a defect

    def note(self, model: str, lines: Sequence[str]) -> None:
        """What the request is about."""
        self.model, self.inputs, self.characters = model, len(lines), sum(map(len, lines))
        if self.texts is not None:
            self.texts += lines

    def blame(self, error: BaseException) -> None:
        """A defect: where it was, without what it says, which may be what a user typed."""
        frames = traceback.extract_tb(error.__traceback__)
        self.fault = {"defect": type(error).__name__, "at": [f"{one.filename}:{one.lineno} {one.name}" for one in frames]}
        if self.texts is not None:
            self.fault["says"] = str(error)


def entry_of(request: Request) -> Entry:
    """The entry of a request."""
    entry = request.scope[KEY]
    assert isinstance(entry, Entry)
    return entry


class Front:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, limits: Limits, measures: Measures, journal: Journal, log_text: bool) -> None:
        self._app, self._limits, self._measures, self._journal, self._log_text = app, limits, measures, journal, log_text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry = Entry(_id_of(Headers(scope=scope)), texts=[] if self._log_text else None)
        scope[KEY], began, status = entry, time.perf_counter(), 499  # as others write that nobody waits for the answer

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = entry.id
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            body = await self._body(scope, receive)
            if body is not None:
                await self._app(scope, _again(body, receive), sending)
        except Refused as refused:
            await _answer_and_drain(refused, scope, receive, sending)
        except Exception as error:
            entry.blame(error)
            if status == 499:
                await Json({"error": "a defect of the service"}, 500)(scope, receive, sending)
        finally:
            self._write(scope, entry, status, time.perf_counter() - began)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, None when nobody waits for an answer any more. Raises Refused for one too large or too slow."""
        length = Headers(scope=scope).get("content-length", "0")
        too_large = Refused(413, f"the body has more than {self._limits.body:,} bytes", hint="ask for less at a time")
        if length.isdecimal() and len(length) < 20 and int(length) > self._limits.body:
            raise too_large
        parts, size = list[bytes](), 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._limits.body:
                        raise too_large
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise Refused(408, "the body did not come in time") from None

    def _write(self, scope: Scope, entry: Entry, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else "other"
        route = getattr(scope.get("route"), "path", "other")  # not the path: it may be anything
        self._measures.request(method, route, status, seconds)
        line: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request": entry.id,
            "client": scope["client"][0] if scope.get("client") else None,
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        if entry.model:
            line |= {"model": entry.model, "inputs": entry.inputs, "characters": entry.characters}
        if entry.texts is not None:
            line["texts"] = entry.texts
        self._journal({**line, **entry.fault})


def _id_of(headers: Headers) -> str:
    """The client's own id where it is one, so that both sides' journals can be read together."""
    given = headers.get("x-request-id", "")
    return given if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", given) else uuid.uuid4().hex


def _again(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """Receives the body at once, and then what comes."""
    given = False

    async def receiving() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return receiving


async def _answer_and_drain(refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    """The answer first, and then what the client still sends is read and dropped, for a while: many clients read no answer before
    they have sent all."""
    response = mistake(refused)
    response.headers["connection"] = "close"
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    size = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while size < DRAIN_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    break
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})
