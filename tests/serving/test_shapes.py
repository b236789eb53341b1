"""The shapes of LibreTranslate and OpenNMT, and their clients."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from serving_live import Live

    from toy_runs import ToyRuns

ALIKE = {"source": "und", "target": "und"}


def test_a_text_and_several_as_json_and_as_a_form(service: Live, toys: ToyRuns) -> None:
    expected = [one.text for one in toys.predictor("luong").predict(["a b c", "d e"])]
    for ask in (service.post, service.form):
        assert ask("/translate", {"q": "a b c", "source": "und", "target": "und"}).json == {"translatedText": expected[0]}
        got = ask("/translate", {"q": ["a b c", "d e"], "source": "und", "target": "und", "format": "text"})
        assert got.json == {"translatedText": expected}


def test_nine_lines_some_of_them_blank(service: Live) -> None:
    """Case O04."""
    texts = ["", "a b c", " ", "\t", "\u00a0", "\u3000", "", "d e f", ""]
    found = service.post("/translate", {"q": texts, **ALIKE}).json["translatedText"]
    assert [bool(text) for text in found] == [number in (1, 7) for number in range(9)]
    alone = [service.post("/translate", {"q": texts[number], **ALIKE}).json["translatedText"] for number in (1, 7)]
    assert [found[1], found[7]] == alone
    assert [one["text"] for one in service.predict(*texts)] == found


def test_lines_of_a_text_stay_lines(service: Live) -> None:
    found = service.post("/translate", {"q": " a b\n\n c\td \n", **ALIKE}).json["translatedText"]
    one, two = (service.predict(text)[0]["text"] for text in ("a b", "c\td"))
    assert found == f" {one}\n\n {two} \n"


def test_alternatives_are_others(service: Live) -> None:
    got = service.post("/translate", {"q": "a b c", **ALIKE, "alternatives": 2}).json
    n_best = [one["text"] for one in service.predict("a b c", n_best=3)[0]["n_best"]]
    assert [got["translatedText"], *got["alternatives"]] == list(dict.fromkeys(n_best))
    several = service.post("/translate", {"q": ["a b c"], **ALIKE, "alternatives": 2}).json
    assert several["alternatives"] == [got["alternatives"]]
    assert "at most 31" in service.post("/translate", {"q": "a", **ALIKE, "alternatives": 32}).error


def test_markup_stays_and_text_is_escaped(service: Live) -> None:
    """Case O35: in text it is text; in HTML tags stay, and no translation becomes one."""
    text = "<img src=x onerror=alert(1)> & \"q\" 'a'"
    got = service.post("/translate", {"q": text, **ALIKE})
    assert got.status == 200
    assert got.headers["content-type"] == "application/json"
    page = service.post("/translate", {"q": "<p>a b</p> <b>c</b>", **ALIKE, "format": "html"}).json["translatedText"]
    ab, c = (service.predict(text)[0]["text"] for text in ("a b", "c"))
    assert page == f"<p>{ab}</p> <b>{c}</b>"


@pytest.mark.parametrize("text", ["<s>", "</s>", "<pad>", "<unk>", "<bos>", "<eos>", "<mask>", "<sep>", "[CLS]", "▁", "⁇"])
def test_text_is_no_control_symbol(service: Live, text: str) -> None:
    """Case O07: the source's tokens behind it are still there."""
    tokens = service.predict(f"a {text} b")[0]["source_tokens"]
    assert (tokens[0], tokens[-2:]) == ("a", ["b", "</s>"])
    assert tokens.count("</s>") == 1 + (text == "</s>")


def test_languages_and_detection(service: Live) -> None:
    assert service.get("/languages").json == [{"code": "und", "name": "Unknown language", "targets": ["und"]}]
    (found,) = service.post("/detect", {"q": "a b c"}).json
    assert found == {"confidence": 100.0, "language": "und"}
    assert service.form("/detect", {"q": "한 국"}).json[0]["confidence"] < 100
    got = service.post("/translate", {"q": "a z", "source": "auto", "target": "und"}).json
    assert got["detectedLanguage"]["language"] == "und"
    assert 0 < got["detectedLanguage"]["confidence"] <= 100


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"source": "en", "target": "de"}, "q"),
        ({"q": "a", "target": "de"}, "source"),
        ({"q": 5, **ALIKE}, "q"),
        ({"q": "a", **ALIKE, "format": "pdf"}, "format"),
        ([], "not a JSON object"),
        ({"q": "\ud800", **ALIKE}, "surrogate"),
    ],
)
def test_what_is_missing_is_named(service: Live, body: Any, words: str) -> None:
    got = service.post("/translate", body)
    assert got.status == 400
    assert words in got.error


