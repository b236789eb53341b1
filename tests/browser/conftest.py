"""A browser, a service of toy runs, and pages that tell of every mistake in them. Skipped where there is no Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from explorer_page import ExplorerPage
    from playwright.sync_api import Browser

    from toy_runs import ToyRuns

HOSTILE = "<img src=x onerror=alert(1)>"
SERVED = {
    "luong": "luong",
    "seq2seq": "seq2seq",
    "guided": "guided",
    "names": "names",
    "points": "points",
    "odd": "odd",
    HOSTILE: "luong-again",
}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's browser."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address(toys: ToyRuns) -> Iterator[str]:
    """Of a service of the runs SERVED."""
    from explorer_page import served

    from eyeline.serving.app import create_app
    from eyeline.serving.limits import Limits
    from eyeline.serving.models import Models

    limits = Limits()
    with served(create_app(Models({name: toys.predictor(run) for name, run in SERVED.items()}, limits), limits)) as url:
        yield url


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: EYELINE_SCREENSHOTS, to look at them, or a folder that is forgotten."""
    kept = os.environ.get("EYELINE_SCREENSHOTS")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def browse(chromium: Browser, address: str, pictures: Path) -> Iterator[Callable[..., ExplorerPage]]:
    """`browse("#source=a", width=400)` opens the page; when the test is over none has made a mistake, or asked elsewhere."""
    from explorer_page import ExplorerPage

    opened: list[ExplorerPage] = []

    def open_page(
        where: str = "", *, width: int = 1280, url: str | None = None, options: dict[str, Any] | None = None
    ) -> ExplorerPage:
        context = chromium.new_context(viewport={"width": width, "height": 900}, **(options or {}))
        page = ExplorerPage(context.new_page(), url or address, pictures)
        opened.append(page)
        page.open(where)
        return page

    yield open_page
    for page in opened:
        page.page.context.close()
    for page in opened:
        assert page.mistakes == []
        assert page.elsewhere == []
