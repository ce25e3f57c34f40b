"""The HTML report: one page, safe to open, with pictures."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

from pytest_mlebench.grade import Grade, Snapshot
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result


class Outline(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(tmp_path: Path, problem: str = "no file", kept: tuple[Snapshot, ...] = ()) -> Outline:
    run = tmp_path / "attempt1"
    run.mkdir()
    samples = [{"t": t, "memory": 1_000_000 * t} for t in range(1, 5)]
    lines = [json.dumps(sample) for sample in samples] + ['{"t": 5, "mem']
    (run / "stats.jsonl").write_text("\n".join(lines))
    grade = Grade(
        "demo-digits", 0.9, Medal.GOLD, True, 99.0, True, None, 0.9, 0.8, 0.7, 0.5, False, 240
    )
    results = [
        Result("demo-digits", 0, "graded", grade, agent_seconds=12, run=str(run), snapshots=kept),
        Result("demo-wine-cultivars", 0, "error", error=problem),
    ]
    report = Report.of(
        results, registry=Registry(), disclosure=Disclosure(agent="<b>mine</b>", splits=("demo",))
    )
    path = tmp_path / "report.html"
    report.write(path)
    return Outline(path.read_text())


def test_the_page_is_whole_and_tells_rates_scores_and_conditions(tmp_path: Path) -> None:
    outline = page(tmp_path)
    assert outline.open == []
    for text in ("MLE-bench report", "demo-digits", "gold", "0.9", "any medal", "no file", "12s"):
        assert text in outline.text


def test_scores_and_memory_are_drawn(tmp_path: Path) -> None:
    outline = page(tmp_path)
    assert outline.tags.count("circle") == 1
    assert outline.tags.count("polyline") == 1
    assert "better than 99 % of 240 teams" in outline.text
    assert "peak 4MB" in outline.text


def test_nothing_an_agent_says_becomes_markup(tmp_path: Path) -> None:
    outline = page(tmp_path, problem="<script>alert(1)</script>")
    assert "script" not in outline.tags
    assert "b" not in outline.tags
    assert "<script>alert(1)</script>" in outline.text


def test_what_was_kept_while_the_agent_ran_is_drawn(tmp_path: Path) -> None:
    kept = (
        Snapshot(2, "a", 9, problem="<i>no rows</i>"),
        Snapshot(4, "b", 9, 0.6, Medal.NONE, True, 55.0),
        Snapshot(8, "c", 9, 0.85, Medal.SILVER, True, 90.0),
    )
    outline = page(tmp_path, kept=kept)
    assert outline.open == []
    assert "i" not in outline.tags
    assert outline.tags.count("circle") == 1 + len(kept)
    assert outline.tags.count("polyline") == 2
    for text in ("Over time", "silver after 8s", "90.0 after 8s", "after 2s: <i>no rows</i>"):
        assert text in outline.text
    assert "after 4s: 0.6, no medal" in outline.text


def test_without_snapshots_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert "Over time" not in page(tmp_path).text
