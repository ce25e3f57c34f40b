"""The curves behind the number: against brute force, and against examples worked out by hand."""

from __future__ import annotations

import csv
import itertools
import statistics
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import cli, complaint
from reporting import REAL_REPORTS, failed, graded

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import Snapshot
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.attempts_curve import (
    attempts_texts,
    best_of_k,
    mean_of_best,
    mean_point,
    pass_at_k,
    proportion_with_hit,
)
from pytest_mlebench.reports.budget_curve import budget_curve, budget_lines, holm
from pytest_mlebench.reports.compare import compare, comparison_lines
from pytest_mlebench.reports.curves import write_plots
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.formats import markdown
from pytest_mlebench.reports.plots import Plot
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result
from pytest_mlebench.reports.summary import summary_lines
from pytest_mlebench.reports.time_curve import earned_by, time_curves, time_text


@pytest.mark.parametrize("attempts", range(1, 7))
def test_pass_at_k_is_what_all_groups_of_k_attempts_have(attempts: int) -> None:
    for hits in range(attempts + 1):
        outcomes = [place < hits for place in range(attempts)]
        for k in range(1, attempts + 1):
            groups = list(itertools.combinations(outcomes, k))
            expected = sum(map(any, groups)) / len(groups)
            assert proportion_with_hit(attempts, hits, k) == pytest.approx(expected)


@pytest.mark.parametrize("values", [[3.0], [5.0, 1.0], [0.0, 7.0, 7.0, 2.0], [9.0, 4.0, 6.0, 1.0]])
def test_the_best_of_k_is_the_mean_over_all_groups(values: list[float]) -> None:
    for k in range(1, len(values) + 1):
        expected = statistics.fmean(map(max, itertools.combinations(values, k)))
        assert mean_of_best(values, k) == pytest.approx(expected)


def test_real_reports_have_a_curve_that_begins_at_their_rate_and_rises() -> None:
    report = Report.from_reference(REAL_REPORTS)
    points = pass_at_k(report.results)
    assert points[0].value == pytest.approx(43.56, abs=0.005)
    assert [point.x for point in points] == [1, 2, 3]
    assert points[0].value < points[1].value < points[2].value
    medals = {r.competition for r in report.results if r.medal}
    assert points[2].value == pytest.approx(100 * len(medals) / 75)
    assert all(point.low < point.value < point.high for point in points)
    passes, best = attempts_texts(report.results)
    assert passes.startswith(f"a medal in one of k attempts: pass@1 {points[0].text}, pass@2 ")
    assert best.startswith("mean percentile of the best of k: best@1 ")


def test_a_single_attempt_has_no_curve() -> None:
    assert attempts_texts([graded("a", 0, Medal.GOLD)]) == []
    (point,) = best_of_k([graded("a", 0, Medal.GOLD)])
    assert point.value == 95


def followed(competition: str, seed: int = 0) -> Result:
    """An attempt of three hours: invalid, then nothing, then bronze, in the end gold."""
    kept = (
        Snapshot(1000, "a", 1, problem="no rows"),
        Snapshot(4000, "b", 1, 0.5, Medal.NONE, False, 50.0),
        Snapshot(8000, "c", 1, 0.75, Medal.BRONZE, True, 75.0),
    )
    return replace(graded(competition, seed, Medal.GOLD), agent_seconds=10_000, snapshots=kept)


def test_an_attempt_has_at_a_moment_what_its_latest_submission_was_worth() -> None:
    one = followed("a")
    seen = [(earned_by(one, s).medal, earned_by(one, s).percentile) for s in (0, 2000, 5000, 9000)]
    assert seen == [(False, 0.0), (False, 0.0), (False, 50.0), (True, 75.0)]
    assert earned_by(one, 10_000).percentile == 95


def test_rates_over_hours_are_those_worked_out_by_hand() -> None:
    never = graded("b")  # of one hour, without snapshots, no medal, percentile 55
    curves = time_curves([followed("a"), never])
    assert [point.x for point in curves["any medal"]] == [1, 2, 3]
    assert [point.value for point in curves["any medal"]] == [0, 0, 50]
    percentiles = [point.value for point in curves["mean percentile"]]
    assert percentiles == pytest.approx([27.5, 52.5, 75])
    assert time_curves([never]) == {}


def test_the_summary_and_the_markdown_quote_hours_with_their_bound() -> None:
    names = ("leaf-classification", "AI4Code")
    report = Report.of([followed(name) for name in names], registry=Registry())
    assert time_text(report.results) == "2 h 0.0 (-)"
    lines = [line.text for line in summary_lines(report.results, report.membership)]
    text = " ".join(" ".join(lines).split())
    quote = "any medal had there been less time: 2 h 0.0 (-)"
    assert f"{quote}; an upper bound for agents that know their limit" in text
    assert max(map(len, lines)) <= 80
    written = markdown.render(report)
    assert "Of a shorter limit this is an upper bound for agents that know their limit." in written


def test_no_figure_of_many_seeds_is_cut_off() -> None:
    names = ("leaf-classification", "AI4Code")
    results = [graded(name, seed) for name in names for seed in range(6)]
    report = Report.of(results, registry=Registry())
    other = replace(report, disclosure=Disclosure(limits={"time": "2h"}))
    both = {"a": report, "b" * 70: other}
    for lines in (
        summary_lines(report.results, report.membership),
        comparison_lines(compare(report, other)),
        budget_lines(budget_curve(both, "seeds")),
    ):
        text = " ".join(line.text.strip() for line in lines)
        for k in range(1, 7):
            assert f"pass@{k} 0.0 (-)" in text
            assert f"best@{k} 55.0 (-)" in text


