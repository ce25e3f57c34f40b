"""From grades to pytest's verdicts: blame decides, and what is said stays short."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from pytest_mlebench._plain_text import one_line, tail_lines
from pytest_mlebench.errors import ConfigError, MlebenchError
from pytest_mlebench.grade import Grade
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.medals import Medal
from pytest_mlebench.plugin.session import GRADE, ITEM_KEY, RESULT, MleSession
from pytest_mlebench.reports.results import ItemKey, Result, extra_facts
from pytest_mlebench.reports.summary import LETTERS, MARKUP

ATTRIBUTE = "mle_item"  # of a test report; plain data, so that xdist carries it
LOG_LINES, LOG_COLUMNS = 20, 400  # of an agent's log that a failure shows
_FOUND: WeakKeyDictionary[pytest.TestReport, tuple[ItemKey, Result]] = WeakKeyDictionary()
PHASES = ("setup", "call", "teardown")  # what else a report is about is a worker that was lost


class Verdicts:
    """Judge items by their grades and put the results on the test reports."""

    def __init__(self, session: MleSession) -> None:
        self.session = session
        self._running: pytest.Item | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Know which item runs: comparisons in it are explained by its own grade."""
        before, self._running = self._running, item
        try:
            return (yield)
        finally:
            self._running = before

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Fail an item whose grade does not reach what is required."""
        grade = pyfuncitem.funcargs.get("mle_grade")
        requirement = self.session.requirement(pyfuncitem)
        if isinstance(grade, Grade) and requirement and not grade.reaches(requirement):
            pytest.fail("\n".join(_why(grade, requirement, pyfuncitem)), pytrace=False)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Grade also what a test has only run: its attempt counts as every other."""
        try:
            result = yield
        except BaseException:
            with contextlib.suppress(MlebenchError):  # what the test has to say comes first
                self.session.grade_what_ran(item)
            raise
        self.session.grade_what_ran(item)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the result, and say errors of ours in a sentence instead of a traceback."""
        report = yield
        error = None if call.excinfo is None else call.excinfo.value
        if isinstance(error, MlebenchError):
            report.longrepr = f"{_blame(error)}: {error}"
        elif isinstance(error, AssertionError) and (grade := item.stash.get(GRADE, None)):
            report.sections.append(("MLE-bench grade", "\n".join(grade.explain())))
        if report.failed and (tail := _log_tail(item)):
            report.sections.append((f"the agent's log, last {len(tail)} lines", "\n".join(tail)))
        key = item.stash.get(ITEM_KEY, None)
        if key is None or not is_final(report):
            return report
        result = _result(item, key, report, error)
        if result is not None:
            setattr(report, ATTRIBUTE, {"item": key.to_dict(), "result": result.to_dict()})
            _FOUND[report] = key, result
            item.user_properties += _properties(result)  # on the report that is still to come
            report.user_properties = list(item.user_properties)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Show medals as letters and words; a lost worker is an error, not the agent's failure."""
        if report.when not in PHASES:
            return "error", "E", "ERROR"
        if report.when != "call" or not report.passed:
            return None
        found = found_in(report)
        if found is None:
            return None
        medal = found[1].medal
        word = medal.name if medal else "PASS"
        markup = MARKUP.get(str(medal), {"green": True})
        return "passed", LETTERS[medal], (word, dict(markup))

    @pytest.hookimpl
    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> list[str] | None:
        """Explain a comparison of medals or scores by the grade of the item that runs."""
        grade = None if self._running is None else self._running.stash.get(GRADE, None)
        if isinstance(left, Medal) and isinstance(right, Medal):
            head = f"medal: {left} {op} {right}"
        elif grade is not None and any(_is_of(side, grade) for side in (left, right)):
            head = f"{left!r} {op} {right!r}"
        else:
            return None
        return [head, *([] if grade is None else grade.explain())]


def is_final(report: pytest.TestReport) -> bool:
    """Tell whether a report is the one that says what became of its item."""
    if report.when not in PHASES:  # of a worker that was lost
        return True
    return report.when == "call" or (report.when == "setup" and not report.passed)


