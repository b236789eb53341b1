"""Runs of a second: a third of it would be pictures for TensorBoard, which only tests that ask for `pictures` have drawn."""

from __future__ import annotations

import pytest

from eyeline.training.examples import Example


@pytest.fixture
def pictures() -> None:
    """Validations of this test draw where the model looked."""


@pytest.fixture(autouse=True)
def _no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr(Example, "picture", lambda self: None)
