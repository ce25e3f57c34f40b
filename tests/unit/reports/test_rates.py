"""Rates, their standard errors and intervals."""

from __future__ import annotations

import pytest
from reporting import REAL_REPORTS, errored, failed, graded
from scipy import stats

from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.membership import Membership
from pytest_mlebench.reports.rates import (
    MEASURES,
    rate,
    rate_over_seeds,
    rates_by_split,
    student_quantile,
    wilson_interval,
)
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import ItemKey, complete

ANY = MEASURES["any_medal"]


def test_real_reports_give_the_published_numbers() -> None:
    report = Report.from_reference(REAL_REPORTS)
    published = {row.name: row.rates["any_medal"].text() for row in report.rates}
    assert published == {
        "low": "62.12 ± 1.52",
        "medium": "36.84 ± 1.52",
        "high": "33.33 ± 0.00",
        "all": "43.56 ± 0.89",
    }


def test_the_standard_error_is_the_sample_deviation_over_the_root_of_the_seeds() -> None:
    result = rate_over_seeds([[True, False], [True, True], [False, False]])
    assert result.values == (50, 100, 0)
    assert result.mean == pytest.approx(50)
    assert result.sem == pytest.approx(stats.sem([50, 100, 0]))


def test_one_seed_has_no_standard_error_and_prints_none() -> None:
    result = rate_over_seeds([[True, False, False, False]])
    assert result.sem is None
    assert result.text() == "25.00"
    assert result.method == "wilson"


def test_text_without_unicode() -> None:
    assert rate_over_seeds([[True], [True]]).text(ascii_only=True) == "100.00 +/- 0.00"


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 10, 29, 100])
def test_student_quantile_is_that_of_scipy(freedom: int) -> None:
    assert student_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=1e-9)


@pytest.mark.parametrize(("hits", "trials"), [(0, 5), (5, 5), (10, 22), (1, 1), (37, 75)])
def test_wilson_interval_is_that_of_scipy(hits: int, trials: int) -> None:
    expected = stats.binomtest(hits, trials).proportion_ci(method="wilson")
    assert wilson_interval(hits, trials) == pytest.approx(
        (100 * expected.low, 100 * expected.high), abs=1e-9
    )


def test_interval_over_seeds_is_students_and_stays_within_0_and_100() -> None:
    result = rate_over_seeds([[True] * 9 + [False], [True] * 10])
    low, high = stats.t.interval(0.95, 1, loc=95, scale=stats.sem([90, 100]))
    assert high > 100
    assert result.interval == pytest.approx((low, 100))


def test_the_lower_end_of_students_interval_stays_at_0() -> None:
    result = rate_over_seeds([[False] * 10, [True] + [False] * 9])
    low, high = stats.t.interval(0.95, 1, loc=5, scale=stats.sem([0, 10]))
    assert low < 0
    assert result.interval == pytest.approx((0, high))


def test_errors_missing_and_failed_runs_count_as_no_medal() -> None:
    results = complete(
        [graded("a", medal=Medal.GOLD), failed("b"), errored("c")], [ItemKey(i, 0) for i in "abcd"]
    )
    assert rate(results, ANY).mean == 25
    row = rates_by_split(results, Membership({"low": ("a", "b", "c", "d")}))[0]
    assert (row.runs, row.errors, row.missing) == (4, 1, 1)


def test_a_seed_that_ran_in_part_keeps_its_denominator() -> None:
    expected = [ItemKey(i, seed) for i in "ab" for seed in (0, 1)]
    results = complete([graded("a", 0, Medal.GOLD), graded("b", 0, Medal.GOLD)], expected)
    assert rate(results, ANY).values == (100, 0)


def test_medal_rates_are_exclusive_and_add_up() -> None:
    results = [graded("a", medal=Medal.GOLD), graded("b", medal=Medal.SILVER), graded("c")]
    row = rates_by_split(results, Membership({"low": ("a", "b", "c")}))[0]
    medals = sum(row.rates[name].mean for name in ("gold", "silver", "bronze"))
    assert medals == pytest.approx(row.rates["any_medal"].mean)
    assert row.rates["bronze"].mean == 0


def test_rate_without_leaks_leaves_the_leaky_ones_out() -> None:
    results = [graded("a", medal=Medal.GOLD), graded("b"), graded("c")]
    membership = Membership({"low": ("a", "b", "c")}, frozenset({"a", "elsewhere"}))
    row = rates_by_split(results, membership)[0]
    assert row.leaky == 1
    assert row.without_leaks is not None
    assert row.without_leaks.mean == 0
    assert row.to_dict()["any_medal_without_leaks"]["per_seed"] == [0]
    assert row.rates["any_medal"].mean == pytest.approx(100 / 3)


def test_no_leak_no_second_rate_and_nothing_but_leaks_neither() -> None:
    splits = {"low": ("a",)}
    assert rates_by_split([graded("a")], Membership(splits))[0].without_leaks is None
    leaky = Membership(splits, frozenset("a"))
    assert rates_by_split([graded("a")], leaky)[0].without_leaks is None


def test_all_appears_only_when_it_is_whole() -> None:
    splits = {"low": ("a", "b"), "medium": ("c",), "high": ("d",), "all": ("a", "b", "c", "d")}
    whole = rates_by_split([graded(i) for i in "abcd"], Membership(splits))
    part = rates_by_split([graded(i) for i in "acd"], Membership(splits))
    assert [row.name for row in whole] == ["low", "medium", "high", "all"]
    assert [row.name for row in part] == ["low", "medium", "high", "selected"]
    assert (part[0].competitions, part[0].of, part[0].is_whole) == (1, 2, False)


def test_demonstrations_never_enter_another_rate() -> None:
    results = [graded("a"), graded("b"), graded("x", medal=Medal.GOLD)]
    rows = rates_by_split(results, Membership({"low": ("a",), "high": ("b",), "demo": ("x",)}))
    rates = {row.name: row.rates["any_medal"].mean for row in rows}
    assert rates == {"low": 0, "high": 0, "demo": 100, "selected": 0}


def test_a_gate_may_speak_of_a_split_that_nobody_selected() -> None:
    report = Report.from_reference(REAL_REPORTS)
    assert "systemcard" not in report.membership.splits
    more = report.membership.including(Registry(), ["systemcard", "lite", "gone.txt"])
    assert set(more.splits) == {*report.membership.splits, "systemcard"}
    assert rates_by_split(report.results, more)[-1].competitions == 30
