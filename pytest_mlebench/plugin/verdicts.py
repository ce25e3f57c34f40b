"""From grades to pytest's outcomes: blame decides, and what is said stays short."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import pytest

from pytest_mlebench.errors import ConfigError, MlebenchError
from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Medal
from pytest_mlebench.plugin.session import RESULT, MleSession
from pytest_mlebench.reports.results import Result
from pytest_mlebench.reports.summary import LETTERS, MARKUP

ATTRIBUTE = "mle_result"  # of a test report; plain data, so that xdist carries it
_KEY = re.compile(r"\[(?P<competition>[^\[\]]+)-seed(?P<seed>\d+)\]")


class Outcomes:
    """Judge items by their grades and put the results on the test reports."""

    def __init__(self, session: MleSession) -> None:
        self.session = session

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Fail an item whose grade does not reach what is required."""
        grade = pyfuncitem.funcargs.get("mle_grade")
        requirement = self.session.requirement(pyfuncitem)
        if isinstance(grade, Grade) and requirement and not grade.reaches(requirement):
            short = "" if not grade.valid else f"\nrequired: {requirement}"
            pytest.fail("\n".join(grade.explain()) + short, pytrace=False)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the result, and say errors of ours in a sentence instead of a traceback."""
        report = yield
        error = None if call.excinfo is None else call.excinfo.value
        if isinstance(error, MlebenchError):
            report.longrepr = f"{_blame(error)}: {error}"
        result = _result(item, report, error)
        if result is not None:
            setattr(report, ATTRIBUTE, result.to_dict())
            if report.when == "call" or (report.when == "setup" and report.failed):
                item.user_properties += _properties(result)  # on the report that is still to come
                report.user_properties = list(item.user_properties)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Show medals as letters and words; a lost worker is an error, not the agent's failure."""
        if report.when not in ("setup", "call", "teardown") and key_of(report.nodeid):
            return "error", "E", "ERROR"
        result = result_of(report)
        if result is None or report.when != "call" or not report.passed:
            return None
        medal = result.medal
        word = medal.name if medal else "PASS"
        markup = MARKUP.get(str(medal), {"green": True})
        return "passed", LETTERS[medal], (word, dict(markup))

    @pytest.hookimpl
    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> list[str] | None:
        """Explain a comparison of medals by the grade behind it."""
        if not (isinstance(left, Medal) and isinstance(right, Medal)):
            return None
        grade = self.session.last_grade
        return [f"medal: {left} {op} {right}", *([] if grade is None else grade.explain())]


def result_of(report: pytest.TestReport) -> Result | None:
    """Return the result on a test report, if it is one of ours."""
    data = getattr(report, ATTRIBUTE, None)
    return None if data is None else Result.from_dict(data)


def key_of(nodeid: str) -> tuple[str, int] | None:
    """Return competition and seed of an item of ours, as its node id names them."""
    match = _KEY.search(nodeid)
    return None if match is None else (match["competition"], int(match["seed"]))


def _result(
    item: pytest.Item, report: pytest.TestReport, error: BaseException | None
) -> Result | None:
    known = item.stash.get(RESULT, None)
    if error is None or isinstance(error, pytest.skip.Exception) or report.when == "teardown":
        return known
    key = key_of(item.nodeid)
    if report.when == "setup" and key is not None and _is_ours(item):
        run = None if known is None else known.run
        text = (
            str(error) if isinstance(error, MlebenchError) else f"{type(error).__name__}: {error}"
        )
        return Result(*key, outcome="error", error=text, run=run)
    return known


def _is_ours(item: pytest.Item) -> bool:
    return "mle_competition" in getattr(item, "fixturenames", ())


def _blame(error: MlebenchError) -> str:
    return "configuration" if isinstance(error, ConfigError) else "the benchmark failed"


def _properties(result: Result) -> list[tuple[str, object]]:
    """Return what JUnit XML shows of a result."""
    facts: dict[str, object] = {
        "mle_competition": result.competition,
        "mle_seed": result.seed,
        "mle_outcome": result.outcome,
        "mle_medal": str(result.medal),
    }
    if (grade := result.grade) is not None:
        facts |= {
            "mle_score": grade.score,
            "mle_percentile": grade.percentile,
            "mle_gold": grade.gold,
            "mle_silver": grade.silver,
            "mle_bronze": grade.bronze,
            "mle_median": grade.median,
            "mle_lower_is_better": grade.lower_is_better,
        }
    facts |= {"mle_problem": result.problem, "mle_run": result.run}
    return [(name, value) for name, value in facts.items() if value is not None]
