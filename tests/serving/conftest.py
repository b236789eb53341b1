"""One service of several toy runs for the whole session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from serving_live import Live

    from toy_runs import ToyRuns

SERVED = ("luong", "points", "names", "features")


@pytest.fixture(scope="session")
def service(toys: ToyRuns) -> Iterator[Live]:
    """The runs SERVED, the first of them by default, with what it writes down in `journal`."""
    from serving_live import live

    from eyeline.serving.app import create_app
    from eyeline.serving.limits import Limits
    from eyeline.serving.models import Models

    limits, journal = Limits(body=200_000, items=50, characters=2000, seconds=30.0), list[dict[str, Any]]()
    models = Models({name: toys.predictor(name) for name in SERVED}, limits)
    with live(create_app(models, limits, journal=journal.append), journal) as running:
        yield running
