"""The explorer's page as its reader uses it, and a service to load it from. Knows the page's elements."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI
from playwright.sync_api import ConsoleMessage, Locator, Page, Request

from eyeline.serving.running import Server, address, configured, listen

PATIENCE = 120_000  # milliseconds: a machine may be busy


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The address of a running service."""
    listening = listen("127.0.0.1", 0)
    server = Server(configured(app, 60.0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield address(listening)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def view(**given: Any) -> str:
    """The part of an address that tells a view."""
    return "#" + urlencode(given, quote_via=quote)


class ExplorerPage:
    """One open page."""

    def __init__(self, page: Page, url: str, pictures: Path) -> None:
        self.page, self.url, self.pictures = page, url, pictures
        self.mistakes: list[str] = []
        self.elsewhere: list[str] = []
        self.forgiven = ""  # what the browser says of a refusal that is wanted
        page.set_default_timeout(PATIENCE)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.mistakes.append(str(error)))
        page.on("dialog", lambda dialog: self.mistakes.append(f"a dialog: {dialog.message}"))
        page.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not (self.forgiven and self.forgiven in message.text):
            self.mistakes.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:", "blob:", "about:")):
            self.elsewhere.append(request.url)

    def open(self, where: str = "") -> None:
        separator = "" if self.url.endswith(".html") else "/"
        self.page.goto(self.url + separator + where)
        self.page.wait_for_selector("body[data-state]")

    def ready(self) -> None:
        """Waits until what was asked for is there, and no longer moves."""
        self.page.wait_for_selector("body[data-state=ready]")

    def until(self, condition: str) -> None:
        """Waits until a JavaScript expression is true. The page's policy lets no script in that would wait for it there."""
        for _ in range(PATIENCE // 50):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never: {condition}")

    def ask(self, source: str, **chosen: str) -> None:
        """Types a source and presses Enter, other fields first."""
        self.until("document.getElementById('model').options.length > 0")
        for name, value in chosen.items():
            if name == "target":
                self.page.fill("#target", value)
            else:
                self.page.select_option(f"#{name}", value)
        self.page.fill("#source", source)
        self.page.press("#source", "Enter")
        self.until("document.body.dataset.state !== 'empty'")

    def shoot(self, name: str) -> None:
        self.page.screenshot(path=str(self.pictures / f"{name}.png"), full_page=True)

    def panel(self, number: int = 0) -> Locator:
        return self.page.locator(".panel").nth(number)

    def symbols(self, number: int = 0) -> list[str]:
        """The output's symbols that have appeared."""
        return self.panel(number).locator(".output button:visible").all_text_contents()

    @property
    def step(self) -> int:
        """Where we are, from 1; all parts of the page agree."""
        step = int(self.page.input_value("#step"))
        for panel in self.page.locator(".panel").all():
            buttons = panel.locator(".output button")
            if buttons.count():
                assert panel.locator(".output button[aria-current=step].now").count() == 1
                at = min(step, buttons.count()) - 1
                assert "now" in (buttons.nth(at).get_attribute("class") or "")
        return step

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def candidates(self, number: int = 0) -> list[str]:
        """What the likeliest next symbols are called that can be chosen."""
        found = self.panel(number).locator(".candidate").all()
        return [one.get_attribute("aria-label") or "" for one in found]

    def table(self, number: int = 0) -> list[list[str]]:
        """The step as a table over source symbols, without its heads."""
        panel = self.panel(number)
        if not panel.locator("details[open]").count():
            panel.locator("summary").click()
        panel.locator("details table").first.wait_for()  # it is drawn when the browser says that it is open
        rows = panel.locator("details table").last.locator("tbody tr").all()
        return [row.locator("th, td").all_text_contents() for row in rows]
