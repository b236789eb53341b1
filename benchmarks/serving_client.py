"""Clients of a service: one connection each, kept open, and what they ask. Knows HTTP and JSON; nothing of eyeline."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
WAYS: Sequence[dict[str, Any]] = (
    {"beam_size": 1, "attention": False},
    {"beam_size": 1},
    {"attention": False},
    {"n_best": 3, "length_penalty": 0.0, "attention": False},
    {"beam_size": 2, "no_repeat_ngram": 3},
    {"beam_size": 4, "min_length": 2, "max_length": 12, "attention": False},
    {"sampling": "top-k=5,temperature=0.8", "seed": 3, "n_best": 2, "attention": False},
)


@dataclass(frozen=True)
class Request:
    path: str
    body: bytes
    kind: str = JSON


@dataclass(frozen=True)
class Answer:
    status: int  # 0: none came
    body: bytes
    seconds: float


class Client:
    """A connection that is opened when it is needed."""

    def __init__(self, port: int, timeout: float = 150.0) -> None:
        self._port, self._timeout = port, timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Request, method: str = "POST") -> Answer:
        """The answer. Raises TimeoutError when none comes; a connection that is refused or lost is status 0."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout):
                status, body = await self._ask(request, method)
        except (OSError, EOFError, ValueError) as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise
            return Answer(0, b"", time.perf_counter() - began)
        return Answer(status, body, time.perf_counter() - began)

    async def _ask(self, request: Request, method: str) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        head = f"{method} {request.path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {request.kind}\r\n"
        writer.write(f"{head}content-length: {len(request.body)}\r\n\r\n".encode() + request.body)
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await reader.readline(), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        else:
            body = await reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close":
            self.close()
        return int(lines[0].split()[1]), body

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def load(port: int, requests: Sequence[Request], clients: int, told: Callable[[int, Answer], None]) -> float:
    """Asks all requests, so many clients at a time, each the next one when it has its answer. Returns the seconds it took.

    Args:
        told: is told each answer and the place of its request.
    """
    places = iter(range(len(requests)))

    async def one() -> None:
        client = Client(port)
        for place in places:
            told(place, await client.ask(requests[place]))
        client.close()

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    return time.perf_counter() - began


def mixed(lines: Sequence[str], count: int, seed: int) -> list[Request]:
    """Requests of one to four inputs each, in all WAYS and in LibreTranslate's shape."""
    draw, made = random.Random(seed), list[Request]()
    for number in range(count):
        inputs = [draw.choice(lines) for _ in range(draw.choice((1, 1, 1, 2, 4)))]
        way = number % (len(WAYS) + 1)
        if way < len(WAYS):
            made.append(Request("/predict", json.dumps({"inputs": inputs, **WAYS[way]}).encode()))
        else:
            made.append(Request("/translate", json.dumps({"q": inputs, "source": "auto", "target": "und"}).encode()))
    return made


SECRET = "eyeline-fuzz"  # is in every path that a body names, so that one that is opened can be told


def fuzzed(count: int, seed: int) -> list[Request]:
    """Bodies that a service may get from anyone: nearly right ones, with something wrong somewhere, and bytes."""
    draw = random.Random(seed)
    return [_fuzzed(draw) for _ in range(count)]


def _fuzzed(draw: random.Random) -> Request:
    paths = ("/predict", "/predict", "/predict", "/translate", "/detect", "/translator/translate", "/explore")
    path = draw.choice(paths)
    kind = draw.choice((JSON, JSON, JSON, JSON, FORM, "text/plain", "multipart/form-data; boundary=x", "application/xml"))
    chance = draw.random()
    if chance < 0.1:
        return Request(path, draw.randbytes(draw.randrange(200)), kind)
    body: Any = _right(path, draw)
    for _ in range(draw.randrange(4)):
        body = _wrong(body, draw)
    text = json.dumps(body)
    if chance < 0.2:
        place = draw.randrange(len(text) + 1)
        text = text[:place] + draw.choice(("", "\x00", '"', "}", "NaN", "\\ud800", "[" * 500)) + text[place + draw.randrange(3) :]
    return Request(path, text.encode("utf-8", "replace"), kind)


def _right(path: str, draw: random.Random) -> Any:
    text = draw.choice(("a b", "chat", "", " ", "x" * 50, "ü한", "a\nb. C", "[[0.1], [0.2]]"))
    if path == "/translate":
        return {"q": text, "source": "auto", "target": "und", "format": draw.choice(("text", "html")), "alternatives": 1}
    if path == "/detect":
        return {"q": text}
    if path == "/explore":
        return {
            "source": text,
            "target": draw.choice((None, "a b")),
            "beam_size": 2,
            "tree": True,
            "prefix": [4],
            "look": [0, None],
        }
    if path == "/translator/translate":
        return [{"src": text, "id": draw.choice((0, 100, "run"))}]
    options = {
        "n_best": 2,
        "beam_size": 3,
        "sampling": "top-k=3",
        "prefix": "a",
        "seed": 5,
        "min_length": 1,
        "max_length": 9,
        "no_repeat_ngram": 2,
        "constraints": [{"source": "a", "forbid": ["b"]}],
        "dictionary": {"a": "b"},
        "replace_unknown": True,
        "diverse_groups": 3,
        "mbr": 4,
        "too_long": "truncate",
        "split": True,
        "stream": True,
        "length_normalization": "wu",
        "coverage_penalty": 0.2,
        "max_length_ratio": 2.0,
    }
    names = draw.sample(sorted(options), draw.randrange(5))
    return {"inputs": [text], **{name: options[name] for name in names}}


def _wrong(value: Any, draw: random.Random) -> Any:
    """The value with one part of it replaced, left out or doubled."""
    if isinstance(value, dict) and value and draw.random() < 0.8:
        name = draw.choice(sorted(value))
        change = draw.randrange(4)
        if change == 0:
            return {key: each for key, each in value.items() if key != name}
        return {**value, (name if change < 3 else _junk_text(draw)): _wrong(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.6:
        return [_wrong(each, draw) for each in value] * draw.choice((1, 1, 2, 30))
    return _junk(draw)


def _junk(draw: random.Random) -> Any:
    whole = (0, 1, -1, 2, 3, 2**31, 2**63, 10**30, True, None)
    real = (0.0, -0.5, 1e-320, 1e308, 0.5, 3.0)
    kind = draw.randrange(6)
    if kind == 0:
        return draw.choice(whole)
    if kind == 1:
        return draw.choice(real)
    if kind == 2:
        return [_junk(draw) for _ in range(draw.randrange(3))]
    if kind == 3:
        return {_junk_text(draw): _junk(draw)}
    return _junk_text(draw)


def _junk_text(draw: random.Random) -> str:
    paths = (
        f"../../{SECRET}",
        f"/etc/{SECRET}",
        f"file:///{SECRET}",
        f"{SECRET}\x00.yaml",
        f"C:\\{SECRET}",
        f"{SECRET}/config.yaml",
    )
    others = (
        "",
        "a",
        "<script>alert(1)</script>",
        "\ud800",
        "\u2028",
        "é" * 300,
        "top-k=9999999999999999999999",
        "temperature=1e-320",
    )
    return draw.choice(paths + others)
