"""What every request meets: the shapes of mistakes, headers, limits and the journal."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from serving_live import Live

    from toy_runs import ToyRuns


def test_it_says_that_it_is_there(service: Live) -> None:
    got = service.get("/health")
    assert (got.status, got.json) == (200, {"status": "ok"})


def test_a_prediction_is_what_python_says(service: Live, toys: ToyRuns) -> None:
    from eyeline.predictor.answers import as_json

    got = service.post("/predict", {"inputs": ["a b c", "", "f"], "beam_size": 3, "n_best": 2})
    expected = toys.predictor("luong").predict(["a b c", "", "f"], beam_size=3, n_best=2)
    assert got.status == 200
    assert got.json["model"] == "luong"
    assert list(got.json["predictions"][0]) == list(as_json(expected[0]))
    assert [one["text"] for one in got.json["predictions"]] == [one.text for one in expected] != [""] * 3
    assert [one["score"] for one in got.json["predictions"]] == pytest.approx([one.score for one in expected], abs=1e-4)
    assert got.json["predictions"][0]["alignment"][0] == pytest.approx((expected[0].alignment or [])[0], abs=1e-4)


def test_an_unknown_model_is_told_those_there_are(service: Live) -> None:
    got = service.post("/predict", {"inputs": ["a"], "model": "../luong"})
    assert got.status == 404
    assert "did you mean 'luong'?" in got.error
    assert "features, luong, names, points" in service.post("/predict", {"inputs": ["a"], "model": "<img src=x>"}).error


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not a json object"),
        (b"{", "not json"),
        (b"[]", "not a json object"),
        (b'{"inputs": 5}', "inputs"),
        (b'{"inputs": null}', "inputs"),
        (b'{"inputs": "abc"}', "inputs"),
        (b"{}", "inputs"),
        (b'{"inputs": [[1, 2]]}', "a string is wanted, not list (inputs"),
        (b'{"inputs": ["a"], "beams": 3}', "beams"),
        (b'{"inputs": ["a"], "beam_size": "3"}', "beam_size"),
        (b'{"inputs": ["a"], "beam_size": 33}', "33 is more than the service allows (beam_size); at most 32"),
        (b'{"inputs": ["a"], "n_best": 3, "beam_size": 2}', "more answers are asked for than the beam holds"),
        (b'{"inputs": ["a"], "length_penalty": NaN}', "length_penalty"),
        (b'{"inputs": ["a"], "sampling": "top-q=1"}', "did you mean"),
        (b'{"inputs": ["a"], "seed": ' + b"9" * 5000 + b"}", "pars"),
        (b'{"inputs": ["a"], "seed": ' + b"9" * 30 + b"}", "seed"),
        (b'{"inputs": ["a", "b"], "prefix": ["c"]}', "one prefix"),
        (b'{"inputs": ["\\ud800"]}', "surrogate"),
        (b'{"inputs": ["a"], "constraints": [{"source": "a"}]}', "a term requires or forbids something (constraints[0])"),
        (b'{"inputs": ["a"], "max_length": 5001}', "max_length"),
        (b"[" * 100_000, "parsing"),
        (b"\xff\xfe", "not json"),
    ],
)
def test_a_bad_body_is_one_line_and_the_next_request_works(service: Live, body: bytes, words: str) -> None:
    got = service.ask("POST", "/predict", body, {"Content-Type": "application/json"})
    assert got.status == 400, got.body
    assert words in got.error.lower()
    assert service.predict("a")


def test_numbers_beyond_all_that_there_is(service: Live) -> None:
    """They mean everything, and the service stays."""
    assert service.predict("a b", sampling="top-k=" + "9" * 30, no_repeat_ngram=1000, min_length=0, max_length=5000)
    assert "too large" in service.post("/predict", {"inputs": ["a b"], "length_penalty": 1000}).error


def test_the_content_type_is_json(service: Live) -> None:
    assert service.ask("POST", "/predict", b'{"inputs": ["a"]}', {"Content-Type": "text/plain"}).status == 400
    assert service.ask("POST", "/predict", b'{"inputs": ["a"]}').status == 400


def test_paths_and_methods_that_are_not_there(service: Live) -> None:
    assert (service.get("/nothing").status, service.get("/nothing").error) == (404, "not found")
    assert (service.get("/predict").status, service.get("/predict").error) == (405, "method not allowed")
    assert service.get("/predict").headers["allow"] == "POST"


def test_a_large_body_is_refused_before_it_is_read(service: Live) -> None:
    """Whether its length is said before or not; and clients that read no answer before they have sent all get it."""
    got = service.ask("POST", "/predict", b" " * (50 << 20), {"Content-Type": "application/json"})
    assert got.status == 413
    assert "200,000 bytes" in got.error
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    connection.request("POST", "/predict", iter([b" " * 65536] * 50), {"Content-Type": "application/json"})
    assert connection.getresponse().status == 413
    connection.close()
    assert service.predict("a")


def test_too_many_and_too_long_inputs(service: Live) -> None:
    assert "at most 50" in service.post("/predict", {"inputs": ["a"] * 51}).error
    assert "characters of inputs[1]" in service.post("/predict", {"inputs": ["a", "a" * 2001]}).error


def test_headers_keep_pages_and_caches_in_bounds(service: Live) -> None:
    for got in (service.get("/health"), service.get("/nothing"), service.get("/docs")):
        assert "default-src 'none'" in got.headers["content-security-policy"]
        assert "script-src 'self';" in got.headers["content-security-policy"]
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["cache-control"] == "no-store"


def test_the_journal_has_ids_and_no_text(service: Live) -> None:
    service.post("/predict", {"inputs": ["d e f", "a"]}, {"X-Request-ID": "client-7"})
    line = written_down(service, "client-7")
    assert (line["route"], line["status"], line["model"]) == ("/predict", 200, "luong")
    assert (line["inputs"], line["characters"]) == (2, 6)
    assert "d e f" not in json.dumps(service.journal)
    got = service.ask("GET", "/secret-path", headers={"X-Request-ID": "a\tb"})
    assert got.headers["x-request-id"] != "a\tb"
    assert written_down(service, got.headers["x-request-id"])["route"] == "other"
    assert "secret-path" not in json.dumps(service.journal)


def written_down(service: Live, request: str) -> dict[str, Any]:
    """The journal's line of a request, which is written when it has been answered."""
    while True:
        for line in service.journal:
            if line["request"] == request:
                return line
        time.sleep(0.01)


