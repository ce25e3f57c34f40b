"""The report page in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from report_pages import hostile_report, whole_benchmark

from pytest_mlebench.registry import Registry

ROWS = ".sortable tbody tr"
WIDTHS = (390, 768, 1280, 1920)
IS_DRAWN = "one => one.checkVisibility({ contentVisibilityAuto: true })"
COUNT_MOVED = """
window.moved = 0;
new MutationObserver((records) => {
  for (const { target, removedNodes } of records)
    if (target.matches && target.matches("tbody, .map")) window.moved += removedNodes.length;
}).observe(document, { childList: true, subtree: true });
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the whole benchmark."""
    folder = tmp_path_factory.mktemp("whole")
    path = folder / "report.html"
    whole_benchmark(folder).write(path)
    return path


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a split, with everything that a page can have."""
    folder = tmp_path_factory.mktemp("rich")
    path = folder / "report.html"
    whole_benchmark(folder, seeds=1, split="low").write(path)
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an agent that attacks it."""
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / "report.html"
    hostile_report(folder).write(path)
    return path


def names(page: Page) -> list[str]:
    """Return the competitions in the table that are shown, in order."""
    shown: list[str] = page.eval_on_selector_all(
        ROWS, "rows => rows.filter(r => !r.hidden).map(r => r.cells[0].dataset.value)"
    )
    return shown


def column(page: Page, key: str) -> list[float]:
    index = page.eval_on_selector(f"th[data-key={key}]", "head => head.cellIndex")
    texts: list[str] = page.eval_on_selector_all(
        ROWS, "(rows, index) => rows.map(r => r.cells[index].dataset.value)", index
    )
    return [float(text) for text in texts if text]


def test_it_opens_with_all_competitions_and_seeds(window: Any, whole: Path) -> None:
    page = window.open(whole)
    assert len(names(page)) == 75
    assert page.locator(".map .seed").count() == 225
    assert page.locator("details.attempt").count() == 225


def test_what_is_far_from_the_screen_is_drawn_when_it_is_reached(window: Any, whole: Path) -> None:
    page = window.open(whole)
    row = page.locator(ROWS).last
    assert not row.evaluate(IS_DRAWN)
    page.locator("nav a[href='#competitions']").click()
    page.wait_for_function(IS_DRAWN, arg=row.element_handle())


def test_a_search_finds_what_is_not_drawn_yet(window: Any, whole: Path) -> None:
    page = window.open(whole)
    assert page.evaluate("find('agent hours: ')")
    assert page.evaluate("getSelection().anchorNode.parentElement.closest('.disclosure') !== null")


def test_a_page_that_is_only_read_is_left_in_its_order(window: Any, whole: Path) -> None:
    window.page.add_init_script(COUNT_MOVED)
    page = window.open(whole)
    page.wait_for_function("!document.querySelector('.filters').hidden")
    assert page.evaluate("moved") == 0
    page.locator("th[data-key=score] button").click()
    page.wait_for_function("moved > 0")


def test_a_filter_hides_the_groups_that_nothing_is_left_of(window: Any, whole: Path) -> None:
    page = window.open(whole)
    assert page.locator(".map h3").all_text_contents() == ["low", "medium", "high"]
    page.select_option("[name=split]", "medium")
    assert page.locator(".map h3:not([hidden])").all_text_contents() == ["medium"]
    page.select_option("[name=group]", "category")
    assert page.locator(".map h3:not([hidden])").count() > 3


@pytest.mark.parametrize("key", ["percentile", "time", "medals", "best", "split"])
def test_a_click_on_a_column_sorts_by_it_and_another_turns_it(
    window: Any, whole: Path, key: str
) -> None:
    page = window.open(whole)
    button = page.locator(f"th[data-key={key}] button")
    button.click()
    assert column(page, key) == sorted(column(page, key))
    assert page.locator(f"th[data-key={key}]").get_attribute("aria-sort") == "ascending"
    button.click()
    assert column(page, key) == sorted(column(page, key), reverse=True)
    button.click()
    assert names(page)[0] == "aerial-cactus-identification"


def test_splits_are_sorted_by_their_complexity(window: Any, whole: Path) -> None:
    page = window.open(whole, "#sort=split:up")
    index = page.eval_on_selector("th[data-key=split]", "head => head.cellIndex")
    texts = page.eval_on_selector_all(
        ROWS, "(rows, index) => rows.map(r => r.cells[index].textContent)", index
    )
    assert list(dict.fromkeys(texts)) == ["low", "medium", "high"]


def test_focus_and_hover_show_what_a_medal_was_won_with(window: Any, whole: Path) -> None:
    page = window.open(whole)
    seed = page.locator(".map .seed").nth(4)
    shown = "one => getComputedStyle(one, '::after').content"
    assert seed.evaluate(shown) == "none"
    seed.hover()
    assert "better than" in seed.evaluate(shown)
    page.locator(".map .seed").nth(3).focus()
    page.mouse.move(0, 0)
    page.keyboard.press("Tab")
    assert "aptos2019-blindness-detection, seed 1: " in seed.evaluate(shown)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_dot_among_the_teams_leads_to_its_attempt(window: Any, whole: Path) -> None:
    page = window.open(whole)
    page.locator(".spread a").first.click()
    expect(page.locator("details.attempt[open]")).to_have_count(1)


def test_paper_has_every_column_and_none_is_cut_off(window: Any, whole: Path) -> None:
    window.page.set_viewport_size({"width": 1047, "height": 718})  # A4 on its side, 10 mm of margin
    window.page.emulate_media(media="print")
    page = window.open(whole)
    for key in ("split", "category", "time", "memory", "gpu", "cost"):
        assert page.locator(f"th[data-key={key}]").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1047
    assert page.locator(".disclosure li").last.evaluate(IS_DRAWN)
    assert not page.locator("form.filters").is_visible()


def test_filters_work_together_and_live_in_the_address(window: Any, whole: Path) -> None:
    page = window.open(whole)
    page.select_option("[name=split]", "low")
    low = Registry().split("low")
    assert sorted(names(page)) == sorted(low)
    page.fill("[name=q]", "spooky")
    assert names(page) == ["spooky-author-identification"]
    assert page.locator("output").inner_text() == "1 of 75 competitions"
    address = page.url
    other = window.page.context.new_page()
    other.goto(address)
    assert names(other) == ["spooky-author-identification"]
    page.click("button[type=reset]")
    expect(page.locator("output")).to_have_text("75 of 75 competitions")
    assert "#" not in page.url


def test_failed_attempts_can_be_found_by_their_outcome(window: Any, whole: Path) -> None:
    page = window.open(whole, "#outcome=failed")
    assert len(names(page)) == 1
    assert page.locator("details.attempt:not([hidden])").count() == 1


def test_an_attempt_that_is_linked_is_open(window: Any, whole: Path) -> None:
    page = window.open(whole, "#attempt-spooky-author-identification-seed1")
    attempt = page.locator("details:has(#attempt-spooky-author-identification-seed1)")
    assert attempt.get_attribute("open") is not None
    assert attempt.locator("pre").last.is_visible()
    assert "499 epoch 3/10" in attempt.inner_text()
    page.locator(".map .seed").first.click()
    expect(page.locator("details.attempt[open]")).to_have_count(2)


def test_everything_can_be_reached_by_keyboard(window: Any, whole: Path) -> None:
    page = window.open(whole)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.locator("th[data-key=score] button").focus()
    page.keyboard.press("Enter")
    assert column(page, "score") == sorted(column(page, "score"))
    page.locator("summary").nth(1).focus()
    page.keyboard.press("Enter")
    assert page.locator("details[open]").count() == 1


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", ["whole", "hostile"])
def test_no_width_needs_scrolling_to_the_side(
    window: Any, request: pytest.FixtureRequest, which: str, width: int
) -> None:
    window.page.set_viewport_size({"width": width, "height": 900})
    page = window.open(request.getfixturevalue(which))
    page.evaluate(
        "for (const one of [...document.querySelectorAll('details')].slice(0, 9)) one.open = true"
    )
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width


def test_dark_is_dark(browser: Browser, whole: Path) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]  # one of two words
        page.goto(whole.as_uri())
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(map(int, color[4:-1].split(",")))
        page.close()
    assert shades["light"] > 700
    assert shades["dark"] < 100


def test_without_scripts_everything_can_be_read(browser: Browser, whole: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(whole.as_uri())
    assert page.locator(ROWS).count() == 75
    assert not page.locator(".filters").is_visible()
    assert page.locator(".map h3").all_text_contents() == ["low", "medium", "high"]
    page.locator("details.attempt summary").first.click()
    assert page.locator("details.attempt[open] pre").first.is_visible()
    context.close()


def test_what_an_agent_writes_does_nothing(window: Any, hostile: Path) -> None:
    page = window.open(hostile)
    for details in page.locator("details").all():
        details.evaluate("one => one.open = true")
    assert page.title().startswith("MLE-bench report: <script>")
    assert page.locator("img").count() == 0
    page.fill("[name=q]", "<script>")
    assert page.evaluate("document.scripts.length") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["rich", "hostile"])
def test_a_screen_reader_finds_its_way(
    browser: Browser, request: pytest.FixtureRequest, which: str, scheme: str
) -> None:
    page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]  # one of two words
    page.goto(request.getfixturevalue(which).as_uri())
    page.evaluate(
        "for (const one of [...document.querySelectorAll('details')].slice(0, 4)) one.open = true"
    )
    if which == "rich":
        for part in ("#board", "#audit", "#curves", "#costs"):
            assert page.locator(part).count() == 1
    found = Axe().run(page).response["violations"]
    page.close()
    assert [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in {"serious", "critical"}
    ] == []
