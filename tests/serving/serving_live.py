"""A service on a free port of this machine, and what a client sees of it. Knows HTTP alone."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI

from eyeline.serving.running import Server, configured, listen


@dataclass(frozen=True)
class Got:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """What a mistake says: one line, no traceback, no path."""
        said = self.json
        assert list(said) == ["error"]
        for trace in ("Traceback", 'File "', ".py", "/work", "/tmp", "\n"):
            assert trace not in said["error"]
        return str(said["error"])

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The server-sent events of a stream."""
        assert self.headers["content-type"].startswith("text/event-stream")
        blocks = self.body.decode().split("\n\n")
        assert blocks[-1] == ""
        pairs = [block.split("\n") for block in blocks[:-1]]
        return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in pairs]


@dataclass
class Live:
    """A running service."""

    port: int
    journal: list[dict[str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Got:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Got(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Got:
        return self.ask("GET", path)

    def post(self, path: str, value: Any, headers: Mapping[str, str] | None = None) -> Got:
        return self.ask("POST", path, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def form(self, path: str, value: Mapping[str, Any]) -> Got:
        body = urlencode(value, doseq=True).encode()
        return self.ask("POST", path, body, {"Content-Type": "application/x-www-form-urlencoded"})

    def predict(self, *inputs: Any, **options: Any) -> list[Any]:
        """The predictions, once the answer is one."""
        got = self.post("/predict", {"inputs": list(inputs), **options})
        assert got.status == 200, got.body
        return list(got.json["predictions"])


@contextmanager
def live(app: FastAPI, journal: list[dict[str, Any]] | None = None) -> Iterator[Live]:
    """The application on a free port, in a thread of its own; it has ended behind `with`."""
    with listen("127.0.0.1", 0) as listening:
        server = Server(configured(app, 20))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
            yield Live(listening.getsockname()[1], journal if journal is not None else [])
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()