def test_the_pages_fetch_nothing_from_elsewhere(service: Live) -> None:
    page = service.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"//" not in page.body
    assert b"<script" not in page.body
    assert b"beam_size" in page.body
    assert service.get("/docs/style.css").status == 200
    paths = service.get("/openapi.json").json["paths"]
    assert {"/predict", "/translate", "/detect", "/languages", "/translator/translate", "/health", "/metrics"} <= set(paths)
    assert "422" not in json.dumps(paths)


def test_counts_for_prometheus(service: Live) -> None:
    service.predict("a", "b")
    text = service.get("/metrics").body.decode()
    assert 'eyeline_requests_total{method="POST",route="/predict",status="200"}' in text
    assert 'eyeline_inputs_total{model="luong"}' in text
    assert "process_resident_memory_bytes" in text


def test_many_at_once_get_their_own_answers(service: Live, toys: ToyRuns) -> None:
    """Of all lengths and several ways, each as if it had come alone; and they do share batches."""
    inputs = [" ".join("abcdef"[(start + place) % 6] for place in range(1 + start % 7)) for start in range(60)]
    ways: list[dict[str, Any]] = [{"beam_size": 1}, {"beam_size": 4, "n_best": 2}, {"sampling": "top-k=3", "seed": 5}]
    expected = {number: toys.predictor("luong").predict([text], **ways[number % 3])[0] for number, text in enumerate(inputs)}
    before = batches(service)
    answers: dict[int, Any] = {}

    def ask(number: int) -> None:
        answers[number] = service.predict(inputs[number], **ways[number % 3])[0]

    threads = [threading.Thread(target=ask, args=(number,)) for number in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, prediction in expected.items():
        assert answers[number]["source"] == inputs[number]
        assert [one["text"] for one in answers[number]["n_best"]] == [one.text for one in prediction.n_best]
        assert answers[number]["score"] == pytest.approx(prediction.score, abs=1e-4)
    assert batches(service) - before < len(inputs)


def batches(service: Live) -> float:
    """How many the first model has answered."""
    lines = service.get("/metrics").body.decode().split("\n")
    return next(float(line.split()[-1]) for line in lines if line.startswith('eyeline_batches_total{model="luong"}'))