def test_runs_of_different_agents_are_different_curves() -> None:
    reports = {
        f"{agent}-{time}": replace(
            budgeted(6, time), disclosure=Disclosure(agent=agent, limits={"time": time})
        )
        for agent in ("one", "two")
        for time in ("1h", "2h")
    }
    plot = budget_curve(reports, "time-limit").plot
    assert {name: [point.x for point in curve] for name, curve in plot.curves.items()} == {
        "one": [1, 2],
        "two": [1, 2],
    }


def test_no_entry_of_a_legend_is_over_another() -> None:
    names = [f"an agent with a long name, number {number}" for number in range(5)]
    plot = Plot("p", "Title", "hours", {name: [mean_point(1, [50.0])] for name in names})
    drawn = ET.fromstring(plot.svg())
    texts = [each for each in drawn.iter() if (each.text or "") in names]
    places = [(float(each.get("x") or 0), float(each.get("y") or 0)) for each in texts]
    assert len(set(places)) == 5
    for (x, y), (other, below) in itertools.pairwise(places):
        assert below > y or other - x > 6 * len(names[0])
    assert all(each.get("fill") is None for each in texts)  # black on white
    height = float(drawn.get("viewBox", "").split()[3])
    assert max(y for _, y in places) < height


def test_every_plot_is_written_as_svg_and_csv(tmp_path: Path) -> None:
    results = [
        followed(name, seed) for name in ("leaf-classification", "AI4Code") for seed in (0, 1)
    ]
    report = Report.of(results, registry=Registry())
    files = write_plots(report, tmp_path / "r.svg")
    assert {path.name for path in files} == {
        f"r-{name}{suffix}"
        for name in (
            *("pass-at-k", "best-of-k", "time-any-medal"),
            *("time-above-median", "time-mean-percentile"),
        )
        for suffix in (".svg", ".csv")
    }
    rows = list(csv.reader((tmp_path / "r-pass-at-k.csv").open()))
    assert rows[0] == ["curve", "attempts", "percent", "low", "high"]
    assert ["low", "1", "100.0000", "100.0000", "100.0000"] in rows
    assert (tmp_path / "r-time-any-medal.svg").read_text().startswith("<svg xmlns=")


def test_holm_corrects_as_in_the_textbook() -> None:
    # Holm 1979: the smallest times m, the next times m - 1, never falling
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def budgeted(medals: int, time: str, competitions: int = 12) -> Report:
    results = [
        graded(f"c{number}", medal=Medal.GOLD if number < medals else Medal.NONE)
        for number in range(competitions)
    ]
    return Report.of(results, registry=Registry(), disclosure=Disclosure(limits={"time": time}))


def test_runs_are_drawn_over_their_budgets_and_pairs_tested() -> None:
    reports = {"day": budgeted(11, "24h"), "hour": budgeted(1, "1h"), "half": budgeted(6, "12h")}
    curve = budget_curve(reports, "time-limit")
    assert [(run.name, run.point.x) for run in curve.runs] == [
        ("hour", 1),
        ("half", 12),
        ("day", 24),
    ]
    significant = {(pair.first, pair.second): pair.is_significant for pair in curve.pairs}
    # ten medals won and none lost: 2 / 2**10; five: 2 / 2**5, which the correction takes away
    assert significant == {
        ("hour", "half"): False,
        ("hour", "day"): True,
        ("half", "day"): False,
    }
    text = [line.text for line in budget_lines(curve)]
    assert max(map(len, text)) <= 93
    assert any(line.endswith("significant") for line in text)


@pytest.mark.parametrize(
    ("by", "message"),
    [("gpus", "its gpus is not known"), ("time-limit", "its time-limit is not one number")],
)
def test_a_budget_that_is_not_known_is_refused(by: str, message: str) -> None:
    reports = {"a": budgeted(1, "1h, 2h"), "b": budgeted(2, "2h")}
    with pytest.raises(ConfigError, match=message):
        budget_curve(reports, by)


def test_the_command_draws_a_curve_and_refuses_three_runs_without_a_budget(tmp_path: Path) -> None:
    names = []
    for medals, time in ((2, "1h"), (4, "2h"), (6, "4h")):
        names.append(str(tmp_path / f"{time}.json"))
        budgeted(medals, time).write(names[-1])
    done = cli("compare", *names, "--by=time-limit", "-o", tmp_path / "x.svg")
    assert done.returncode == 0
    assert "Holm" in done.stdout
    assert (tmp_path / "x.csv").read_text().startswith("curve,hours,percent")
    assert "more than two reports are compared with --by" in complaint("compare", *names)


def test_the_report_command_cuts_no_problem_where_there_is_room(tmp_path: Path) -> None:
    problem = "no submission.csv: " + "the agent was busy, " * 10 + "as it says"
    Report.of([failed("demo-digits", 0, problem)], registry=Registry()).write(tmp_path / "r.json")
    assert f"demo-digits seed0: {problem}" in cli("report", tmp_path / "r.json").stdout


def test_the_best_of_very_many_attempts_is_no_larger_than_any_number() -> None:
    assert mean_of_best([0.5] * 3200, 1600) == pytest.approx(0.5)
    assert mean_of_best([*range(3200)], 3200) == pytest.approx(3199)


def test_very_many_attempts_have_a_point_for_every_doubling() -> None:
    results = [Result("a", seed, "error", error="lost") for seed in range(100)]
    assert [point.x for point in best_of_k(results)] == [*range(1, 33), 64, 100]
