"""The viewer in a real browser: a run that goes on is followed, and what agents write is text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attempt_folders import write_attempt, write_run
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from report_pages import HOSTILE
from viewers import RunningViewer, serving

from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Medal
from pytest_mlebench.sandbox import Ending

GOLD = Grade("c", 1.0, Medal.GOLD, True, 99.0, True, None, 0.9, 0.8, 0.7, 0.5, False, 240)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with a run that goes on."""
    folder = write_run(tmp_path / "runs" / "live", ("demo-digits", 0))
    run = write_attempt(folder, "demo-digits", 0, "running", ending=None)
    (run.folder / "run.log").write_text(f"epoch 1\n{HOSTILE}\n")
    samples = (f'{{"t": {t}, "memory": {t * 10**6}}}\n' for t in range(1, 9))
    (run.folder / "stats.jsonl").write_text("".join(samples))
    return tmp_path / "runs"


@pytest.fixture
def viewer(runs: Path) -> Iterator[RunningViewer]:
    """A viewer of that folder."""
    with serving(runs) as viewer:
        yield viewer


@pytest.fixture
def page(browser: Browser, viewer: RunningViewer) -> Iterator[Page]:
    """A page on which nothing may go wrong, closed before its viewer."""
    page = browser.new_page()
    page.set_default_timeout(60_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda one: errors.append(one.text) if one.type == "error" else None)
    yield page
    page.close()
    assert errors == []


def test_a_run_is_followed_to_its_end(page: Page, viewer: RunningViewer, runs: Path) -> None:
    page.goto(viewer.address)
    page.get_by_role("link", name="live").click()
    card = page.locator("#live section")
    expect(card).to_contain_text("epoch 1", timeout=60_000)
    expect(card.locator("svg polyline")).to_have_count(1)
    assert page.locator("img").count() == 0
    attempt = runs / "live" / "demo-digits" / "seed0" / "attempt1"
    with (attempt / "run.log").open("a") as log:
        log.write("epoch 2\n")
    expect(card).to_contain_text("epoch 2", timeout=60_000)
    folder = write_run(runs / "live", ("demo-digits", 0))
    write_attempt(folder, "demo-digits", 0, "graded", grade=GOLD, ending=Ending("exited", 0, 1.0))
    expect(page.locator("#status")).to_have_text("1 of 1 over, 1 gold", timeout=60_000)
    expect(card).to_have_count(0)
    page.get_by_role("link", name="Report as of now").click()
    expect(page.locator("h1")).to_contain_text("mine")
    page.locator(".filters").wait_for()


def test_a_screen_reader_finds_its_way(page: Page, viewer: RunningViewer) -> None:
    for path in ("", "run/live/"):
        page.goto(f"{viewer.address}{path}")
        found = Axe().run(page).response["violations"]
        serious = [one["id"] for one in found if one["impact"] in {"serious", "critical"}]
        assert serious == []
