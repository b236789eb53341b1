"""Who may ask, and how often. Knows keys and clocks; no models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from fastapi import Request

from eyeline.errors import UserError
from eyeline.serving.limits import Refused
from eyeline.serving.wire import fields
from eyeline.text.lines import read_lines, require_line

MOST_CLIENTS = 10_000  # whose pace is remembered at a time


def read_keys(path: str | Path) -> list[str]:
    """API keys, one a line; empty lines and those that begin with # are none. Raises UserError for a file without any."""
    texts = (require_line(line, str(path)).text.strip() for line in read_lines(path, str(path)))
    keys = [text for text in texts if text and not text.startswith("#")]
    if not keys:
        raise UserError("no API key, so that nobody could ask", str(path), "write one a line")
    return keys


class Access:
    """Stands before every route that works: `Depends(access)`."""

    def __init__(self, keys: Iterable[str] = (), rate: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            keys: those that may ask; none: everybody may.
            rate: requests a minute and client, as many at once; 0: any number. A client is a key, or else an address.
        """
        self._keys = [sha256(key.encode()).digest() for key in keys]
        self._rate, self._clock = rate, clock
        self._left: dict[bytes, tuple[float, float]] = {}  # client -> requests that it has left, and when that was

    @property
    def wants_key(self) -> bool:
        return bool(self._keys)

    async def __call__(self, request: Request) -> None:
        """Raises Refused: 403 without a valid key, 429 for too many requests."""
        client = (request.client.host if request.client else "").encode()
        if self._keys:
            key = sha256((await _key(request)).encode("utf-8", "replace")).digest()
            known = [compare_digest(key, each) for each in self._keys]  # all of them, so that the time tells nothing
            if not any(known):
                self._spend(client)
                raise Refused(403, "a valid API key is wanted", hint="as api_key, or Authorization: Bearer KEY")
            client = key
        self._spend(client)

    def _spend(self, client: bytes) -> None:
        if not self._rate:
            return
        now = self._clock()
        left, when = self._left.pop(client, (float(self._rate), now))
        left = min(float(self._rate), left + (now - when) * self._rate / 60)
        self._left[client] = (max(left - 1, 0.0) if left >= 1 else left, now)  # at the end: the first is who was quiet longest
        while len(self._left) > MOST_CLIENTS:
            del self._left[next(iter(self._left))]
        if left < 1:
            wait = (1 - left) * 60 / self._rate
            raise Refused(429, f"more than {self._rate:,} requests a minute", hint="try again later", retry_after=wait)


async def _key(request: Request) -> str:
    """The key that a request carries: in its headers, or as LibreTranslate's clients send it."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key:
        return key.strip()
    if "x-api-key" in request.headers:
        return request.headers["x-api-key"]
    try:
        given = await fields(request)
    except Refused:
        return ""
    key = given.get("api_key", "") if isinstance(given, dict) else ""
    return key if isinstance(key, str) else ""
