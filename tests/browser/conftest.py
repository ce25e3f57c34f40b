"""A real browser: Debian's Chromium, headless; required in CI, skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

REQUIRE = "MLEBENCH_REQUIRE_BROWSER"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium, which no test downloads.

    Not for longer than a module needs it: beside playwright no test can run an event loop.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        if os.environ.get(REQUIRE):
            pytest.fail(f"there is no chromium, and {REQUIRE} is set: apt install chromium")
        pytest.skip("there is no chromium: apt install chromium")
    with sync_playwright() as playwright:
        # the sandbox of Chromium needs a user namespace, which a container may not have
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Window:
    """A page in the browser that notes what must not happen: errors, requests to the network."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._request)

    def open(self, path: Path, fragment: str = "") -> Page:
        """Open a file."""
        self.page.goto(f"{path.as_uri()}{fragment}")
        return self.page

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith("file:"):
            self.requests.append(request.url)


@pytest.fixture
def window(browser: Browser) -> Iterator[Window]:
    """A fresh window; whatever a test does in it must leave no error and touch no network."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    window = Window(context.new_page())
    yield window
    context.close()
    assert window.errors == []
    assert window.requests == []
