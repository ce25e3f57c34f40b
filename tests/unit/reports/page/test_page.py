"""The report page: whole, safe to open, small enough, with everything a reader wants in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_pages import hostile_report, whole_benchmark
from reporting import REAL_REPORTS, errored, failed, graded

from pytest_mlebench.grade import Grade, Snapshot
from pytest_mlebench.host.usage import UsageSample
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.findings import AttemptFindings, Audit, CheckFindings, Finding, Level
from pytest_mlebench.reports.page.attempt_view import curve_points, links
from pytest_mlebench.reports.page.traces import LINKED
from pytest_mlebench.reports.page.usage_curves import usage_curves
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result

VOID = {"meta", "br", "input"}
LARGEST = 1_500_000


class Outline(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.text += data

    def values(self, name: str) -> list[str]:
        return [value or "" for key, value in self.attributes if key == name]


def written(report: Report, folder: Path) -> Outline:
    path = folder / "report.html"
    report.write(path)
    outline = Outline(path.read_text())
    assert outline.open == []
    return outline


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
    disclosure = Disclosure(agent="<b>mine</b>", splits=("demo",))
    return written(Report.of(results, registry=Registry(), disclosure=disclosure), tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Outline:
    """The page of the whole benchmark with one seed."""
    folder = tmp_path_factory.mktemp("whole")
    return written(whole_benchmark(folder, seeds=1), folder)


def audited(level: Level) -> Report:
    """Return a report of one attempt that an audit has found something at."""
    found = Finding("leak", level, "the code names a known leak", ("train.py:31: pd.read_csv()",))
    result = graded("dog-breed-identification", medal=Medal.GOLD)
    audit = Audit(
        (AttemptFindings(result.key, "a", (CheckFindings("facts", "a", (found,)),)),), "0.1.0"
    )
    return replace(Report.of([result], registry=Registry()), audit=audit)


def test_the_page_tells_rates_scores_and_conditions(tmp_path: Path) -> None:
    outline = page(tmp_path)
    for text in ("MLE-bench report", "demo-digits", "gold", "0.9", "any medal", "no file", "12s"):
        assert text in outline.text
    assert "better than 99.0 % of 240 teams" in outline.text
    assert "memory up to 4MB in 4s" in outline.text


def test_nothing_an_agent_says_becomes_markup(tmp_path: Path) -> None:
    outline = written(hostile_report(tmp_path), tmp_path)
    assert outline.tags.count("script") == 1
    assert not {"img", "iframe", "link", "object"} & set(outline.tags)
    assert not [name for name, _ in outline.attributes if name.startswith("on") or name == "style"]
    links = outline.values("href")
    assert all(re.match(r"#|\./", link) for link in links), links
    assert "{{ 7 * 7 }}" in outline.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", outline.text)


def test_copied_code_is_shown_with_the_lines_of_both_sides(tmp_path: Path) -> None:
    outline = written(hostile_report(tmp_path), tmp_path)
    after = outline.text.split("both sides")[1]
    assert "2 here" in after
    assert after.index("2 here") < after.index("8 there")
    assert "sides" in outline.values("class")


def test_the_policy_of_the_page_allows_its_own_script_and_nothing_else(tmp_path: Path) -> None:
    policy = next(value for value in page(tmp_path).values("content") if "script-src" in value)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'$", policy)


def test_submissions_on_the_way_are_drawn_with_their_milestones(tmp_path: Path) -> None:
    kept = (
        Snapshot(2, "a", 9, problem="<i>no rows</i>"),
        Snapshot(4, "b", 9, 0.6, Medal.NONE, True, 55.0),
        Snapshot(8, "c", 9, 0.85, Medal.SILVER, True, 90.0),
    )
    text = page(tmp_path, kept=kept).text
    for part in ("silver after 8s", "90.0 after 8s", "after 2s: <i>no rows</i>"):
        assert part in text
    assert "after 4s: 0.6, no medal" in text


def test_the_whole_benchmark_is_small_enough_whatever_its_logs_are_full_of(tmp_path: Path) -> None:
    report = whole_benchmark(tmp_path)
    outline = written(report, tmp_path)
    assert (tmp_path / "report.html").stat().st_size <= LARGEST
    assert outline.text.count("GPU memory up to 19.9GB") == 225
    for log in tmp_path.rglob("run.log"):
        log.write_text(('"' * 100 + "<" * 90 + "\n") * 100)
    written(report, tmp_path)
    assert (tmp_path / "report.html").stat().st_size <= LARGEST


def test_curves_have_fewer_points_and_folders_fewer_links_where_attempts_are_many() -> None:
    assert [curve_points(count) for count in (1, 30, 225, 10_000)] == [40, 40, 12, 8]
    samples = [UsageSample(float(t), memory=t * 1e6) for t in range(1, 500)]
    assert len(usage_curves(samples, 12)[0].points.split()) == 12
    assert links(60) > links(225) > 2


def test_a_single_attempt_links_to_every_file_that_it_left(tmp_path: Path) -> None:
    report = whole_benchmark(tmp_path, seeds=1, split="dev")
    report = replace(report, results=report.results[:1])
    links = written(report, tmp_path).values("href")
    names = {Path(link).name for link in links if link.startswith("./")}
    assert names == {*LINKED}


def test_of_many_attempts_a_folder_is_linked_that_has_the_other_files(whole: Outline) -> None:
    outline = whole
    folder = "./spooky-author-identification/seed0/attempt1/"
    assert folder in outline.values("href")
    assert "6 more in its folder" in outline.text


def test_an_attempt_has_its_findings_and_the_audit_links_to_it(tmp_path: Path) -> None:
    report = audited("violation")
    outline = written(report, tmp_path)
    assert outline.text.count("the code names a known leak") == 2  # in the table, at the attempt
    assert outline.text.count("train.py:31") == 1
    assert outline.values("href").count("#attempt-dog-breed-identification-seed0") == 4
    label = "seed 0: gold, 0.95, better than 95.0 % of the teams, in 1h, audit: violation"
    assert label in outline.values("aria-label")
    assert "‡ the audit found a violation" in outline.text
    assert "† the audit" not in outline.text


def test_what_is_worth_knowing_only_has_no_mark(tmp_path: Path) -> None:
    text = written(audited("info"), tmp_path).text
    assert "the code names a known leak" in text
    assert "audit:" not in text
    assert "the audit found" not in text


def test_the_legend_tells_known_leaks_from_suspected_ones(tmp_path: Path) -> None:
    registry = Registry()
    leaks = {name: registry.load(name) for name in registry.split("all")}
    known = next(name for name, one in leaks.items() if one.is_leaky and not one.is_suspected)
    suspected = next(name for name, one in leaks.items() if one.is_suspected)
    clean = "spooky-author-identification"
    report = Report.of([graded(name) for name in (known, suspected, clean)], registry=registry)
    text = written(report, tmp_path).text
    assert f"{known} *" in text
    assert f"{suspected} *?" in text
    assert f"{clean} *" not in text
    assert "* a leak of the answers is known" in text
    assert "*? a leak of the answers is suspected" in text
    only = Report.of([graded(known), graded(clean)], registry=registry)
    assert "suspected" not in written(only, tmp_path).text


def test_the_detail_names_the_hosts_that_were_refused(whole: Outline) -> None:
    text = whole.text
    assert "leaks.example (2), kaggle.example (1)" in text


def test_the_top_of_the_page_has_the_dates_of_the_run(whole: Outline) -> None:
    text = whole.text
    assert "ran2026-11-02T08:00:00+00:00 to 2026-11-09T17:30:00+00:00" in text
    assert "report made" in text


def test_what_less_time_would_have_given_has_figures_and_its_bound(whole: Outline) -> None:
    text = " ".join(whole.text.split())
    assert "What 2 h, 8 h, 24 h would have given" in text
    assert "an upper bound for agents that know their limit" in text
    assert re.search(r"allany medal\d+\.\d \(\d+\.\d-\d+\.\d\)", text)


def test_every_attempt_can_be_linked_and_links_to_its_files(tmp_path: Path) -> None:
    outline = written(whole_benchmark(tmp_path, seeds=1), tmp_path)
    anchors = [value for value in outline.values("id") if value.startswith("attempt-")]
    assert len(anchors) == len(set(anchors)) == 75
    assert {link[1:] for link in outline.values("href") if link.startswith("#attempt-")} == {
        *anchors
    }
    files = [link for link in outline.values("href") if link.startswith("./")]
    assert "./spooky-author-identification/seed0/attempt1/run.log" in files
    assert all((tmp_path / link).exists() for link in files)


def test_a_log_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    report = whole_benchmark(tmp_path, seeds=1)
    (tmp_path / "secret").write_text("what nobody may read")
    for log in tmp_path.rglob("run.log"):
        log.unlink()
        log.symlink_to(tmp_path / "secret")
    outline = written(report, tmp_path)
    assert "what nobody may read" not in outline.text
    assert not [link for link in outline.values("href") if link.endswith("run.log")]


def test_real_reports_have_an_interval_only_where_it_has_a_width(tmp_path: Path) -> None:
    outline = written(Report.from_reference(REAL_REPORTS), tmp_path)
    drawn = [label for label in outline.values("aria-label") if label.startswith("any medal, ")]
    assert drawn == [
        "any medal, low: 62.12 ± 1.52 %, 95 % interval 55.60-68.64",
        "any medal, medium: 36.84 ± 1.52 %, 95 % interval 30.30-43.38",
        "any medal, high: 33.33 ± 0.00 %",
        "any medal, all: 43.56 ± 0.89 %, 95 % interval 39.73-47.38",
    ]


def test_rates_by_category_and_failures_by_kind_are_shown(tmp_path: Path) -> None:
    results = [
        graded("spooky-author-identification", medal=Medal.GOLD),
        failed("leaf-classification"),
        errored("random-acts-of-pizza"),
    ]
    text = written(Report.of(results, registry=Registry()), tmp_path).text
    for part in ("Text Classification", "the agent ended and left nothing", "benchmark's own"):
        assert part in text


def test_several_agents_keep_their_own_rows_and_anchors(tmp_path: Path) -> None:
    results = [
        Result("demo-digits", 0, "error", error="x", agent=agent) for agent in ("one", "two")
    ]
    outline = written(Report.of(results, registry=Registry()), tmp_path)
    anchors = [value for value in outline.values("id") if value.startswith("attempt-")]
    assert anchors == ["attempt-demo-digits-seed0", "attempt-demo-digits-seed0-agent2"]
    assert "two: demo-digits" in outline.text


@pytest.mark.parametrize("wanted", ["<table", "</main>", 'aria-label="Sections"'])
def test_the_page_works_without_scripts(tmp_path: Path, wanted: str) -> None:
    page(tmp_path)
    text = (tmp_path / "report.html").read_text()
    assert wanted in text[: text.index("<script>")]
