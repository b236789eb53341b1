"""One pair as it is told: what predict and score say of it, steering, heads, copies, pointers, and what cannot be drawn."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import eyeline
from eyeline.contracts import END
from eyeline.errors import UserError
from eyeline.explorer import telling, trace
from eyeline.explorer.trace import MOST
from eyeline.predictor import Predictor
from strategies import CONTROL_LOOKALIKES
from toy_runs import RUNGS, ToyRuns

SOURCES = {"names": "Kabelo lives in Nomira", "names-transformer": "Kabelo lives in Nomira", "guided": "a b c d"}
ALL = (*RUNGS, "names", "names-transformer", "guided", "odd", "bpe")
POINTS = [[0.5, 0.1], [0.1, 0.9], [0.9, 0.4]]


def told(predictor: Predictor, source: Any, **options: Any) -> dict[str, Any]:
    """A trace as it is after it went over the wire."""
    found = trace(predictor, source, **options)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


def rows(flat: list[float], width: int) -> list[list[float]]:
    return [flat[start : start + width] for start in range(0, len(flat), width)]


@pytest.mark.parametrize("name", ALL)
def test_it_tells_what_predict_says(toys: ToyRuns, name: str) -> None:
    model, source = toys.predictor(name), SOURCES.get(name, "a b c d")
    (wanted,) = model.predict([source])
    found = told(model, source)
    assert found["target"]["text"] == wanted.text
    assert found["target"]["tokens"] == wanted.tokens
    assert found["source"]["tokens"] == wanted.source_tokens
    assert found["target"]["finished"] == wanted.finished
    assert found["target"]["score"] == pytest.approx(wanted.score, abs=1e-3)
    for step, score in zip(found["steps"], wanted.token_scores, strict=True):
        assert step["p"] == pytest.approx(math.exp(score), rel=1e-3)
        assert sum(one["p"] for one in step["candidates"]) <= 1.001
    if wanted.alignment is None:
        assert (found["looks"], found["shown"]) == ([], None)
        return
    own = [look for look in found["looks"] if look["layer"] is None] or [found["looks"][found["shown"]]]
    if name != "guided":
        for row, weights in zip(rows(own[0]["weights"], len(wanted.source_tokens)), wanted.alignment, strict=True):
            assert [weight / telling.WHOLE for weight in row] == pytest.approx(weights, abs=1e-3)


def test_a_run_shows_the_head_that_it_was_told_to_show(toys: ToyRuns) -> None:
    found = told(toys.predictor("guided"), "a b c d")
    assert found["chosen"] == "kept"
    shown = found["looks"][found["shown"]]
    assert (shown["layer"], shown["head"]) == (0, 1)
    assert [(look["layer"], look["head"]) for look in found["looks"]] == [(0, 0), (0, 1), (0, None), (1, 0), (1, 1), (1, None)]
    asked = told(toys.predictor("guided"), "a b c d", look=(1, 0))
    assert (asked["looks"][asked["shown"]]["layer"], asked["chosen"]) == (1, "asked")


def test_where_none_was_told_a_head_that_aligns_is_shown(toys: ToyRuns) -> None:
    """Without its setting the run of linked copies shows the head that was drawn to the diagonal all the same."""
    model = eyeline.load(toys.path("guided"))
    settings = model.config.to_dict()
    free = {**settings["model"], "alignment_layer": -1, "alignment_head": None}
    object.__setattr__(model.run, "config", eyeline.Config.from_dict({**settings, "model": free}))
    found = told(model, "a b c d e f")
    look = found["looks"][found["shown"]]
    assert found["chosen"] == "informative"
    matrix = rows(look["weights"], len(found["source"]["tokens"]))
    assert [row.index(max(row)) for row in matrix[:6]] == [0, 1, 2, 3, 4, 5]


def test_heads_too_many_to_be_sent_together_come_one_at_a_time(toys: ToyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "CELLS", 10)
    model = toys.predictor("guided")
    found = told(model, "a b c d")
    assert [("weights" in look) for look in found["looks"]] == [at == found["shown"] for at in range(len(found["looks"]))]
    asked = told(model, "a b c d", prefix=found["target"]["ids"], look=(1, None))
    assert asked["target"]["ids"] == found["target"]["ids"]
    assert [("weights" in look) for look in asked["looks"]] == [at == 5 for at in range(6)]


@pytest.mark.parametrize("name", [*RUNGS, "names"])
def test_a_prefix_is_kept_and_the_rest_is_searched_again(toys: ToyRuns, name: str) -> None:
    model, source = toys.predictor(name), SOURCES.get(name, "a b c d")
    found = told(model, source)
    other = next(one["id"] for one in found["steps"][1]["candidates"] if one["id"] not in (found["target"]["ids"][1], END))
    begun = [found["target"]["ids"][0], other]
    steered = told(model, source, prefix=begun)
    assert steered["target"]["ids"][:2] == begun
    assert steered["target"]["forced"] == 2
    assert steered["steps"][0] == found["steps"][0]
    (wanted,) = model.predict([source], prefixes=[model.coder.decode(begun, model.read(source))])
    assert steered["target"]["text"] == wanted.text
    ended = told(model, source, prefix=[*begun, END])
    assert ended["target"]["ids"] == [*begun, END]


def test_a_given_target_is_taken_as_it_is(toys: ToyRuns) -> None:
    model = toys.predictor("bahdanau")
    found = told(model, "a b c", target="c c")
    assert (found["target"]["text"], found["target"]["given"], found["target"]["forced"]) == ("c c", True, 3)
    assert found["target"]["score"] == pytest.approx(model.score([("a b c", "c c")])[0].score, abs=1e-3)
    assert found["beam"] is None


def test_copies_say_where_they_come_from(toys: ToyRuns) -> None:
    found = told(toys.predictor("names"), "Kabelo lives in Nomira")
    assert found["target"]["text"] == "in Nomira there is Kabelo"
    place = found["target"]["tokens"].index("Nomira")
    step = found["steps"][place]
    assert [at for at, _ in step["copied"]] == [found["source"]["tokens"].index("Nomira")]
    assert step["copied"][0][1] == pytest.approx(step["p"], abs=0.02)
    assert step["candidates"][0]["copied"] == pytest.approx(step["candidates"][0]["p"], abs=0.02)
    made_up = found["steps"][found["target"]["tokens"].index("there")]
    assert step["generating"] < 0.5 < made_up["generating"]
    assert made_up["copied"] == []


def test_coverage_is_told_with_its_kind(toys: ToyRuns) -> None:
    found = told(toys.predictor("names"), "Kabelo lives in Nomira")
    width = len(found["source"]["tokens"])
    before = rows(found["coverage"]["before"], width)
    assert found["coverage"]["kind"] == "sum"
    assert before[0] == [0.0] * width
    assert sum(before[-1]) == pytest.approx(len(before) - 1, abs=1e-2)


def test_a_pointer_has_positions_for_candidates_and_what_is_visited_has_no_score(toys: ToyRuns) -> None:
    found = told(toys.predictor("points"), POINTS)
    assert found["points"] == POINTS
    assert found["model"]["pointing"]
    ids = found["target"]["ids"]
    look = found["looks"][0]
    scores = rows(look["scores"], 4)
    for step, place in enumerate(ids[:-1]):
        assert all(row[place - 4] is None for row in scores[step + 1 :])
        assert found["steps"][step]["candidates"][0]["token"] == str(place - 4)
    assert "parts" not in look


@pytest.mark.parametrize("blank", ["", " ", "\t", "\u3000\u00a0"])
@pytest.mark.parametrize("name", ["bahdanau", "names-transformer"])
def test_nothing_in_nothing_out(toys: ToyRuns, name: str, blank: str) -> None:
    found = told(toys.predictor(name), blank)
    assert (found["steps"], found["target"]["text"], found["source"]["text"]) == ([], "", blank)


@pytest.mark.parametrize("text", CONTROL_LOOKALIKES)
def test_text_never_turns_into_control_symbols(toys: ToyRuns, text: str) -> None:
    found = told(toys.predictor("odd"), f"a{text}b")
    assert "".join(found["source"]["tokens"][:-1]) == f"a{text}b"
    assert found["source"]["tokens"][-1] == "</s>"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"prefix": [4, 99999]}, "no output of this source begins with these ids"),
        ({"prefix": [0]}, "no output"),
        ({"prefix": [2]}, "no output"),
        ({"prefix": [-1]}, "no output"),
        ({"prefix": [True]}, "no output"),
        ({"prefix": [4.0]}, "no output"),
        ({"prefix": ["4"]}, "no output"),
        ({"prefix": [3, 4]}, "does not go on after its end"),
        ({"prefix": [4] * (MOST + 1)}, "longer than can be drawn"),
        ({"look": (0, 0)}, "no such attention"),
        ({"target": "a " * MOST}, "longer than can be drawn"),
        ({"beam_size": 13, "tree": True}, "a beam wider than can be drawn"),
        ({"beam_size": 0}, "beam"),
    ],
)
def test_what_cannot_be_is_refused(toys: ToyRuns, options: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match=what):
        trace(toys.predictor("luong"), "a b c", **options)


def test_a_source_longer_than_can_be_drawn_is_refused(toys: ToyRuns) -> None:
    with pytest.raises(UserError, match=rf"a source of {MOST} tokens is longer than can be drawn; at most {MOST - 1}"):
        trace(toys.predictor("luong"), "a " * MOST)
    with pytest.raises(UserError, match="a string is wanted"):
        trace(toys.predictor("luong"), 5)


def test_an_ensemble_has_no_one_attention(toys: ToyRuns) -> None:
    both = eyeline.load(toys.path("luong"), ensemble=[toys.path("luong-again")])
    with pytest.raises(UserError, match="no one attention"):
        trace(both, "a b c")


def test_a_vector_is_shown_by_few_numbers_whose_sums_are_true(toys: ToyRuns) -> None:
    """The shown numbers of a context are the weighted sum of the shown numbers of the states, and most of them is kept."""
    look = told(toys.predictor("bahdanau"), "a b c d e")["looks"][0]
    assert all(len(part) == min(telling.PARTS, len(look["parts"])) for part in look["parts"])
    assert max(abs(number) for part in look["parts"] for number in part) == 1.0
    assert 0.5 < look["kept"] <= 1.0
    assert all(norm > 0 for norm in look["norms"])
