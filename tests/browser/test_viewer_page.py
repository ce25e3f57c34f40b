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
    expect(page.locator("#rows tr")).to_contain_text("running")
    expect(card.locator(".bar .fill")).to_have_count(1)
    folder = write_run(runs / "live", ("demo-digits", 0))
    write_attempt(folder, "demo-digits", 0, "graded", grade=GOLD, ending=Ending("exited", 0, 1.0))
    expect(page.locator("#status")).to_have_text("1 of 1 over, 1 gold", timeout=60_000)
    expect(card).to_have_count(0)
    expect(page.locator("#rows tr")).to_contain_text("gold")
    page.get_by_role("link", name="Report as of now").click()
    expect(page.locator("h1")).to_contain_text("mine")
    page.locator(".filters").wait_for()


def test_the_list_of_runs_is_kept_current(page: Page, viewer: RunningViewer, runs: Path) -> None:
    page.goto(viewer.address)
    row = page.locator("tr[data-run=live]")
    expect(row).to_contain_text("0 of 1 over", timeout=60_000)
    folder = write_run(runs / "live", ("demo-digits", 0))
    write_attempt(folder, "demo-digits", 0, "graded", grade=GOLD, ending=Ending("exited", 0, 1.0))
    expect(row).to_contain_text("1 of 1 over, 1 gold", timeout=60_000)
    write_run(runs / "new", ("demo-digits", 0))
    expect(page.locator("tr[data-run=new]")).to_have_count(1, timeout=60_000)


def test_no_page_of_the_viewer_asks_anybody_else(page: Page, viewer: RunningViewer) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in ("", "run/live/", "run/live/report.html"):
        page.goto(f"{viewer.address}{path}")
        page.locator("main table").first.wait_for()
    assert len(asked) >= 3
    assert [url for url in asked if not url.startswith(viewer.address)] == []


def test_a_screen_reader_finds_its_way(page: Page, viewer: RunningViewer, runs: Path) -> None:
    for name in ("over", "later"):
        folder = write_run(runs / name, ("demo-digits", 0), ("demo-digits", 1))
        for seed in (0, 1):
            ending = Ending("exited", 0, 1.0)
            write_attempt(folder, "demo-digits", seed, "graded", grade=GOLD, ending=ending)
    compared = "compare?run=over&run=later"
    for path in ("", "run/live/", "run/over/report.html", compared, f"{compared}&by=seeds"):
        page.goto(f"{viewer.address}{path}")
        page.locator("main table").first.wait_for()
        found = Axe().run(page).response["violations"]
        serious = [one["id"] for one in found if one["impact"] in {"serious", "critical"}]
        assert serious == []