def reason_of(report: pytest.TestReport) -> str:
    """Return why an item failed, in the words of its short summary."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(report.longrepr if crash is None else crash.message)


def found_in(report: pytest.TestReport) -> tuple[ItemKey, Result] | None:
    """Return the item and the result on a test report, if it is the final one of an item of ours.

    Each is asked several times in a row, and most often in the process that has made it.
    """
    data = getattr(report, ATTRIBUTE, None)
    if data is None:
        return None
    if report not in _FOUND:
        key = ItemKey.from_dict(data["item"], "a test report")
        _FOUND[report] = key, Result.from_dict(data["result"])
    return _FOUND[report]


def _why(grade: Grade, requirement: str, item: pytest.Item) -> list[str]:
    """Return why an item fails; what a short summary shows, the first line, is the reason."""
    if grade.valid:
        return [*grade.explain(), f"required: {requirement}"]
    result = item.stash.get(RESULT, None)
    kind = None if result is None else result.failure
    reason = grade.problem or "no valid submission"
    return [f"{kind}: {reason}" if kind else reason, *grade.explain()]


def _log_tail(item: pytest.Item) -> list[str]:
    """Return the end of the agent's log, which has no secrets in it, as lines of ours.

    The bar keeps a line of the agent's from being taken for a command by whoever reads the log of
    a job: GitHub's begin with ``::``, after any spaces.
    """
    result = item.stash.get(RESULT, None)
    if result is None or result.run is None:
        return []
    log = AttemptFolder(Path(result.run)).log
    lines = tail_lines(log, lines=LOG_LINES, width=LOG_COLUMNS)
    return [f"| {line}".replace("##[", "## [") for line in lines]


def _is_of(value: object, grade: Grade) -> bool:
    """Tell whether a value is a figure of a grade; a number that only happens to be equal may be
    taken for one, in a test that has a grade."""
    return any(value is figure for figure in (grade.score, grade.percentile) if figure is not None)


def _result(
    item: pytest.Item, key: ItemKey, report: pytest.TestReport, error: BaseException | None
) -> Result | None:
    """Return what a phase of an item says about its attempt."""
    known = item.stash.get(RESULT, None)
    if report.skipped and known is None:
        return _without_attempt(key, "skipped", _reason(report))
    if error is None or isinstance(error, pytest.skip.Exception) or report.when != "setup":
        return known
    text = str(error) if isinstance(error, MlebenchError) else f"{type(error).__name__}: {error}"
    run = None if known is None else known.run
    return _without_attempt(key, "error", text, run)


def _without_attempt(key: ItemKey, status: Any, error: str, run: str | None = None) -> Result:
    return Result(
        key.competition,
        key.seed,
        status,
        error=error,
        agent=key.agent,
        conditions=key.conditions,
        run=run,
    )


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def _blame(error: MlebenchError) -> str:
    return "configuration" if isinstance(error, ConfigError) else "the benchmark failed"


def _properties(result: Result) -> list[tuple[str, object]]:
    """Return what JUnit XML shows of a result."""
    facts: dict[str, object] = {
        "mle_competition": result.competition,
        "mle_seed": result.seed,
        "mle_agent": result.agent,
        "mle_outcome": result.status,
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
    if (use := result.model_use) is not None:
        facts |= {
            "mle_input_tokens": use.input_tokens,
            "mle_output_tokens": use.output_tokens,
            "mle_cached_tokens": use.cached_tokens,
            "mle_reasoning_tokens": use.reasoning_tokens,
            "mle_model_calls": use.calls,
            "mle_usd": use.usd,  # none where some of it is not known, which is not zero
            "mle_known_usd": use.known_usd,
            "mle_usd_source": use.source,
            "mle_models": one_line(use.by_model) or None,
            "mle_model_notes": "; ".join(use.notes) or None,
        }
    facts |= {
        "mle_problem": result.problem,
        "mle_fingerprint": result.fingerprint,
        "mle_run": result.run,
    }
    facts |= {f"mle_extra_{key}": value for key, value in extra_facts(result)}
    return [(name, value) for name, value in facts.items() if value is not None]
