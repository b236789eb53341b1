"""Keys and paces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eyeline.errors import UserError
from eyeline.serving.access import Access, read_keys
from eyeline.serving.app import create_app
from eyeline.serving.limits import Limits
from eyeline.serving.models import Models

if TYPE_CHECKING:
    from serving_live import Live

    from toy_runs import ToyRuns


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def guarded(toys: ToyRuns) -> Any:
    """A service for two keys, of which each may ask three times a minute; its clock stands still."""
    from serving_live import live

    clock = Clock()
    models = Models({"luong": toys.predictor("luong")}, Limits())
    with live(create_app(models, Limits(), access=Access(["first", "second"], 3, clock))) as running:
        yield running, clock


def test_a_key_is_wanted_and_may_come_in_four_ways(guarded: tuple[Live, Clock]) -> None:
    service, clock = guarded
    ask = {"inputs": ["a"]}
    assert service.post("/predict", ask).status == 403
    assert "API key" in service.post("/predict", ask, {"X-API-Key": "wrong"}).error
    assert service.post("/predict", ask, {"X-API-Key": "first"}).status == 200
    assert service.post("/predict", ask, {"Authorization": "Bearer second"}).status == 200
    text = {"q": "a", "source": "auto", "target": "und"}
    assert service.post("/translate", {**text, "api_key": "first"}).status == 200
    assert service.form("/translate", {**text, "api_key": "second"}).status == 200
    clock.now += 3600
    assert service.form("/translate", {**text, "api_key": "third"}).status == 403
    assert service.post("/detect", {"q": "a"}).status == 403
    assert service.post("/translator/translate", [{"src": "a"}]).status == 403


def test_what_only_tells_needs_none(guarded: tuple[Live, Clock]) -> None:
    service, _ = guarded
    for path in ("/health", "/languages", "/metrics", "/docs", "/openapi.json", "/frontend/settings"):
        assert service.get(path).status == 200
    assert service.get("/frontend/settings").json["keyRequired"] is True


def test_a_client_has_its_own_pace(guarded: tuple[Live, Clock]) -> None:
    service, clock = guarded
    ask = {"inputs": ["a"]}
    first, second = {"X-API-Key": "first"}, {"X-API-Key": "second"}
    assert [service.post("/predict", ask, first).status for _ in range(4)] == [200, 200, 200, 429]
    refused = service.post("/predict", ask, first)
    assert refused.headers["retry-after"] == "20"
    assert "3 requests a minute" in refused.error
    assert service.post("/predict", ask, second).status == 200
    clock.now += 20
    assert [service.post("/predict", ask, first).status for _ in range(2)] == [200, 429]


def test_a_file_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# for the tests\nfirst\n\n second \n")
    assert read_keys(path) == ["first", "second"]
    path.write_text("# none\n")
    with pytest.raises(UserError, match="no API key"):
        read_keys(path)
