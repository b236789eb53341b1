"""The explorer over HTTP: the page and nothing else of the disk, what a model does with a source, and what is refused."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from serving_live import Live, live

from eyeline.explorer import trace
from eyeline.explorer.one_file import PAGE
from eyeline.serving.access import Access
from eyeline.serving.app import create_app
from eyeline.serving.limits import Limits
from eyeline.serving.models import Models
from toy_runs import ToyRuns


def explore(service: Live, source: Any, **options: Any) -> Any:
    got = service.post("/explore", {"source": source, **options})
    assert got.status == 200, got.body
    return got.json


def test_the_page_and_its_parts_are_served(service: Live) -> None:
    page = service.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    kinds = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
    for path in PAGE.iterdir():
        part = service.get(f"/page/{path.name}")
        assert part.body == path.read_bytes()
        assert part.headers["content-type"] == kinds[Path(path.name).suffix] + "; charset=utf-8"


def test_a_text_in_the_address_is_not_in_the_page(service: Live) -> None:
    assert service.get("/?text=<script>alert(1)</script>").body == service.get("/").body


@pytest.mark.parametrize(
    "path", ["/page/", "/page/x.js", "/page/..%2ftrace.py", "/page/%2e%2e/trace.py", "/page//etc/passwd", "/page/."]
)
def test_nothing_else_is_served(service: Live, path: str) -> None:
    assert service.get(path).status == 404


def test_the_models_are_told(service: Live) -> None:
    found = service.get("/explore/models").json
    assert found["models"][0] == {"name": "luong", "architecture": "luong", "numbers": 0}
    assert {"name": "points", "architecture": "pointer-network", "numbers": 2} in found["models"]
    assert found["wants_key"] is False


def test_it_answers_what_python_says(service: Live, toys: ToyRuns) -> None:
    wanted = trace(toys.predictor("luong"), "a b c", beam_size=3, tree=True)
    assert explore(service, "a b c", beam_size=3, tree=True) == {**json.loads(json.dumps(wanted)), "name": "luong"}
    points = [[0.5, 0.1], [0.1, 0.9]]
    assert explore(service, points, model="points")["target"] == trace(toys.predictor("points"), points)["target"]
    ids = wanted["target"]["ids"]
    steered = explore(service, "a b c", prefix=[ids[2], ids[0]])
    assert steered["target"]["ids"][:2] == [ids[2], ids[0]]
    assert explore(service, "a b", target="b a")["target"]["given"]


def test_nothing_in_nothing_out(service: Live) -> None:
    for blank in ("", " ", "\t", "\u3000"):
        assert explore(service, blank)["steps"] == []


def test_markup_is_text_and_json(service: Live) -> None:
    hostile = "<img src=x onerror=alert(1)> & \"q\" 'a'"
    got = service.post("/explore", {"source": hostile})
    assert got.headers["content-type"] == "application/json"
    assert got.json["source"]["text"] == hostile
    assert "".join(got.json["source"]["tokens"][:-1]).replace("▁", "") == hostile.replace(" ", "")


@pytest.mark.parametrize(
    ("question", "status", "words"),
    [
        ({}, 400, "source"),
        ({"source": 5}, 400, "source"),
        ({"source": None}, 400, "source"),
        ({"source": ["a"]}, 400, ""),
        ({"source": [1.5]}, 400, ""),
        ({"source": "a", "mode": "x"}, 400, "mode"),
        ({"source": "a", "model": "<b>"}, 404, "no model of that name is served (model=<b>)"),
        ({"source": "a", "model": "../luong"}, 404, "no model"),
        ({"source": "a", "prefix": [1, -1]}, 400, "prefix"),
        ({"source": "a", "prefix": [999]}, 400, "no output of this source begins with these ids"),
        ({"source": "a", "prefix": [4] * 1000}, 400, "prefix"),
        ({"source": "a", "look": [0]}, 400, "look"),
        ({"source": "a", "look": [7, 7]}, 400, "the model has no such attention"),
        ({"source": "a", "beam_size": 0}, 400, "beam_size"),
        ({"source": "a", "beam_size": 1000}, 400, "beam_size"),
        ({"source": "a", "beam_size": 20, "tree": True}, 400, "wider than can be drawn"),
        ({"source": "a", "tree": 1}, 400, "tree"),
        ({"source": "a", "target": 5}, 400, "target"),
        ({"source": "a " * 900}, 400, "longer than can be drawn"),
        ({"source": "a" * 3000}, 400, "more than the service allows"),
        ({"source": "a", "target": "a" * 3000}, 400, "more than the service allows"),
        ({"source": "\ud800"}, 400, "surrogate"),
    ],
)
def test_what_cannot_be_is_one_line(service: Live, question: Any, status: int, words: str) -> None:
    got = service.post("/explore", question)
    assert got.status == status
    assert words in got.error
    assert explore(service, "a b")["target"]["finished"]


def test_a_key_is_wanted_to_explore_and_not_to_see_the_page(toys: ToyRuns) -> None:
    def app() -> FastAPI:
        limits = Limits()
        return create_app(Models({"luong": toys.predictor("luong")}, limits), limits, access=Access(["secret"]))

    with live(app()) as service:
        assert service.get("/").status == 200
        assert service.get("/explore/models").json["wants_key"] is True
        assert service.post("/explore", {"source": "a"}).status == 403
        assert service.post("/explore", {"source": "a"}, {"X-API-Key": "secret"}).status == 200


def test_the_journal_has_no_text(service: Live) -> None:
    got = service.post("/explore", {"source": "a b confidential"})
    found: list[dict[str, Any]] = []
    while not found:  # it is written when the request has been answered
        found = [line for line in service.journal if line["request"] == got.headers["x-request-id"]]
        time.sleep(0.01)
    (line,) = found
    assert line["model"] == "luong"
    assert "confidential" not in json.dumps(line)
