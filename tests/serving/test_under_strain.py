"""Time limits, full queues, defects, keys of the schema, bodies from anyone, memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eyeline.contracts import Prediction
from eyeline.serving.app import create_app
from eyeline.serving.limits import Limits, Refused
from eyeline.serving.models import Models, Served

if TYPE_CHECKING:
    from serving_live import Live

    from toy_runs import ToyRuns

ENDLESS: dict[str, Any] = {"min_length": 5000, "max_length": 5000, "attention": False}


@pytest.fixture
def hurried(toys: ToyRuns) -> Iterator[Live]:
    """A service in which no request may take longer than 1.5 seconds, and three inputs may wait."""
    from serving_live import live

    limits, journal = Limits(seconds=1.5, queue=3), list[dict[str, Any]]()
    models = Models({"luong": toys.predictor("luong")}, limits)
    with live(create_app(models, limits, journal=journal.append), journal) as running:
        yield running


def test_who_takes_too_long_is_told_so_and_the_model_is_free_again(hurried: Live) -> None:
    refused = hurried.post("/predict", {"inputs": ["a b"], **ENDLESS})
    assert (refused.status, "no answer within 1.5 s" in refused.error) == (504, True)
    assert hurried.predict("a b"), "the search has stopped"
    *_, (name, last) = hurried.post("/predict", {"inputs": ["a b"], "stream": True, **ENDLESS}).events
    assert (name, list(last)) == ("error", ["error"])
    assert hurried.predict("a b")


def test_a_full_queue_says_when_to_come_back(hurried: Live) -> None:
    """While one works, three wait, and others are refused; a request of more inputs than that is answered when nobody waits."""
    answers: list[Any] = []

    def ask(inputs: list[str]) -> None:
        answers.append(hurried.post("/predict", {"inputs": inputs, **ENDLESS}))

    first = threading.Thread(target=ask, args=(["a"],))
    first.start()
    time.sleep(0.1)  # it has begun
    others = [threading.Thread(target=ask, args=(["a b"],)) for _ in range(12)]
    for thread in others:
        thread.start()
    for thread in [first, *others]:
        thread.join()
    statuses = sorted(one.status for one in answers)
    assert set(statuses) == {429, 504}
    assert statuses.count(504) >= 4
    full = next(one for one in answers if one.status == 429)
    assert int(full.headers["retry-after"]) >= 1
    assert "wait already" in full.error
    assert len(hurried.predict(*["a"] * 10)) == 10


def test_a_defect_says_nothing_of_the_inside(hurried: Live, toys: ToyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Iterator[Prediction]:
        raise KeyError("secret text of a user")

    monkeypatch.setattr("eyeline.predictor.Predictor.stream", broken)
    got = hurried.post("/predict", {"inputs": ["a"]})
    assert (got.status, got.error) == (500, "a defect of the service")
    monkeypatch.undo()
    assert hurried.predict("a")
    line = next(line for line in hurried.journal if line["status"] == 500)
    assert line["defect"] == "KeyError"
    assert any("models.py" in place for place in line["at"])
    assert "secret" not in json.dumps(line)


def test_what_one_input_cannot_have_costs_the_others_nothing(toys: ToyRuns) -> None:
    """Requests that share a batch: the one is refused, with its own input's place, and the others are answered."""
    points = [[0.5, 0.1], [0.2, 0.9]]

    async def main() -> list[Any]:
        served = Served("points", toys.predictor("points"), Limits())
        good, bad = json.dumps(points), json.dumps([[0.1]])
        asked = [served.predict([good, line], OPTIONS) for line in (good, bad, good)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        served.close()
        assert served.tally.batches == 1
        return answers

    from eyeline.predictor import SearchOptions

    OPTIONS = SearchOptions(beam_size=2)
    first, second, third = asyncio.run(main())
    assert first[0].text == first[1].text == third[1].text != ""
    assert "inputs[1]" in str(second)


def test_a_function_runs_in_the_models_thread(toys: ToyRuns) -> None:
    """Under the time limit: what loops over a model is stopped there."""

    def forever(model: Any) -> None:
        while True:
            model.predictor.predict(["a b"], beam_size=1)

    async def main() -> None:
        served = Served("luong", toys.predictor("luong"), Limits(seconds=0.3))
        assert (await served.run(threading.current_thread)).name.startswith("luong")
        assert await served.run(lambda text: served.predictor.predict([text])[0].source, "a b") == "a b"
        with pytest.raises(Refused, match=r"0\.3 s") as late:
            await served.run(forever, served)
        assert late.value.status == 504
        assert await served.run(int, "5") == 5
        served.close()

    asyncio.run(main())


@pytest.mark.slow
def test_schemathesis_finds_nothing(service: Live, tmp_path: Path) -> None:
    """Every answer is one that the OpenAPI document has, in its shape, and what breaks the schema is refused. Not checked: that
    all that keeps the schema is accepted. It cannot say which models there are, nor how much is too much."""
    words = ["--phases", "coverage,fuzzing", "--max-examples", "5", "--seed", "1", "--exclude-checks", "positive_data_acceptance"]
    command = [sys.executable, "-m", "schemathesis.cli", "run", *words]
    done = subprocess.run([*command, f"{service.url}/openapi.json"], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The clients of the benchmark."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    yield __import__("serving_client")
    sys.modules.pop("serving_client", None)


def test_bodies_from_anyone(service: Live, client: Any) -> None:
    """No 5xx, no traceback, no file opened that a body names; more of them in benchmarks/serving.py."""
    opened, wrong, statuses = list[str](), list[Any](), set[int]()

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open" and isinstance(arguments[0], str | bytes):
            opened.append(str(arguments[0]))

    watching = True
    sys.addaudithook(look)  # for good: hooks cannot be taken away
    requests = client.fuzzed(300, 1)

    def told(place: int, answer: Any) -> None:
        statuses.add(answer.status)
        if not 200 <= answer.status < 500 or b"Traceback" in answer.body or b".py" in answer.body:
            wrong.append((requests[place], answer))

    asyncio.run(client.load(service.port, requests, 4, told))
    watching = False
    assert wrong == []
    assert {200, 400} <= statuses
    assert not [path for path in opened if client.SECRET in path]
    assert service.predict("a")


def test_memory_stays(service: Live, client: Any) -> None:
    """What is held of 120 requests after 60 others; the benchmark measures the process after thousands."""
    import gc

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    requests = client.mixed(["a b c", "d e f a b", "c"], 120, 1)
    asyncio.run(client.load(service.port, requests[:60], 8, lambda place, answer: None))
    service.journal.clear()
    before = objects()
    asyncio.run(client.load(service.port, requests, 8, lambda place, answer: None))
    service.journal.clear()
    assert objects() < 1.02 * before