def test_half_a_surrogate_pair_has_no_language(service: Live) -> None:
    got = service.post("/detect", {"q": "a \ud800"})
    assert (got.status, "surrogate" in got.error) == (400, True)


def test_opennmt(service: Live, toys: ToyRuns) -> None:
    expected = toys.predictor("luong").predict(["a b", "c"])
    got = service.post("/translator/translate", [{"src": "a b", "id": 0}, {"src": "c", "id": "luong"}]).json
    assert [one["tgt"] for one in got[0]] == [one.text for one in expected]
    assert got[0][0]["pred_score"] == pytest.approx(expected[0].normalized_score, abs=1e-4)
    assert (got[0][0]["src"], got[0][0]["n_best"]) == ("a b", 1)
    assert "there are 0 to 3" in service.post("/translator/translate", [{"src": "a", "id": 100}]).error
    assert service.post("/translator/translate", []).json == [[]]


@pytest.fixture
def pairs(toys: ToyRuns) -> Iterator[Live]:
    """Runs that name their languages: de to en, ko to en, de to fr, and one that names none."""
    from serving_live import live

    from eyeline.serving.app import create_app
    from eyeline.serving.limits import Limits
    from eyeline.serving.models import Models

    def spoken(run: str, source: str | None, target: str | None) -> Any:
        model = copy.copy(toys.predictor(run))
        data = model.config.data.model_copy(update={"source_language": source, "target_language": target})
        model.run = replace(model.run, config=model.config.model_copy(update={"data": data}))
        return model

    predictors = {
        "de-en": spoken("luong", "de", "en"),
        "ko-en": spoken("odd", "ko", "en"),
        "de-fr": spoken("bpe", "de", "fr"),
        "other": spoken("letters", None, None),
    }
    with live(create_app(Models(predictors, Limits()), Limits())) as running:
        yield running


def test_the_pair_of_languages_chooses_the_model(pairs: Live) -> None:
    def said(source: str, target: str, text: str) -> str:
        return str(pairs.post("/translate", {"q": text, "source": source, "target": target}).json["translatedText"])

    def by(model: str, text: str) -> str:
        return str(pairs.predict(text, model=model)[0]["text"])

    assert said("de", "en", "a b c") == by("de-en", "a b c")
    assert said("de", "fr", "the cat") == by("de-fr", "the cat")
    assert said("ko", "en", "한국어") == by("ko-en", "한국어")
    assert said("ko", "fr", "b a") == by("other", "b a"), "one that names no languages takes any"
    got = pairs.post("/translate", {"q": "한국어", "source": "auto", "target": "en"}).json
    assert got["detectedLanguage"] == {"confidence": 100.0, "language": "ko"}
    assert pairs.post("/detect", {"q": "한국어"}).json[0] == {"confidence": 100.0, "language": "ko"}
    languages = {one["code"]: (one["name"], one["targets"]) for one in pairs.get("/languages").json}
    assert languages["de"] == ("German", ["en", "fr"])
    assert languages["ko"] == ("Korean", ["en"])
    assert languages["en"] == ("English", [])


class TestLibreTranslatesClient:
    """The package `libretranslatepy` as it is."""

    @pytest.fixture
    def client(self, service: Live) -> Any:
        return __import__("libretranslatepy").LibreTranslateAPI(service.url)

    def test_translate(self, client: Any, service: Live) -> None:
        assert client.translate("a b c", "und", "und") == service.predict("a b c")[0]["text"]

    def test_detect(self, client: Any) -> None:
        assert client.detect("a b c") == [{"confidence": 100.0, "language": "und"}]

    def test_languages(self, client: Any) -> None:
        assert client.languages()[0]["code"] == "und"
